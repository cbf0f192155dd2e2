"""The table of methods and the threshold: measured by one command, kept beside a checkpoint and in its card."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from attenscope.__main__ import main
from attenscope.attribution.methods import ATTRIBUTION_METHODS
from attenscope.evaluation.attribution import (
    ATTRIBUTION_FILE,
    AttributionScoresError,
    find_mismatched_pair_threshold,
    format_attribution_table,
    measure_attribution,
    read_attribution_scores,
    replace_attribution_table,
    roc_area,
    write_attribution_scores,
)
from attenscope.translate import Translator
from tests import toy


@pytest.mark.sweep
def test_measured_written_and_read(toy_translator: Translator, tmp_path: Path) -> None:
    scores = measure_attribution(toy_translator, toy.sentences(60, seed=9), "toy", 6)
    assert {one.method for one in scores.methods} == set(ATTRIBUTION_METHODS)
    assert [one.beats_random for one in scores.methods] == sorted(one.beats_random for one in scores.methods)[::-1]
    (tmp_path / "README.md").write_text("# A card\n", encoding="utf-8")
    write_attribution_scores(tmp_path, scores)
    assert read_attribution_scores(tmp_path) == scores
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# A card\n\n## Attribution")
    other = dataclasses.replace(scores, sentences=7)
    assert replace_attribution_table(replace_attribution_table(card, other), scores) == card
    assert f"{scores.methods[0].beats_random:.1%}" in format_attribution_table(scores)


def test_the_same_seed_measures_the_same(toy_translator: Translator) -> None:
    first, second = (measure_attribution(toy_translator, toy.sentences(30, seed=9), "toy", 2) for _ in range(2))
    assert first == second


def test_true_pairs_are_told_from_shuffled_ones(toy_translator: Translator) -> None:
    pairs = list(dict(toy.sentences(40, seed=3)).items())[:16]
    found = find_mismatched_pair_threshold(toy_translator, pairs)
    assert found.area > 0.95
    assert found.false_alarms + found.misses < 0.2
    assert found.pairs == 16


def test_the_area_under_the_curve() -> None:
    assert roc_area(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 1
    assert roc_area(np.array([1.0, 2.0]), np.array([1.0, 2.0])) == 0.5
    assert roc_area(np.array([0.0]), np.array([1.0, -1.0])) == 0.5


def test_too_little_text_and_a_broken_file_are_said(toy_translator: Translator, tmp_path: Path) -> None:
    with pytest.raises(AttributionScoresError, match="little has 1 sentences of at least 5 pieces; 6 are to be"):
        measure_attribution(toy_translator, toy.sentences(1), "little", 6)
    for few in (-1, 0, 1):
        with pytest.raises(AttributionScoresError, match=f"; {few} are to be measured"):
            measure_attribution(toy_translator, toy.sentences(9), "enough", few)
    assert read_attribution_scores(tmp_path) is None
    (tmp_path / ATTRIBUTION_FILE).write_text('{"methods": 3}', encoding="utf-8")
    with pytest.raises(AttributionScoresError, match="`python -m model attribution` writes it anew"):
        read_attribution_scores(tmp_path)


def test_the_command(toy_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(toy_checkpoint, folder)
    data = toy.write_text(tmp_path / "data")
    assert main(["attribution", "--checkpoint", str(folder), "--data", str(data), "--sentences", "3"]) == 0
    kept = read_attribution_scores(folder)
    assert kept is not None
    assert kept.set == "data dev"
    assert format_attribution_table(kept) in capsys.readouterr().out
