"""Scores kept beside a checkpoint: merged by what was measured, and written into the card's own place."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from attenscope.__main__ import main
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER
from attenscope.checkpoint.measurements import (
    CARD_FILE,
    SCORES_FILE,
    SCORES_SECTION,
    Score,
    ScoresError,
    format_score_table,
    read_scores,
    replace_score_table,
    save_score,
)
from tests import toy

ONE = Score("dev", 20, 1, 12.34, "nrefs:1", 45.6, "nc:6", None, 250.0)


def test_a_measurement_made_again_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    others = [dataclasses.replace(ONE, **change) for change in ({"beam": 4}, {"set": "test"}, {"step": 7})]
    for score in (ONE, *others):
        save_score(tmp_path, score)
    assert read_scores(tmp_path) == (ONE, *others)
    better = dataclasses.replace(ONE, bleu=13.0)
    assert save_score(tmp_path, better) == read_scores(tmp_path) == (better, *others)


def test_the_card_changes_between_its_two_marks_only(tmp_path: Path) -> None:
    (tmp_path / CARD_FILE).write_text(
        f"# Toy\n\n{SCORES_SECTION.begin}old\n{SCORES_SECTION.end}\nThe rest.\n", encoding="utf-8"
    )
    save_score(tmp_path, ONE)
    card = (tmp_path / CARD_FILE).read_text(encoding="utf-8")
    assert card == f"# Toy\n\n{SCORES_SECTION.begin}\n{format_score_table([ONE])}\n{SCORES_SECTION.end}\nThe rest.\n"
    assert "| dev (20) | 1 | 12.34 | 45.60 | 250 |" in card
    assert replace_score_table("# No marks\n", [ONE]) == "# No marks\n"


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"scores": [{}]}', '{"scores": [{"set": 1}]}', "[" * 100_000),
        json.dumps({"scores": [{**dataclasses.asdict(ONE), "bleu": "12"}]}),
        json.dumps({"scores": [{**dataclasses.asdict(ONE), "more": 1}]}),
    ],
    ids=lambda text: text[:20],
)
def test_a_file_that_holds_no_scores_is_refused_by_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / SCORES_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ScoresError, match=r"scores\.json is not a list of scores: it must hold"):
        read_scores(tmp_path)


def test_evaluate_keeps_what_it_measures(
    toy_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = toy.write_text(tmp_path / "data")
    for name in (SCORES_FILE, CARD_FILE):
        (toy_checkpoint / name).unlink(missing_ok=True)
    arguments = ["--checkpoint", toy_checkpoint, "--source", data / "dev.en", "--reference", data / "dev.de"]
    try:
        assert main(["evaluate", *map(str, arguments), "--device", "cpu", "--json", "--keep", "toy dev"]) == 0
        (kept,) = read_scores(toy_checkpoint)
    finally:
        (toy_checkpoint / SCORES_FILE).unlink(missing_ok=True)
    printed = json.loads(capsys.readouterr().out)
    assert (kept.set, kept.step, kept.sentences) == ("toy dev", None, 20)
    for name in ("bleu", "bleu_signature", "chrf", "chrf_signature", "beam", "target_tokens_per_second"):
        assert getattr(kept, name) == printed[name]


@pytest.mark.parametrize(
    "folder", sorted(CHECKPOINTS_FOLDER.glob(f"*/{SCORES_FILE}")), ids=lambda path: path.parent.name
)
def test_a_released_card_says_what_its_scores_say(folder: Path) -> None:
    scores, card = read_scores(folder.parent), (folder.parent / CARD_FILE).read_text(encoding="utf-8")
    assert scores
    assert replace_score_table(card, scores) == card
    assert SCORES_SECTION.begin in card
