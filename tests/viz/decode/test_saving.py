"""What is saved of Decode: the steps as a table, and in a scene what the stage shows."""

from __future__ import annotations

import math

import pytest

from attenscope.decoding.greedy_and_sampling import Constraints
from attenscope.network.config import TransformerConfig
from attenscope.translate import Translator
from attenscope.viz.decode import panels
from attenscope.viz.decode.panels import build_saved_view, steps_table
from attenscope.viz.decode.runs import DecodingRequest
from attenscope.viz.export import talk_html
from attenscope.viz.export.parts import Words
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look, readable_token
from attenscope.viz.talk.scenes import Scene, Talk
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


def test_a_live_scene_goes_on_from_the_translation_that_it_shows(
    toy_translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panels, "list_live_files", lambda model: {})
    request = DecodingRequest("the old dog sees a cat.", "beam", constraints=Constraints(forbidden=((9,), (7, 8))))
    tree = toy_translator.search(request.text, 4, constraints=request.constraints)
    way = tree.best[1].token_ids
    shown = toy_translator.force(request.text, way)
    start = PlayerStart(0, "1.1", "1.1", None)
    view = build_saved_view(toy_translator, shown, start, Look(), tree, (), request, way)
    monkeypatch.setattr(talk_html, "collect_savable_views", lambda *_: [view])
    monkeypatch.setattr(talk_html, "_load_packable_model", lambda name: object())
    scene = Scene("Beams", "decode", {"sentence": request.text, "method": "beam"}, live=True)
    slides = talk_html.build_scene_slides(scene, Talk("", (scene,)), {"toy": TransformerConfig()}, (DARK, LIGHT), {})
    for slide in slides:
        assert slide.live is not None
        assert slide.live.settings["saved"] == {"target": way, "constraints": {"forbidden": ((9,), (7, 8))}}
