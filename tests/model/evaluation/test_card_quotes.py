"""Quoted translations: filled in by the model, and those of the released cards as the models write them."""

from __future__ import annotations

import re

import pytest

from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, find_checkpoint_folder, list_checkpoints
from attenscope.checkpoint.measurements import CARD_FILE
from attenscope.evaluation.quality import QUOTES_SECTION, read_card_translations, retranslate_card_table
from attenscope.translate import Translator

TABLE = "\n| sentence | what it writes | remark |\n|---|---|---|\n| a \\| b |  | a \\| stays |\n| c | old | |\n\n"
CARD_TEXT = (
    f"# Toy\n\n| c | old | elsewhere |\n\n{QUOTES_SECTION.begin}{TABLE}{QUOTES_SECTION.end}\n| c | old | after |\n"
)


def card(name: str) -> str:
    return (find_checkpoint_folder(name) / CARD_FILE).read_text(encoding="utf-8")


def test_the_model_fills_in_the_middle_column() -> None:
    written = retranslate_card_table(CARD_TEXT, lambda text: f"{text}!|".upper())
    assert read_card_translations(written) == (("a | b", "A | B!|"), ("c", "C!|"))
    assert "| a \\| b | A \\| B!\\| | a \\| stays |" in written
    assert written.count("elsewhere") == written.count("| c | old | after |") == 1
    assert retranslate_card_table(written, lambda text: f"{text}!|".upper()) == written


@pytest.mark.parametrize(
    "text", ["# Toy\n\n| a | b | c |\n", f"{QUOTES_SECTION.begin}| a | b |\n", QUOTES_SECTION.empty, ""]
)
def test_a_card_without_a_table_stays_as_it_is(text: str) -> None:
    assert read_card_translations(text) == ()
    assert retranslate_card_table(text, lambda _: pytest.fail("translated")) == text


@pytest.mark.parametrize("name", list_checkpoints())
def test_every_translation_that_a_card_quotes_is_what_the_model_writes(name: str) -> None:
    translator = Translator.load(name, "cpu")
    found = read_card_translations(card(name))
    assert found
    assert [(source, translator.translate(source, capture=False).text) for source, _ in found] == list(found)
    outside = re.sub(
        f"{re.escape(QUOTES_SECTION.begin)}.*?{re.escape(QUOTES_SECTION.end)}", "", card(name), flags=re.DOTALL
    )
    assert not re.search('becomes ["“]', outside), "quote it in the table, where it is checked"


@pytest.mark.sweep
@pytest.mark.parametrize("name", list_checkpoints())
def test_the_fixed_sentences_are_translated_as_their_table_says(name: str) -> None:
    translator = Translator.load(name, "cpu")
    sentences = (
        (CHECKPOINTS_FOLDER / f"sentences.{translator.card['source_language']}")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    head, rows = (find_checkpoint_folder(name) / "sentences.md").read_text(encoding="utf-8").split("|---|---|---|\n")
    assert f"`python -m model quality --checkpoint {name}`" in head
    written = translator.translate_batch(sentences)
    for row, source, greedy in zip(rows.splitlines(), sentences, written, strict=True):
        assert row.startswith(f"| {source} | {greedy} |")


def test_as_many_fixed_sentences_are_wrong_as_the_card_lists() -> None:
    text = card("everyday-en-de")
    sentences = (CHECKPOINTS_FOLDER / "sentences.en").read_text(encoding="utf-8").splitlines()
    wrong = [source for source, _ in read_card_translations(text)]
    assert set(wrong) <= set(sentences)
    assert f"shows {len(sentences)} fixed sentences; read by a person, {len(wrong)} of them come out wrong" in text
