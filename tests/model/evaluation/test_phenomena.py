"""Sentences by phenomenon: their file, what was read of their translations, and the table in a card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sacrebleu

from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, find_checkpoint_folder, list_checkpoints
from attenscope.checkpoint.measurements import CARD_FILE
from attenscope.cli.translate_and_evaluate import READING_BEAM
from attenscope.evaluation.quality import (
    PHENOMENA_SECTION,
    READINGS_FILE,
    PhenomenaError,
    PhenomenonItem,
    Reading,
    attach_translation_judgements,
    format_phenomena_table,
    read_phenomenon_items,
    read_translation_judgements,
    replace_phenomena_table,
    write_translation_judgements,
)
from attenscope.translate import Translator

ITEMS = [
    PhenomenonItem("names", "I am Ada.", "Ich bin Ada."),
    PhenomenonItem("names", "Who is Bo?", "Wer ist Bo?"),
    PhenomenonItem("numbers", "Two | three", "Zwei | drei"),
]
WRITTEN = ["Ich bin Ada.", "Wo ist Bo?", "Zwei | drei"]
READ = {
    "I am Ada.": Reading("Ich bin Ada.", (True, True)),
    "Who is Bo?": Reading("Wo ist Bo?", (False, False)),
    "Two | three": Reading("Zwei, drei", (True, True)),
}
CARDS = [
    name
    for name in list_checkpoints()
    if PHENOMENA_SECTION.begin in (find_checkpoint_folder(name) / CARD_FILE).read_text(encoding="utf-8")
]


def test_a_reading_counts_for_the_translation_that_was_read() -> None:
    found = attach_translation_judgements(ITEMS, WRITTEN, READ)
    assert [one.verdict for one in found] == ["right", "wrong", ""]
    unsure = attach_translation_judgements(
        ITEMS[:1], WRITTEN[:1], {"I am Ada.": Reading("Ich bin Ada.", (True, False))}
    )
    assert unsure[0].verdict == "unsure"


@pytest.mark.parametrize(("third", "verdict"), [(True, "right"), (False, "wrong")])
def test_a_third_reader_decides_where_two_differ_and_the_row_says_so(third: bool, verdict: str, tmp_path: Path) -> None:
    said = {"I am Ada.": {"translation": WRITTEN[0], "right": [False, True, third]}}
    said["Who is Bo?"] = {"translation": WRITTEN[1], "right": [True, True, False]}  # of which two need no third
    (tmp_path / READINGS_FILE).write_text(json.dumps(said))
    readings = read_translation_judgements(tmp_path / READINGS_FILE)
    found = attach_translation_judgements(ITEMS[:2], WRITTEN[:2], readings)
    assert [one.verdict for one in found] == [verdict, "right"]
    text = format_phenomena_table(found, 4)
    assert f"| Ich bin Ada. | Ich bin Ada. | {verdict}, by a third reader |" in text
    assert f"| {1 + third} of 2 |" in text
    assert text.count("third reader") == 1
    write_translation_judgements(tmp_path / "again.json", readings)
    assert read_translation_judgements(tmp_path / "again.json") == readings


def test_the_table_counts_what_was_read_and_shows_every_sentence() -> None:
    text = format_phenomena_table(attach_translation_judgements(ITEMS, WRITTEN, READ), 4)
    assert "| names | 2 | " in text
    assert "| 1 of 2 |" in text
    assert "| numbers | 1 | 100.0 |  |" in text
    names = sacrebleu.CHRF().corpus_score(WRITTEN[:2], [["Ich bin Ada.", "Wer ist Bo?"]]).score
    assert f"| names | 2 | {names:.1f} |" in text
    assert r"| Two \| three | Zwei \| drei | Zwei \| drei |  |" in text
    card = f"# A\n\n{PHENOMENA_SECTION.empty}after\n"
    once = replace_phenomena_table(card, attach_translation_judgements(ITEMS, WRITTEN, READ), 4)
    assert once == replace_phenomena_table(once, attach_translation_judgements(ITEMS, WRITTEN, READ), 4)
    assert once.endswith("after\n")
    assert replace_phenomena_table("# A\n", [], 4) == "# A\n"


def test_readings_are_written_and_read(tmp_path: Path) -> None:
    write_translation_judgements(tmp_path / READINGS_FILE, READ)
    assert read_translation_judgements(tmp_path / READINGS_FILE) == READ
    assert read_translation_judgements(tmp_path / "none.json") == {}
    (tmp_path / READINGS_FILE).write_text('{"a": 3}')
    with pytest.raises(PhenomenaError, match="holds no readings"):
        read_translation_judgements(tmp_path / READINGS_FILE)
    (tmp_path / "items.tsv").write_text("names\tI am Ada.\n")
    with pytest.raises(PhenomenaError, match="line 1"):
        read_phenomenon_items(tmp_path / "items.tsv")


def test_the_sentences_are_a_hundred_and_fifty() -> None:
    items = read_phenomenon_items(CHECKPOINTS_FOLDER / "phenomena.en-de.tsv")
    assert len(items) == len({one.source for one in items}) == 150
    assert len({one.phenomenon for one in items}) >= 10


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.sweep
def test_a_card_shows_what_the_model_writes_and_what_was_thought_of_it(name: str) -> None:
    translator, text = (
        Translator.load(name, "cpu"),
        (find_checkpoint_folder(name) / CARD_FILE).read_text(encoding="utf-8"),
    )
    items = read_phenomenon_items(CHECKPOINTS_FOLDER / "phenomena.en-de.tsv")
    written = translator.translate_batch([one.source for one in items], beam=READING_BEAM)
    found = attach_translation_judgements(
        items, written, read_translation_judgements(find_checkpoint_folder(name) / READINGS_FILE)
    )
    assert replace_phenomena_table(text, found, READING_BEAM) == text
    assert all(one.verdict for one in found)
