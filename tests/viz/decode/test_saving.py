"""What is saved of Decode: the steps as a table, and in a scene what the stage shows."""

from __future__ import annotations

import math

import pytest

from model.translate import Translator
from viz.components.decode_player import PlayerStart
from viz.decode import saving
from viz.decode.request import Request
from viz.decode.saving import numbers, saved_view
from viz.export.parts import Words
from viz.figures.labels import readable
from viz.figures.palette import LIGHT, Look


def test_the_table_gives_each_candidate_and_its_probability_a_column(toy_translator: Translator) -> None:
    result = toy_translator.translate("the old dog sees a cat.")
    table = numbers(result)
    assert list(table.index) == list(range(1, len(result.steps) + 1))
    assert list(table["probability"]) == [math.exp(step.log_prob) for step in result.steps]
    for at, step in enumerate(result.steps, start=1):
        assert step.candidates
        for place, one in enumerate(step.candidates, start=1):
            assert table.loc[at, f"candidate {place}"] == readable(one.token)
            assert table.loc[at, f"probability {place}"] == math.exp(one.log_prob)


@pytest.mark.parametrize("staged", [False, True])
def test_a_scene_shows_the_tree_with_the_sentence_above_it(
    toy_translator: Translator, monkeypatch: pytest.MonkeyPatch, staged: bool
) -> None:
    monkeypatch.setattr(saving, "on_stage", lambda: staged)
    monkeypatch.setattr(saving, "live_files", lambda model: {})
    request = Request("the old dog sees a cat.", "beam")
    start = PlayerStart(0, "1.1", "1.1", None)
    result, tree = toy_translator.translate(request.text), toy_translator.search(request.text, 3)
    for found, drawn in ((tree, True), (None, False)):
        view = saved_view(toy_translator, result, start, Look(), found, (), request, ())
        words = [(part.role, part.text) for part in view.parts(LIGHT) if isinstance(part, Words)]
        assert words == ([("sentence", request.text)] if staged else [("tree", "Beam tree")]) * drawn
