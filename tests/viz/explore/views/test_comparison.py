"""Compare: the picture, its words, the way from a click to tokens, and what the page does with the second side."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.analysis.attention_steps import compare_maps, match_rows_and_columns
from attenscope.experiments.lens import run_logit_lens
from attenscope.trace import AttentionMap, select_head
from attenscope.viz.explore.comparison import (
    HeadComparison,
    SecondScene,
    SecondSide,
    comparison_table,
    describe_comparison,
)
from attenscope.viz.explore.joint_flow_lens_views import lens_table
from attenscope.viz.explore.view_data import DisplayOptions, display_tokens
from attenscope.viz.explore.view_data import Scene as RealScene
from attenscope.viz.export.parts import Columns, Words, flatten_parts
from attenscope.viz.figures.explore import (
    CHANGE_PANEL,
    PANEL_OFFSET,
    SECOND_PANEL,
    ComparedMap,
    describe_map_difference,
    locate_clicked_panel_cell,
    plot_comparison,
)
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.ui import cache
from attenscope.viz.web.page_components import COLLECTED_VIEWS
from tests.viz.explore.live.test_page import captions
from tests.viz.fakes import FakeTranslator, attention

TOKENS = (" the", " the", "<b>", "</s>")


@pytest.fixture
def decoder() -> AttentionMap:
    return attention("decoder", ("<s>", *TOKENS[:-1]), ("<s>", *TOKENS[:-1]), TOKENS)


def drawn(figure: Any, name: str) -> list[Any]:
    return [trace for trace in figure.data if trace.name == name]


def test_repeated_tokens_keep_their_rows_and_masks_their_look(decoder: AttentionMap) -> None:
    one, two = select_head(decoder, 0, 0), select_head(decoder, 1, 2)
    found = compare_maps(one, two, "predicted")
    figure = plot_comparison(ComparedMap(one, '<i>first</i> & "quoted"'), ComparedMap(two, "second"), found)
    first, second = drawn(figure, "weights")
    np.testing.assert_allclose(first.z[decoder.mask], decoder.weights[0, 0][decoder.mask])
    np.testing.assert_allclose(second.z[decoder.mask], decoder.weights[1, 2][decoder.mask])
    assert np.isnan(second.z[~decoder.mask]).all()
    assert second.y0 == SECOND_PANEL * PANEL_OFFSET
    assert len(drawn(figure, "masked")) == 3
    texts = [one.text for one in figure.layout.annotations]
    assert any('&lt;i&gt;first&lt;/i&gt; &amp; "quoted"' in text for text in texts)  # Plotly knows no &quot;
    assert list(figure.layout.yaxis2.ticktext)[2] == "&lt;b&gt;"


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_the_difference_is_on_a_scale_with_zero_in_its_middle(decoder: AttentionMap, palette: Any) -> None:
    one, two = select_head(decoder, 0, 0), select_head(decoder, 2, 1)
    found = compare_maps(one, two, "predicted")
    (change,) = drawn(
        plot_comparison(ComparedMap(one, "a"), ComparedMap(two, "b"), found, look=Look(palette)), "difference"
    )
    assert change.zmin == -change.zmax
    assert np.nanmax(np.abs(change.z)) <= change.zmax
    assert dict(change.colorscale)[0.5] == palette.background


def test_128_tokens_have_all_cells_and_some_names() -> None:
    names = tuple(f" w{number}" for number in range(128))
    whole = attention("encoder", names, names)
    one, two = select_head(whole, 0, 0), select_head(whole, 0, 1)
    figure = plot_comparison(ComparedMap(one, "a"), ComparedMap(two, "b"), compare_maps(one, two))
    assert drawn(figure, "weights")[0].z.shape == (128, 128)
    assert len(figure.layout.xaxis.ticktext) == 19  # every seventh
    assert figure.layout.yaxis4.tickvals[1] - figure.layout.yaxis4.tickvals[0] == 7
    assert figure.layout.height < 1000


def test_one_token_against_itself() -> None:
    one = select_head(attention("encoder", ("</s>",), ("</s>",)), 0, 0)
    found = compare_maps(one, one)
    assert (
        plot_comparison(ComparedMap(one, "a", (0, 0)), ComparedMap(one, "b", (0, 0)), found, (0, 0)).layout.height < 500
    )
    assert describe_map_difference(found, (None, None), "fed") == "No weight differs between the two."


def test_words_name_the_greatest_change_or_the_pinned_pair() -> None:
    weights = np.array([[[[0.75, 0.25], [0.5, 0.5]]]], dtype=np.float32)
    first = AttentionMap("encoder", weights, (" a", " b"), (" a", " b"), np.ones((2, 2), bool))
    second = dataclasses.replace(first, weights=weights[..., ::-1].copy())
    found = compare_maps(first, second)
    assert found.mean_moved_weight_share == pytest.approx(0.25)
    says = describe_map_difference(found, (None, None), "fed")
    assert says.startswith("On average 25% of a row's attention lies elsewhere in the second.")
    assert "0.75 in the first, 0.25 in the second (−0.50)" in says
    assert "Pinned: " in describe_map_difference(found, (1, 0), "fed")


def compared(first: AttentionMap, second: AttentionMap) -> HeadComparison:
    scene: Any = Scene()
    tokens = display_tokens(second, "fed", merge=False, hide=False)
    return HeadComparison(
        scene, tokens, first, second, *match_rows_and_columns(first, second), compare_maps(first, second)
    )


class Scene:
    """What of a scene a comparison asks for."""

    query, key, rows = 2, 0, "fed"
    display = dataclasses.make_dataclass("Display", ["merge", "hide", "hide_first"])(False, False, False)

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def pin(self, **place: int | None) -> None:
        self.heard.append(place)


def test_a_click_in_any_panel_pins_the_pair_of_the_first() -> None:
    first = select_head(attention("encoder", (" a", " x", " b"), (" a", " x", " b")), 0, 0)
    second = select_head(attention("encoder", (" a", " b"), (" a", " b")), 0, 1)
    found = compared(first, second)
    heard = vars(found.scene)["heard"]
    assert found.pinned_cells == ((2, 0), (1, 0), (1, 0))
    for row, column, place in (
        (1, 2, {"query": 1, "key": 2}),
        (SECOND_PANEL * PANEL_OFFSET + 1, 1, {"query": 2, "key": 2}),
        (CHANGE_PANEL * PANEL_OFFSET + 0, 1, {"query": 0, "key": 2}),
        (3 * PANEL_OFFSET + 1, 0, {"query": None, "key": 2}),
    ):
        found.pin(row, column)
        assert heard[-1] == place
    assert locate_clicked_panel_cell(SECOND_PANEL * PANEL_OFFSET + 7, 3) == (SECOND_PANEL, 7, 3)
    assert "Both share 2 of 3 and 2 rows and 2 of 3 and 2 columns" in " ".join(describe_comparison(found, (None, None)))
    assert found.difference is not None
    assert len(comparison_table(found.difference, found.scene)) == 4


def test_the_page_compares_heads_kinds_and_sentences(app: AppTest) -> None:
    app.query_params.update({"view": "compare", "layer": "2", "head": "1"})
    app.run()
    assert not app.exception
    assert "of a row's attention lies elsewhere" in captions(app)
    app.selectbox(key="with-kind").set_value("decoder").run()
    assert "Both have the same rows but other columns" in captions(app)
    assert "decoder" in app.query_params["with-kind"]
    app.selectbox(key="with").set_value("sentence").run()
    assert "sentence" in app.query_params["with"]
    assert "some words in common" in captions(app)
    app.text_input(key="with-sentence").set_value("The old cat").run()
    assert not app.exception
    assert "Both share" in captions(app)
    app.text_input(key="with-sentence").set_value("word " * 400).run()
    assert "please shorten" in app.info[0].value


def test_the_address_restores_a_comparison(app: AppTest) -> None:
    app.query_params.update({"view": "compare", "with-kind": "encoder", "with-layer": "3", "with-head": "4"})
    app.run()
    texts = [one["text"] for one in json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["annotations"]]
    assert any("Encoder, layer 3, head 4" in text for text in texts)


def test_models_that_cut_words_differently_are_compared_in_words(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    class Letters(FakeTranslator):
        """Cuts every word after its first letter."""

        name = "letters"

        def translate(self, text: str) -> Any:
            whole = super().translate(text)
            pieces = tuple(part for token in whole.source_tokens[:-1] for part in (token[:2], token[2:]) if part)
            source = (*pieces, "</s>")
            cross = whole.trace.cross
            assert cross is not None
            own = attention("cross", cross.query_tokens, source, cross.predicted_tokens, seed=5)
            trace = dataclasses.replace(whole.trace, cross=own)
            return dataclasses.replace(whole, source_tokens=source, captured=trace)

    models = {one.name: one for one in (FakeTranslator(), Letters())}
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: list(models))
    monkeypatch.setattr(cache, "load_runnable_model", models.__getitem__)
    app.query_params.update({"view": "compare", "with": "model", "sentence": "Two small words", "words": "false"})
    app.run()
    assert not app.exception
    assert "The two models cut words into other pieces" in captions(app)
    assert "Both share" not in captions(app)


def test_one_model_alone_is_told(app: AppTest) -> None:
    app.query_params.update({"view": "compare", "with": "model"})
    app.run()
    assert "There is only one model" in captions(app)


def test_the_lens_as_a_table(toy_translator: Any) -> None:
    lens = run_logit_lens(toy_translator, toy_translator.translate("the dog sees a cat."))
    found = lens_table(lens)
    assert len(found) == lens.ranks.size
    assert found["rank"].iloc[-1] == lens.ranks[-1, -1]


def two_sides(app: AppTest, view: str, **address: str) -> AppTest:
    app.query_params.update({"view": "compare", "compared": view, "layer": "2", "head": "1", **address})
    app.session_state["trials after 0"] = True
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize("view", ["links", "text", "joint", "flow"])
def test_every_view_compares_two_sentences(app: AppTest, view: str) -> None:
    second = {"with": "sentence", "with-sentence": "The old cat"}
    sides = [one for one in two_sides(app, view, **second).markdown if "**" in one.value]
    assert sides[-1].value == "**The old cat**"
    assert app.toggle(key="comparing").value
    app.toggle(key="comparing").set_value(False).run()
    assert app.query_params["view"] == view
    assert "compared" not in app.query_params


def test_a_view_of_all_heads_is_compared_with_another_run_alone(app: AppTest) -> None:
    assert two_sides(app, "flow").selectbox(key="with").options == ["another sentence", "another model"]
    app.segmented_control(key="view").set_value("links").run()
    assert app.selectbox(key="with").options == ["another head", "another sentence", "another model"]
    assert app.query_params["view"] == "compare"
    assert app.query_params["compared"] == "links"


class PinnedScene(RealScene):
    """A scene with a cell pinned, which keeps what a click asks for."""

    captured_query, captured_key = 3, 1

    def pin(self, **place: int | None) -> None:
        object.__setattr__(self, "heard", place)


def test_pins_are_marked_on_the_tokens_that_both_sides_have() -> None:
    maps = [
        attention("encoder", words, words)
        for words in ((" the", " old", " dog", " sees", " trees"), (" the", " dog", " sees", " two", " trees"))
    ]
    trace: Any = dataclasses.make_dataclass("Trace", ["maps"])({"encoder": maps[1]})
    source: Any = dataclasses.make_dataclass("Source", ["trace"])(trace)
    display = DisplayOptions(Look(), "fed", merge=False, hide=False, hide_first=False, numbers=False)
    first = PinnedScene(source, display_tokens(maps[0], "fed", merge=False, hide=False), 0, 0, display)
    side = SecondScene.from_scene(first, SecondSide(source, "encoder", 1, 0, "one", "two"))
    assert (side.query, side.key) == (2, None)  # "sees" stands third there, "old" not at all.
    side.pin(query=1, key=0)
    assert vars(first)["heard"] == {"query": 2, "key": 0}
    side.pin(query=3)
    assert vars(first)["heard"] == {"query": None, "key": None}


@pytest.mark.parametrize(("view", "beside"), [("links", True), ("text", True), ("flow", False)])
def test_on_a_stage_the_sides_of_one_head_stand_beside_each_other(app: AppTest, view: str, beside: bool) -> None:
    app.session_state[COLLECTED_VIEWS] = []
    with_what = {"with": "sentence", "with-sentence": "Two birds"} if view == "flow" else {"with-head": "3"}
    app.query_params.update({"view": "compare", "compared": view, "layer": "2", "head": "1"} | with_what)
    app.run()
    assert not app.exception
    parts = app.session_state[COLLECTED_VIEWS][-1].parts(LIGHT)
    rows = [part for part in parts if isinstance(part, Columns)]
    assert [len(row.columns) for row in rows] == ([2] if beside else [])
    names = [part for part in flatten_parts(parts) if isinstance(part, Words) and part.size == "heading"]
    assert len(names) >= 2
    assert all(name.role == "picture" for name in names), "a scene leaves remarks out, not the names of its sides"
