"""The figures of Why, by their data."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.attribution.alti_and_leave_one_out import SourceShares
from attenscope.attribution.logit import LogitPart, ResidualPart
from attenscope.evaluation.attribution import DeletionCurves
from attenscope.experiments.patching import PatchMap
from attenscope.trace import Kind
from attenscope.viz.figures.figure_style import DARK, LIGHT, Palette
from attenscope.viz.figures.heatmap import diverging_colours, negative_colour
from attenscope.viz.figures.why import (
    format_share,
    list_layer_rows_by_attention,
    plot_activation_patching,
    plot_attention_score_parts,
    plot_attribution_method_scores,
    plot_deletion_curves,
    plot_head_ablation_effects,
    plot_largest_logit_parts,
    plot_logit_parts_by_sublayer,
    plot_source_effects,
    plot_source_shares,
    sum_logit_parts_by_sublayer,
)
from attenscope.viz.web.component_scripts import FULL_BYTE
from attenscope.viz.web.text_components import SignedText, encode_signed_text
from tests.viz.web.test_packing import unpack

AWKWARD = (" <b>a", " b&c", "</s>")
PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK])


@PALETTES
def test_a_row_of_the_matrix_is_on_its_own_scale(palette: Palette) -> None:
    scores = {"leave-one-out": np.array([2.0, -4.0, 1.0, 0.5]), "attention": np.array([0.1, 0.2, 0.7])}
    correlations = {"leave-one-out": 1.0, "attention": float("nan")}
    figure = plot_attribution_method_scores(scores, AWKWARD, ("<s>",), correlations, "attention", palette)
    values = np.array(figure.data[0].z)
    np.testing.assert_allclose(values[0], [0.5, -1, 0.25, np.nan, 0.125])
    np.testing.assert_allclose(values[1], [1 / 7, 2 / 7, 1, np.nan, np.nan])
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;a", "b&amp;c", "&lt;/s&gt;", "&lt;s&gt;")
    assert figure.layout.yaxis.ticktext == ("leave-one-out", "<b>attention</b>")
    assert [one.text for one in figure.layout.annotations[1:]] == ["reference", "—"]


@PALETTES
def test_the_chosen_curve_is_drawn_last_and_thick(palette: Palette) -> None:
    values = {"alti": np.log([1.0, 0.5, 0.25]), "rollout": np.log([1.0, 0.8, 0.1])}
    curves = DeletionCurves(values, np.log([[1.0, 0.9, 0.1], [1.0, 0.7, 0.1]]), None)
    figure = plot_deletion_curves(curves, "alti", palette)
    assert [trace.name for trace in figure.data[2:]] == ["random order", "rollout", "alti"]
    np.testing.assert_allclose(figure.data[-1].y, [1, 0.5, 0.25])
    np.testing.assert_allclose(figure.data[2].y, [1, 0.8, 0.1])
    assert (figure.data[-1].line.color, figure.data[-1].line.width) == (palette.accent, 3)
    low, high = (np.array(figure.data[at].y) for at in (0, 1))
    assert (low <= high).all()


@PALETTES
def test_every_head_has_its_cell_below_the_name_of_its_attention(palette: Palette) -> None:
    falls: dict[Kind, np.ndarray] = {
        "encoder": np.array([[0.5, -2.0], [0.001, 0.0]]),
        "cross": np.array([[1.0, 0.25]]),
    }
    assert list_layer_rows_by_attention(falls) == (None, ("encoder", 0), ("encoder", 1), None, ("cross", 0))
    figure = plot_head_ablation_effects(falls, "a < b", palette)
    heat = figure.data[0]
    np.testing.assert_array_equal(np.array(heat.z)[[1, 2, 4]], [[0.5, -2.0], [0.001, 0.0], [1.0, 0.25]])
    assert np.isnan(np.array(heat.z)[[0, 3]]).all()
    assert (heat.zmin, heat.zmax) == (-2.0, 2.0)
    assert [list(row) for row in heat.text][1:3] == [["+0.50", "−2.00"], ["0.00", "0.00"]]
    assert figure.layout.yaxis.ticktext == ("", "layer 1", "layer 2", "", "layer 1")
    assert [one.y for one in figure.layout.annotations] == [0, 3]
    assert [one.text for one in figure.layout.annotations] == ["Encoder self-attention", "Cross-attention"]


@PALETTES
def test_bars_of_a_logit_have_the_colour_of_their_sign(palette: Palette) -> None:
    parts = [
        LogitPart(ResidualPart("bias"), -1.0, 1),
        LogitPart(ResidualPart("embedding"), 0.5, 1),
        LogitPart(ResidualPart("cross", 0, 0), 2.0, 1),
        LogitPart(ResidualPart("cross", 0, 1), -0.5, 1),
        LogitPart(ResidualPart("feed_forward", 0), 1.0, 1),
    ]
    sums = {"embedding": 0.5, "layer 1 cross-attention": 1.5, "layer 1 feed-forward": 1.0, "biases": -1.0}
    assert sum_logit_parts_by_sublayer(parts) == sums
    assert list(sum_logit_parts_by_sublayer(parts)) == list(sums)
    figure = plot_logit_parts_by_sublayer(parts, palette)
    assert list(figure.data[0].x) == list(sums.values())
    assert figure.data[0].marker.color == (palette.accent,) * 3 + (negative_colour(palette),)
    shown = plot_largest_logit_parts(parts[2:4], 0.5, palette)
    assert list(shown.data[0].x) == [2.0, -0.5, 0.5]
    assert shown.layout.yaxis.ticktext == (parts[2].part.name, parts[3].part.name, "all others")


def test_the_cells_of_a_score_are_those_of_the_matrix() -> None:
    cells = np.array([[1.0, -2.0], [0.01, 0.5]])
    figure = plot_attention_score_parts(("word", "<i>"), ("word", "position"), cells, LIGHT)
    np.testing.assert_allclose(figure.data[0].z, cells)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-2, 2)
    assert figure.data[1].text == ("+1.00", "−2.00", "", "+0.50")
    assert figure.layout.yaxis.ticktext == ("word", "&lt;i&gt;")


@PALETTES
def test_shares_are_stacked_to_one(palette: Palette) -> None:
    source = np.array([0.7, 0.2, 0.4])
    found = SourceShares(
        AWKWARD, source, np.zeros((3, 2)), np.zeros((3, 3)), np.array([2.0, -1.0, 0.0]), source / 2, "</s>"
    )
    figure = plot_source_shares(found, 1, palette)
    np.testing.assert_allclose(np.add(figure.data[0].y, figure.data[1].y), 1)
    np.testing.assert_allclose(figure.data[2].y, source / 2)
    assert figure.layout.xaxis.ticktext[1] == "<b>b&amp;c</b>"
    bars = plot_source_effects(found, 1, 0.5, palette)
    assert bars.data[0].marker.color == (palette.accent, negative_colour(palette), palette.accent)
    assert bars.layout.shapes[0].y0 == 0.5
    assert not plot_source_effects(found, 1, None, palette).layout.shapes


def test_patches_are_shares_of_the_difference() -> None:
    found = PatchMap(
        ("embedding", "layer 1"), (" a", " b"), np.array([[0.0, 4.0], [-2.0, 8.0]]), np.array([8.0, 6.0]), 8
    )
    figure = plot_activation_patching(found, ("a", "b/c"), "<title>", LIGHT)
    np.testing.assert_allclose(figure.data[0].z, [[0, 0.5, np.nan, 1], [-0.25, 1, np.nan, 0.75]])
    assert figure.data[1].text == ("0%", "50%", "100%", "−25%", "100%", "75%")
    assert "&lt;title&gt;" in figure.layout.title.text
    assert format_share(-0.001) == "0%"


def test_a_shaded_text_has_zero_in_the_middle_of_its_scale() -> None:
    texts = [
        SignedText("One", "note", (" <b>a", "c"), np.array([2.0, -1.0])),
        SignedText("Two", "none", ("<s>",), None),
    ]
    header, body = unpack(encode_signed_text(texts, LIGHT, "label"))
    assert list(body) == [FULL_BYTE, round(FULL_BYTE / 4), FULL_BYTE // 2]
    assert header["stops"] == list(diverging_colours(LIGHT))
    tokens = header["texts"][0]["tokens"]
    assert [one["text"] for one in tokens] == ["<b>a", "c"]
    assert [one["space"] for one in tokens] == [True, False]
    assert tokens[0]["value"] == "+2.000"
    assert header["texts"][1]["tokens"][0]["value"] == "no number"
    flat, levels = unpack(encode_signed_text([SignedText("", "", ("a",), np.zeros(1))], DARK, ""))
    assert list(levels) == [FULL_BYTE // 2]
    assert flat["inks"] == [DARK.ink, DARK.background]
