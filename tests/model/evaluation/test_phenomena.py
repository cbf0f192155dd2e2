"""Sentences by phenomenon: their file, what was read of their translations, and the table in a card."""

from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu

from model.checkpoint.bleu_scores import CARD
from model.checkpoint.files import FOLDER, available, folder_of
from model.cli.use import BEAM
from model.evaluation.phenomena import (
    READINGS,
    SECTION,
    Item,
    PhenomenaError,
    Reading,
    read_items,
    read_readings,
    table,
    with_readings,
    with_table,
    write_readings,
)
from model.translate import Translator

ITEMS = [
    Item("names", "I am Ada.", "Ich bin Ada."),
    Item("names", "Who is Bo?", "Wer ist Bo?"),
    Item("numbers", "Two | three", "Zwei | drei"),
]
WRITTEN = ["Ich bin Ada.", "Wo ist Bo?", "Zwei | drei"]
READ = {
    "I am Ada.": Reading("Ich bin Ada.", (True, True)),
    "Who is Bo?": Reading("Wo ist Bo?", (False, False)),
    "Two | three": Reading("Zwei, drei", (True, True)),
}
CARDS = [name for name in available() if SECTION.begin in (folder_of(name) / CARD).read_text(encoding="utf-8")]


def test_a_reading_counts_for_the_translation_that_was_read() -> None:
    found = with_readings(ITEMS, WRITTEN, READ)
    assert [one.verdict for one in found] == ["right", "wrong", ""]
    unsure = with_readings(ITEMS[:1], WRITTEN[:1], {"I am Ada.": Reading("Ich bin Ada.", (True, False))})
    assert unsure[0].verdict == "unsure"


def test_the_table_counts_what_was_read_and_shows_every_sentence() -> None:
    text = table(with_readings(ITEMS, WRITTEN, READ), 4)
    assert "| names | 2 | " in text
    assert "| 1 of 2 |" in text
    assert "| numbers | 1 | 100.0 |  |" in text
    names = sacrebleu.CHRF().corpus_score(WRITTEN[:2], [["Ich bin Ada.", "Wer ist Bo?"]]).score
    assert f"| names | 2 | {names:.1f} |" in text
    assert r"| Two \| three | Zwei \| drei | Zwei \| drei |  |" in text
    card = f"# A\n\n{SECTION.empty}after\n"
    once = with_table(card, with_readings(ITEMS, WRITTEN, READ), 4)
    assert once == with_table(once, with_readings(ITEMS, WRITTEN, READ), 4)
    assert once.endswith("after\n")
    assert with_table("# A\n", [], 4) == "# A\n"


def test_readings_are_written_and_read(tmp_path: Path) -> None:
    write_readings(tmp_path / READINGS, READ)
    assert read_readings(tmp_path / READINGS) == READ
    assert read_readings(tmp_path / "none.json") == {}
    (tmp_path / READINGS).write_text('{"a": 3}')
    with pytest.raises(PhenomenaError, match="holds no readings"):
        read_readings(tmp_path / READINGS)
    (tmp_path / "items.tsv").write_text("names\tI am Ada.\n")
    with pytest.raises(PhenomenaError, match="line 1"):
        read_items(tmp_path / "items.tsv")


def test_the_sentences_are_a_hundred_and_fifty() -> None:
    items = read_items(FOLDER / "phenomena.en-de.tsv")
    assert len(items) == len({one.source for one in items}) == 150
    assert len({one.phenomenon for one in items}) >= 10


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.walk
def test_a_card_shows_what_the_model_writes_and_what_was_thought_of_it(name: str) -> None:
    translator, text = Translator.load(name, "cpu"), (folder_of(name) / CARD).read_text(encoding="utf-8")
    items = read_items(FOLDER / "phenomena.en-de.tsv")
    written = translator.translate_batch([one.source for one in items], beam=BEAM)
    found = with_readings(items, written, read_readings(folder_of(name) / READINGS))
    assert with_table(text, found, BEAM) == text
    assert all(one.verdict for one in found)
