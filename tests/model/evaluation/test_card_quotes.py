"""Quoted translations: filled in by the model, and those of the released cards as the models write them."""

from __future__ import annotations

import re

import pytest

from model.checkpoint.bleu_scores import CARD
from model.checkpoint.files import FOLDER, folder_of
from model.checkpoint.load import available
from model.evaluation.card_quotes import SECTION, quotes, with_quotes
from model.translate import Translator

TABLE = "\n| sentence | what it writes | remark |\n|---|---|---|\n| a \\| b |  | a \\| stays |\n| c | old | |\n\n"
CARD_TEXT = f"# Toy\n\n| c | old | elsewhere |\n\n{SECTION.begin}{TABLE}{SECTION.end}\n| c | old | after |\n"


def card(name: str) -> str:
    return (folder_of(name) / CARD).read_text(encoding="utf-8")


def test_the_model_fills_in_the_middle_column() -> None:
    written = with_quotes(CARD_TEXT, lambda text: f"{text}!|".upper())
    assert quotes(written) == (("a | b", "A | B!|"), ("c", "C!|"))
    assert "| a \\| b | A \\| B!\\| | a \\| stays |" in written
    assert written.count("elsewhere") == written.count("| c | old | after |") == 1
    assert with_quotes(written, lambda text: f"{text}!|".upper()) == written


@pytest.mark.parametrize("text", ["# Toy\n\n| a | b | c |\n", f"{SECTION.begin}| a | b |\n", SECTION.empty, ""])
def test_a_card_without_a_table_stays_as_it_is(text: str) -> None:
    assert quotes(text) == ()
    assert with_quotes(text, lambda _: pytest.fail("translated")) == text


@pytest.mark.parametrize("name", available())
def test_every_translation_that_a_card_quotes_is_what_the_model_writes(name: str) -> None:
    translator = Translator.load(name, "cpu")
    found = quotes(card(name))
    assert found
    assert [(source, translator.translate(source, capture=False).text) for source, _ in found] == list(found)
    outside = re.sub(f"{re.escape(SECTION.begin)}.*?{re.escape(SECTION.end)}", "", card(name), flags=re.DOTALL)
    assert not re.search('becomes ["“]', outside), "quote it in the table, where it is checked"


@pytest.mark.parametrize("name", available())
def test_the_fixed_sentences_are_translated_as_their_table_says(name: str) -> None:
    translator = Translator.load(name, "cpu")
    sentences = (FOLDER / f"sentences.{translator.card['source_language']}").read_text(encoding="utf-8").splitlines()
    rows = (folder_of(name) / "sentences.md").read_text(encoding="utf-8").splitlines()[6:]
    written = translator.translate_batch(sentences)
    for row, source, greedy in zip(rows, sentences, written, strict=True):
        assert row.startswith(f"| {source} | {greedy} |")


def test_as_many_fixed_sentences_are_wrong_as_the_card_lists() -> None:
    text = card("everyday-en-de")
    sentences = (FOLDER / "sentences.en").read_text(encoding="utf-8").splitlines()
    wrong = [source for source, _ in quotes(text)]
    assert set(wrong) <= set(sentences)
    assert f"shows {len(sentences)} fixed sentences; read by a person, {len(wrong)} of them come out wrong" in text
