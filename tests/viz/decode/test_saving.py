"""What is saved of Decode: the steps as a table, and in a scene what the stage shows."""

from __future__ import annotations

import math

import pytest

from attenscope.translate import Translator
from attenscope.viz.decode import panels
from attenscope.viz.decode.panels import build_saved_view, steps_table
from attenscope.viz.decode.runs import DecodingRequest
from attenscope.viz.export.parts import Words
from attenscope.viz.figures.figure_style import LIGHT, Look, readable_token
from attenscope.viz.web.players import PlayerStart


def test_the_table_gives_each_candidate_and_its_probability_a_column(toy_translator: Translator) -> None:
    result = toy_translator.translate("the old dog sees a cat.")
    table = steps_table(result)
    assert list(table.index) == list(range(1, len(result.steps) + 1))
    assert list(table["probability"]) == [math.exp(step.log_prob) for step in result.steps]
    for at, step in enumerate(result.steps, start=1):
        assert step.candidates
        for place, one in enumerate(step.candidates, start=1):
            assert table.loc[at, f"candidate {place}"] == readable_token(one.token)
            assert table.loc[at, f"probability {place}"] == math.exp(one.log_prob)


@pytest.mark.parametrize("staged", [False, True])
def test_a_scene_shows_the_tree_with_the_sentence_above_it(
    toy_translator: Translator, monkeypatch: pytest.MonkeyPatch, staged: bool
) -> None:
    monkeypatch.setattr(panels, "is_on_stage", lambda: staged)
    monkeypatch.setattr(panels, "list_live_files", lambda model: {})
    request = DecodingRequest("the old dog sees a cat.", "beam")
    start = PlayerStart(0, "1.1", "1.1", None)
    result, tree = toy_translator.translate(request.text), toy_translator.search(request.text, 3)
    for found, drawn in ((tree, True), (None, False)):
        view = build_saved_view(toy_translator, result, start, Look(), found, (), request, ())
        words = [(part.role, part.text) for part in view.parts(LIGHT) if isinstance(part, Words)]
        assert words == ([("sentence", request.text)] if staged else [("tree", "Beam tree")]) * drawn
