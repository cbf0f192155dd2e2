"""The page Positions: its views on a model that translates, its figures, and what it sends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from attenscope.network.layers import make_sinusoidal_table
from attenscope.positions.analysis import score_positional_heads
from attenscope.positions.experiments import PositionExperiment
from attenscope.positions.table import EmbeddingParts, extract_table, make_formula_table
from attenscope.translate import Translator
from attenscope.viz.export.share_menu import OFFERED_VIEW
from attenscope.viz.figures import positions
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.figures.heatmap import diverging_colours, negative_colour, plotly_colorscale
from attenscope.viz.page_setup import SHARE_MENU
from attenscope.viz.positions import cache as positions_cache
from attenscope.viz.positions import experiments, texts, views
from attenscope.viz.positions.controls import TableChoice
from attenscope.viz.positions.views import build_table_matrix, tabulate_encodings
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.positions import POSITIONS_TABLE_VIEWS, POSITIONS_VIEW, POSITIONS_VIEWS
from attenscope.viz.web.component_scripts import FULL_BYTE
from attenscope.viz.web.maps import MatrixData, encode_matrix
from tests import toy
from tests.viz import page_texts
from tests.viz.fakes import attention
from tests.viz.web.test_packing import unpack

PAGE = Path(__file__).resolve().parents[3] / "viz" / "pages" / "positions.py"
SENTENCE = "the old dog sees a red house today."
FIRST = ("cross", 0, 0)
"""The head that a page shows first."""


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, toy_translator: Translator) -> AppTest:
    return page(monkeypatch, toy_translator)


def page(monkeypatch: pytest.MonkeyPatch, *translators: Translator) -> AppTest:
    named = {one.name: one for one in translators}
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: list(named))
    monkeypatch.setattr(cache, "load_runnable_model", named.__getitem__)
    for cached in (
        cache.compute_translation,
        positions_cache.compute_position_experiment,
        positions_cache.compute_positional_heads,
        positions_cache.compute_experiment_log_probs,
    ):
        cached.clear()
    test = AppTest.from_file(str(PAGE), default_timeout=60)
    test.query_params["sentence"] = SENTENCE
    return test


def opened(app: AppTest, view: str, **address: str) -> AppTest:
    app.query_params.update({"plot": view, **address})
    app.run()
    assert not app.exception
    return app


def test_what_belongs_to_another_view_opens_no_view(app: AppTest) -> None:
    """It stays in the address when its view is left, and the address must show others what the visitor sees."""
    opened(app, "all", arranged="halves")
    assert app.session_state[POSITIONS_VIEW.key] == POSITIONS_VIEW.default
    assert "plot" not in app.query_params


def captions(app: AppTest) -> str:
    return " ".join(page_texts.captions(app))


def charts(app: AppTest) -> list[dict]:
    return [json.loads(one.proto.spec) for one in app.get("plotly_chart")]


def explanation(view: str, model: Translator) -> str:
    """What the caption of a view says of SENTENCE on the toy model, 64 wide with 64 positions, worked out anew."""
    result = model.translate(SENTENCE)
    turns = 10000.0 ** (-np.arange(0, 64, 2) / 64)
    before = np.exp(np.mean([step.log_prob for step in result.steps]))
    head = next(one for one in score_positional_heads(model, result).scores if (one.kind, one.layer, one.head) == FIRST)
    return {
        "table": f"The table holds {np.sin(12 * turns[2]):.6f}, off by",
        "waves": f"{(2 * np.pi / turns <= 64).sum()} of 32 pairs complete a turn within the 64 positions",
        "similarity": f"Positions 12 and 20, 8 apart: cosine {np.cos(8 * turns).mean():.3f}.",
        "rotation": "|M·PE(pos) − PE(pos + 8)| is at most",
        "precision": "from the float64 formula, at position",
        "sentence": f"beside an encoding of {np.sqrt(32):.2f}.",
        "experiments": f"the model gave each piece {before:.0%} before and",
        "heads": f"{head.stays:.0%} of its attention stays at its place",
    }[view]


@pytest.mark.parametrize("view", POSITIONS_VIEWS)
def test_every_view_is_drawn_and_explained(app: AppTest, toy_translator: Translator, view: str) -> None:
    opened(app, view)
    assert not app.info
    assert explanation(view, toy_translator) in captions(app)
    for error in re.findall(r"at most ([\d.]+e-?\d+)", captions(app), re.IGNORECASE):
        assert float(error) < 1e-6


def test_a_view_without_dimensions_is_not_handed_out(app: AppTest) -> None:
    opened(app, "waves")
    assert OFFERED_VIEW in app.session_state
    app.session_state[SHARE_MENU] = True
    app.multiselect(key="dims").set_value([]).run()
    assert [one.value for one in app.info] == ["Choose at least one dimension above."]
    assert OFFERED_VIEW not in app.session_state


def test_a_cell_is_worked_out_with_its_numbers(app: AppTest) -> None:
    opened(app, "table", pos="3", dim="4")
    angle = 3 / 10000 ** (4 / 64)
    equation = app.latex[0].value
    assert f"{angle:.6g}" in equation
    assert f"{np.sin(angle):.6f}" in equation
    assert "10000^{\\,4/64}" in equation


def test_a_table_by_formula_has_the_sizes_asked_for(app: AppTest) -> None:
    opened(app, "table", table="sinusoidal with PAD row", d_model="7", positions="9", base="100", pos="0")
    assert app.number_input(key="dim").max == 6
    assert app.number_input(key="pos").max == 9
    assert "PAD's row is all zero" in captions(app)


def test_a_smaller_table_takes_the_chosen_cell_with_it(app: AppTest) -> None:
    opened(app, "table", table="sinusoidal", pos="120", dim="500")
    assert app.number_input(key="dim").value == 500
    app.number_input(key="d_model").set_value(6).run()
    assert not app.exception
    assert app.number_input(key="dim").value == 5


@pytest.mark.parametrize(
    ("key", "nonsense", "default"),
    [
        *(("positions", "99999", 128), ("pos", "-4", 12), ("dim", "x", 4)),
        *(("table", "none", "own"), ("form", "guess", "float64")),
    ],
)
def test_nonsense_in_the_address_falls_back(app: AppTest, key: str, nonsense: str, default: object) -> None:
    opened(app, **{"view": "table", "table": "sinusoidal"} | {key: nonsense})
    assert app.session_state[key] == default
    assert nonsense not in app.query_params.get(key, [])
    assert "The table holds" in captions(app)


@pytest.mark.parametrize("view", POSITIONS_TABLE_VIEWS)
@pytest.mark.parametrize(("d_model", "positions"), [("1", "2"), ("2", "2"), ("7", "3")])
def test_the_smallest_tables_are_drawn(app: AppTest, view: str, d_model: str, positions: str) -> None:
    opened(app, view, table="sinusoidal", d_model=d_model, positions=positions)
    assert not app.error
    assert bool(app.info) == (view == "rotation" and d_model == "1")


def test_without_a_sentence_tables_are_still_shown(app: AppTest) -> None:
    opened(app, "table", sentence=" ")
    assert "pieces of your sentence" not in captions(app)
    app.button(key="view heads").click().run()
    assert "nothing to translate" in app.info[0].value


def test_experiments_show_the_translation_before_and_after(app: AppTest) -> None:
    opened(app, "experiments", move="remove")
    shown = " ".join(one.proto.body for one in app.get("html"))
    assert "der alte Hund" in shown
    assert 'class="new"' in shown
    assert "Fed its old translation" in captions(app)
    assert "Without positions the model does not know the order" in captions(app)
    assert len(charts(app)) == 1


def test_the_words_that_are_left_are_counted_in_their_order() -> None:
    removed, shifted = PositionExperiment("remove"), PositionExperiment("shift", amount=3)
    say = experiments.describe_words_kept_in_order
    assert say(removed, "Der Hund schläft.", "Der Mann schläft.", "translation").endswith(
        "2 of 3 words of its translation are left in their order. Gone or moved: Hund."
    )
    assert say(removed, "a b c d e f g h", "h", "translation").endswith("Gone or moved: a, b, c, d, e, f, and 1 more.")
    assert say(removed, "Der Hund", "Der Hund", "translation") == experiments.STILL_THE_SAME_TEXTS["translation"]
    assert say(shifted, "Der Hund", "Der Hund", "translation") == experiments.UNCHANGED_TEXTS["translation"]
    assert say(shifted, "Der Hund", "Hund Der", "translation") == (
        "With these positions 1 of 2 words of its translation are left in their order. Gone or moved: Hund."
    )


@pytest.mark.parametrize("move", ["shift", "reverse", "shuffle", "stretch", "swap", "beyond"])
def test_every_experiment_runs(app: AppTest, move: str) -> None:
    opened(app, "experiments", move=move)
    assert not app.info
    said = experiments.EXPERIMENT_TEXTS.get(
        move, "The sentence begins at position 64, past the 64 positions of the model's table."
    )
    assert said in captions(app)
    assert len(charts(app)) == (2 if move in ("shift", "stretch", "beyond") else 1)


def test_a_learned_table_past_its_end_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = Translator(toy.checkpoint(toy.random_model(positions="learned")))
    app = opened(page(monkeypatch, learned), "experiments", move="beyond")
    assert "its table ends at position 63" in app.info[0].value.replace("\\", "")
    for view in ("table", "waves", "similarity", "rotation", "precision", "sentence", "heads"):
        app.session_state["plot"] = view
        app.run()
        assert not app.exception
        assert not app.info
    app.button(key="view similarity").click().run()
    profile = next(one for one in app.get("bidi_component") if one.key == "profile")
    assert b"learned, {x} apart" in profile.proto.SerializeToString()


def choice(positions: int = 40, d_model: int = 16, **more: object) -> TableChoice:
    made = make_formula_table(positions, d_model, **more)  # type: ignore[arg-type]
    return TableChoice(made, "by formula", False, "float64", made.real, 5)


def test_the_table_is_at_most_one_and_a_half_bytes_a_value() -> None:
    shown = build_table_matrix(choice(512, 512), np.arange(512))
    assert len(encode_matrix(shown, (12, 4))) <= 1.1 * shown.values.size


def test_bytes_are_the_values_to_a_step() -> None:
    shown = build_table_matrix(choice(), np.arange(16)[::-1])
    header, body = unpack(encode_matrix(shown, (1, 2)))
    sent = np.frombuffer(body, np.uint8).reshape(40, 16)
    decoded = header["low"] + (header["high"] - header["low"]) * sent / FULL_BYTE
    np.testing.assert_allclose(decoded, make_sinusoidal_table(40, 16).numpy()[:, ::-1], atol=2 / FULL_BYTE)
    assert header["columnNames"] == list(range(16))[::-1]
    assert header["marks"] == [4]
    assert header["chosen"] == [1, 2]


def test_the_saved_table_is_the_models_own_to_1e_6() -> None:
    model = toy.random_model(positions="sinusoidal_pad_row", d_model=14)
    own = extract_table(model.source_embedding.positional_encoding)
    frame = tabulate_encodings(TableChoice(own, "toy", True, "float64", own.real, None))
    assert frame.index[0] == "PAD"
    assert not frame.iloc[0].any()
    np.testing.assert_allclose(frame.iloc[1:].to_numpy(), make_sinusoidal_table(64, 14), atol=1e-6)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_zero_is_the_pages_own_background(palette: type) -> None:
    stops = diverging_colours(palette)  # type: ignore[arg-type]
    assert stops[len(stops) // 2] == palette.background  # type: ignore[attr-defined]
    assert (stops[0], stops[-1]) == (negative_colour(palette), palette.full)  # type: ignore[arg-type, attr-defined]
    assert [at for at, _ in plotly_colorscale(stops)][:: len(stops) // 2] == [0, 0.5, 1]


@pytest.mark.parametrize("pairs", [1, 3, 256])
def test_the_chosen_pair_is_among_the_circles(pairs: int) -> None:
    found = views.pick_evenly_spaced_dimension_pairs(pairs, min(5, pairs - 1))
    assert min(5, pairs - 1) in found
    assert len(found) == len(set(found)) == min(8, pairs)
    assert found == sorted(found)


@pytest.mark.parametrize("width", [1, 2, 7, 512])
def test_the_first_waves_are_dimensions_that_exist(width: int) -> None:
    assert all(0 <= dimension < width for dimension in views.pick_default_wave_dimensions(width))


def test_the_three_panels_share_their_rows_and_the_third_is_the_difference() -> None:
    tokens = ("<s>", " a", " <b>x")
    old, new = attention("decoder", tokens, tokens, seed=1), attention("decoder", tokens, tokens, seed=2)
    figure = positions.plot_head_in_two_maps([("before", old), ("after", new)], 1, 2, Look(), "fed", difference=True)
    cells = [
        trace
        for trace in figure.data
        if trace.type == "heatmap" and trace.zmax is not None and trace.hoverongaps is False
    ]
    change = np.where(old.mask, new.weights[1, 2] - old.weights[1, 2], np.nan)
    np.testing.assert_allclose(cells[2].z, change, atol=1e-6)
    assert (cells[2].zmin, cells[2].zmax) == (-1, 1)
    assert figure.layout.xaxis.ticktext[2] == "&lt;b&gt;x"
    assert figure.layout.yaxis3.range == figure.layout.yaxis.range


def test_lengths_are_of_the_vectors() -> None:
    tokens, encoding = np.array([[3.0, 4.0]]), np.array([[0.0, 2.0]])
    parts = EmbeddingParts((" a",), tokens, encoding, tokens + encoding, 2.0)
    figure = positions.plot_embedding_lengths(parts, 0, LIGHT)
    assert [float(trace.y[0]) for trace in figure.data] == [5.0, 2.0, 2.5]
    assert "from 2.50 (the mark) to 5.00" in texts.describe_embedding_norms(parts)
    assert parts.share[0] == pytest.approx(2 / 7)


@pytest.mark.parametrize(("count", "chosen"), [(40, 3), (41, 0), (60, 7), (200, 199)])
def test_of_many_pieces_every_nth_is_named_and_the_chosen_one(count: int, chosen: int) -> None:
    vectors = np.ones((count, 2))
    parts = EmbeddingParts(tuple(map(str, range(count))), vectors, vectors, 2 * vectors, 1.0)
    axis = positions.plot_embedding_lengths(parts, chosen, LIGHT).layout.xaxis
    apart = np.diff(axis.tickvals)
    assert chosen in axis.tickvals
    assert apart.min() >= -(-count // 40)
    assert len(axis.tickvals) >= count / -(-count // 40) - 2
    assert [one.strip("</b>") for one in axis.ticktext] == [str(at) for at in axis.tickvals]


def test_uniqueness_is_said_either_way() -> None:
    found = positions_cache.find_nearest_positions(make_sinusoidal_table(20, 8).numpy())
    one, other = sorted(found.pair)
    assert texts.describe_position_uniqueness(found, 20, 1).startswith(
        f"Unique: of all 20 positions of the table, the two most alike are {one + 1} and {other + 1}, "
    )
    twice = positions_cache.find_nearest_positions(torch.zeros(3, 4).numpy())
    assert re.search(r"Not unique: .*, 0 and 1 have the very same row", texts.describe_position_uniqueness(twice, 3, 0))
    assert re.search(r"Not unique: .*, 1 and 2 have the very same row", texts.describe_position_uniqueness(twice, 3, 1))


def test_a_translation_is_only_text() -> None:
    made = experiments.build_translation_comparison_html(
        "<b>old</b>", [("<script>", "new"), (" &", "same"), (" gone", "gone")]
    )
    assert '<span class="new">&lt;script&gt;</span> &amp;' in made
    assert "&lt;b&gt;old" in made
    assert "gone" not in made


def test_the_matrix_asks_nothing_of_its_values() -> None:
    shown = MatrixData(np.zeros((1, 1)), "t", ["<b>"], ["x"], "r", "c", -1, 1, ("#000000", "#ffffff"))
    header, body = unpack(encode_matrix(shown))
    assert header["rowNames"] == ["<b>"]
    assert header["chosen"] is None
    assert list(body) == [127]


def test_a_sentence_of_a_link_that_is_too_long_is_said_to_be_left_out(app: AppTest) -> None:
    app = opened(app, "sentence", sentence="a" * 40_001)
    assert "The link's sentence has more than 40,000 characters, so it was left out." in captions(app)
