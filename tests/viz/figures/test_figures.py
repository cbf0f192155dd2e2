"""Figures by their data."""

from __future__ import annotations

import base64
import dataclasses
import json

import numpy as np
import plotly.graph_objects as go
import pytest

from attenscope.analysis.flow import JointAttention
from attenscope.trace import AttentionMap
from attenscope.viz.figures.explore import describe_joint_strongest_links, describe_strongest_flow_link
from attenscope.viz.figures.figure_style import (
    DARK,
    LIGHT,
    RAMPS,
    Look,
    Palette,
    blend_colours,
    quote_token,
    readable_token,
    token_label,
)
from attenscope.viz.figures.heatmap import (
    FEWEST_CELLS,
    choose_signed_text_colours,
    diverging_colours,
    hatch_lines,
    heatmap,
    make_head_grid,
    plot_weight_grid,
)
from attenscope.viz.figures.text_alternatives import (
    describe_pinned_row,
    describe_strongest_head_link,
    explain_heatmap_reading,
)
from tests.viz.fakes import HEADS, LAYERS, attention

SOURCE = (" the", " cat", " the", "</s>")
FED = ("<s>", " die", " Katze")
PREDICTED = (" die", " Katze", "</s>")


@pytest.fixture
def cross() -> AttentionMap:
    return attention("cross", FED, SOURCE, PREDICTED)


@pytest.fixture
def decoder() -> AttentionMap:
    return attention("decoder", FED, FED, PREDICTED)


def trace_named(figure: go.Figure, name: str) -> dict:
    return next(one.to_plotly_json() for one in figure.data if one.name == name)


def test_a_heatmap_holds_the_weights_of_its_head(cross: AttentionMap) -> None:
    for layer in range(LAYERS):
        for head in range(HEADS):
            drawn = trace_named(heatmap(cross, layer, head), "weights")
            np.testing.assert_array_equal(drawn["z"], cross.weights[layer, head])


def test_repeated_tokens_keep_their_columns(cross: AttentionMap) -> None:
    axis = heatmap(cross, 0, 0).layout.xaxis
    assert list(axis.tickvals) == [0, 1, 2, 3]
    assert list(axis.ticktext) == ["the", "cat", "the", "&lt;/s&gt;"]


def test_queries_go_down_and_keys_across(cross: AttentionMap) -> None:
    layout = heatmap(cross, 0, 0).layout
    assert layout.yaxis.range[0] > layout.yaxis.range[1]
    assert layout.xaxis.range[0] < layout.xaxis.range[1]
    assert layout.xaxis.side == "top"


def test_rows_are_named_by_the_token_predicted_or_fed_in(cross: AttentionMap) -> None:
    assert list(heatmap(cross, 0, 0).layout.yaxis.ticktext) == ["die", "Katze", "&lt;/s&gt;"]
    assert list(heatmap(cross, 0, 0, rows="fed").layout.yaxis.ticktext) == ["&lt;s&gt;", "die", "Katze"]


def test_masked_cells_have_no_weight_and_their_own_layer(decoder: AttentionMap) -> None:
    figure = heatmap(decoder, 0, 0)
    np.testing.assert_array_equal(np.isnan(trace_named(figure, "weights")["z"]), ~decoder.mask)
    masked = trace_named(figure, "masked")
    np.testing.assert_array_equal(masked["z"], ~decoder.mask)
    assert "may not attend" in masked["hovertemplate"]


def test_without_masked_cells_only_the_weights_are_drawn(cross: AttentionMap) -> None:
    assert [one.name for one in heatmap(cross, 0, 0).data] == ["weights"]


def test_an_empty_row_is_masked_all_along() -> None:
    mask = np.array([[True, True], [False, False]])
    weights = np.array([[[[0.5, 0.5], [0, 0]]]], dtype=np.float32)
    one = AttentionMap("cross", weights, ("a", "b"), ("x", "y"), mask)
    assert np.isnan(trace_named(heatmap(one, 0, 0), "weights")["z"][1]).all()
    assert "1 row may attend to nothing that is shown" in explain_heatmap_reading(one, "fed", "sqrt")
    assert (
        describe_pinned_row(one, 0, 0, 1, "fed") == f"Pinned: {quote_token('b')} may attend to nothing that is shown."
    )


def test_rows_that_do_not_sum_to_1_are_said_to_sum_to_what_they_do() -> None:
    mask = np.array([[True, True, False], [True, True, True], [False, False, False], [True, False, False]])
    weights = np.array([[0.25, 0.25, 0], [0.5, 0.25, 0.2], [0, 0, 0], [1, 0, 0]], np.float32)
    one = AttentionMap("encoder", weights[None, None], ("a", "b", "c", "d"), ("a", "b", "c"), mask)
    assert "Rows sum to 0.50 to 1.00." in explain_heatmap_reading(one, "fed", "sqrt")
    rounded = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-9)
    half = dataclasses.replace(one, weights=rounded.astype(np.float16).astype(np.float32)[None, None])
    assert "A row sums to 1." in explain_heatmap_reading(half, "fed", "sqrt")


def test_rows_with_hidden_columns_are_said_to_sum_to_1_where_they_do_together() -> None:
    weights = np.array([[[[0.5, 0.25], [0.25, 0.25]]]], np.float32)
    one = AttentionMap("encoder", weights, ("a", "b"), ("a", "b"), np.ones((2, 2), bool))
    together = "A row sums to 1 together with its weights on special tokens, which are hidden."
    for whole_sums, said in ((np.ones(2), together), (np.array([1, 0.6]), "Rows sum to 0.50 to 0.75.")):
        assert said in explain_heatmap_reading(one, "fed", "sqrt", hides_keys=True, whole_sums=whole_sums)


def test_hatch_of_two_by_two_by_hand() -> None:
    x, y = hatch_lines(np.array([[True, False], [True, True]]))
    # One stroke through the cell in row 0, column 1: from its lower left to its upper right corner (rows go down).
    np.testing.assert_array_equal(x, np.array([0.5, 1.5, np.nan], dtype=np.float32))
    np.testing.assert_array_equal(y, np.array([0.5, -0.5, np.nan], dtype=np.float32))


def test_hatch_strokes_cover_each_masked_cell_once() -> None:
    mask = np.random.default_rng(0).random((7, 9)) < 0.5
    x, y = hatch_lines(mask)
    covered = np.zeros_like(mask, dtype=int)
    for start in range(0, len(x), 3):
        for step in range(round(x[start + 1] - x[start])):
            covered[round(y[start] - 0.5) - step, round(x[start] + 0.5) + step] += 1
    np.testing.assert_array_equal(covered, ~mask)


def test_a_causal_mask_costs_at_most_two_strokes_a_row() -> None:
    x, _ = hatch_lines(np.tri(64, dtype=bool))
    assert len(x) / 3 <= 2 * 64


def test_a_pinned_row_is_outlined_and_bold(cross: AttentionMap) -> None:
    layout = heatmap(cross, 0, 0, pinned=1).layout
    assert (layout.shapes[0].y0, layout.shapes[0].y1) == (0.5, 1.5)
    assert list(layout.yaxis.ticktext)[1] == "<b>Katze</b>"


def test_a_figure_names_kind_layer_head_and_model(cross: AttentionMap) -> None:
    title = heatmap(cross, 1, 2, model="a<b").layout.title.text
    for part in ("Cross-attention", "layer 2", "head 3", "a&lt;b"):
        assert part in title


def test_cells_of_a_short_sentence_are_not_blown_up(cross: AttentionMap) -> None:
    low, high = plot_weight_grid(make_head_grid(cross, 0, 0, "predicted"), Look()).layout.xaxis.range
    assert high - low == FEWEST_CELLS


def test_a_head_of_64_tokens_is_at_most_40_kb() -> None:
    words = tuple(f" word{i}" for i in range(64))
    assert len(heatmap(attention("decoder", words, words, words), 0, 0).to_json()) <= 40_000


def test_weights_travel_as_bytes(cross: AttentionMap) -> None:
    z = json.loads(heatmap(cross, 0, 0).to_json())["data"][0]["z"]
    np.testing.assert_array_equal(
        np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape(3, 4), cross.weights[0, 0]
    )


def test_the_ramp_starts_at_the_page_and_ends_at_full() -> None:
    for palette in (LIGHT, DARK):
        assert Look(palette).stops[0] == palette.background
        assert Look(palette).stops[-1] == palette.full


def test_square_root_moves_the_stops_not_the_weights() -> None:
    middle = Look().stops[8]
    assert (0.5, middle) in Look(scale="linear").colorscale
    assert (0.25, middle) in Look(scale="sqrt").colorscale


@pytest.mark.parametrize("ramp", RAMPS)
def test_every_ramp_is_hex_from_0_to_1(ramp: str) -> None:
    look = Look(ramp=ramp)  # type: ignore[arg-type]
    assert all(stop.startswith("#") and len(stop) == 7 for stop in look.stops)
    assert (look.colorscale[0][0], look.colorscale[-1][0]) == (0, 1)


def test_blend_of_black_and_white_in_oklab() -> None:
    # Lightness 0.5 is linear 0.5³ = 0.125, which sRGB writes as 0x63.
    assert blend_colours("#000000", "#ffffff", 3) == ("#000000", "#636363", "#ffffff")


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" cat", "cat"),
        (" ", "␣"),
        ("", "␣"),
        ("\t", "␣"),
        ("a\u0007b", "a\\u0007b"),
        ("\u202eabc", "\\u202eabc"),
        (" 你好", "你好"),
    ],
)
def test_readable(token: str, shown: str) -> None:
    assert readable_token(token) == shown


def test_labels_are_escaped_and_cut() -> None:
    assert token_label("<script>") == "&lt;script&gt;"
    assert token_label("Donaudampfschifffahrt") == "Donaudampf…"
    assert token_label("abcdefghijk") == "abcdefghijk"
    assert token_label("我昨天在图书馆读了") == "我昨天在图…"


def test_words_name_the_strongest_link() -> None:
    weights = np.zeros((1, 1, 2, 2), dtype=np.float32)
    weights[0, 0] = [[0.25, 0.75], [0.4, 0.6]]
    one = AttentionMap("cross", weights, ("<s>", " a"), (" x", " y"), np.ones((2, 2), bool), (" a", " b"))
    a, b, x, y = map(quote_token, "abxy")
    assert (
        describe_strongest_head_link(one, 0, 0, "predicted")
        == f"Layer 1, head 1: its strongest link is {a} → {y}, 0.75."
    )
    assert describe_pinned_row(one, 0, 0, 1, "predicted") == f"Pinned: {b} looks at {y} 0.60, {x} 0.40."
    assert describe_pinned_row(one, 0, 0, 1, "fed") == f"Pinned: {a} looks at {y} 0.60, {x} 0.40."


@pytest.mark.parametrize(
    ("weights", "named"),
    [([0.9, 0.096, 0.004], "xy"), ([0.004, 0.003, 0.0], "xy"), ([0.0, 0.0, 0.0], "")],
)
def test_a_row_names_no_key_at_0_00_beside_others(weights: list[float], named: str) -> None:
    one = AttentionMap("cross", np.array([[[weights]]]), (" a",), (" x", " y", " z"), np.ones((1, 3), bool))
    said = describe_pinned_row(one, 0, 0, 0, "fed")
    assert [quote_token(key) in said for key in "xyz"] == [key in named for key in "xyz"]
    assert ("nothing" in said) == (not named)


def test_words_say_how_many_links_tie() -> None:
    weights = np.full((1, 1, 2, 2), 0.5, dtype=np.float32)
    weights[0, 0, 0] = [0.25, 0.75]
    weights[0, 0, 1] = [0.75 - 1e-7, 0.25]  # within the rounding of float32
    one = AttentionMap("cross", weights, ("<s>", " a"), (" x", " y"), np.ones((2, 2), bool), (" a", " b"))
    a, y = map(quote_token, "ay")
    tied = f"Layer 1, head 1: 2 links tie as its strongest, 0.75; the first is {a} → {y}."
    assert describe_strongest_head_link(one, 0, 0, "predicted") == tied
    tied = f"2 of 4 cells tie at the greatest value, 0.75; the first is {a} → {y}."
    assert describe_strongest_flow_link(one, 0, 0, "predicted") == tied
    alone = dataclasses.replace(one, weights=weights * np.array([[1, 1], [0.9, 1]], dtype=np.float32))
    assert describe_strongest_flow_link(alone, 0, 0, "predicted") == f"The strongest link is {a} → {y}, 0.75."


def test_all_three_attentions_say_which_of_their_links_tie() -> None:
    tokens = (" x", " y", " a", " b")
    weights = np.zeros((4, 4), dtype=np.float32)
    weights[:2, :2] = np.array([[0.6, 0.4], [0.4, 0.6]])
    weights[2:, :2] = np.array([[0.9, 0.1]] * 2)
    weights[2:, 2:] = np.array([[1, 0], [0.2, 0.8]])
    said = describe_joint_strongest_links(JointAttention(weights, weights > 0, tokens, tokens, tokens, 2), "predicted")
    tied = "Links that tie as the strongest, of which the first is named: "
    assert said.endswith(f"{tied}Encoder self-attention: 2, Cross-attention: 2.")


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_numbers_are_read_on_every_colour_of_both_signs(palette: Palette) -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    stops = diverging_colours(palette)
    inks = choose_signed_text_colours(np.linspace(-1, 1, len(stops)), palette)
    for ink, under in zip(inks, stops, strict=True):
        dark, bright = sorted((luminance(ink), luminance(under)))
        assert bright / dark >= 4, (ink, under)
