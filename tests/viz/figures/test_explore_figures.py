"""What the views of Explore hand to the browser, by its data."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import pytest

from attenscope.analysis.attention_steps import compute_attention_steps
from attenscope.analysis.flow import build_joint_attention, compute_attention_flow
from attenscope.experiments.lens import run_logit_lens
from attenscope.trace import TENSOR_NAMES, Kind
from attenscope.translate import Translator
from attenscope.viz.explore.joint_flow_lens_views import compute_flow_map
from attenscope.viz.figures.explore import (
    FLOW_KINDS,
    FlowKind,
    plot_attention_flow,
    plot_cumulative_flow_by_layer,
    plot_joint_attention,
)
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look, head_colour, readable_token, token_ticks
from attenscope.viz.figures.lens import plot_lens_grid, plot_lens_ranks
from attenscope.viz.figures.text_alternatives import describe_lens_settling_place
from attenscope.viz.web.charts import encode_attention_pipeline as packed_pipeline
from attenscope.viz.web.component_scripts import FULL_BYTE, MASKED_BYTE
from attenscope.viz.web.maps import LinkOptions
from attenscope.viz.web.maps import encode_attention_links as packed_links
from attenscope.viz.web.text_components import encode_shaded_text as packed_text
from tests import toy
from tests.viz.fakes import HEADS, FakeTranslator, attention
from tests.viz.web.test_packing import unpack

TEXT = "the old dog sees a tree today."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(toy.checkpoint(toy.random_model()))


def test_links_get_all_heads_of_the_layer_a_byte_a_weight() -> None:
    words = (" a", " a", "</s>")
    one = attention("decoder", words, words, words)
    header, body = unpack(packed_links(one, LinkOptions(2, 1, (3,), 0.1), Look(), "fed", (None, 2), "It looks back."))
    levels = np.frombuffer(body, np.uint8).reshape(HEADS, 3, 3)
    np.testing.assert_allclose(levels[:, one.mask] / FULL_BYTE, one.weights[2][:, one.mask], atol=1 / FULL_BYTE)
    assert (levels[:, ~one.mask] == MASKED_BYTE).all()
    assert header["keys"] == ["a", "a", "</s>"]
    assert (header["head"], header["beside"], header["pinned"]) == (1, [3], [None, 2])
    assert len(header["colours"]) == HEADS
    assert header["alt"] == "It looks back."


def test_text_says_which_text_is_which() -> None:
    one = attention("cross", ("<s>",), (" the", "s", "<0xC3>", "</s>"), (" der",))
    header, _ = unpack(packed_text(one, 0, 0, Look(), "predicted", (0, None), "It looks ahead."))
    assert header["query"]["title"] == "The translation"
    assert header["query"]["tokens"] == [{"text": "der", "space": True, "special": False}]
    assert [token["space"] for token in header["key"]["tokens"]] == [True, False, False, True]
    assert [token["special"] for token in header["key"]["tokens"]] == [False, False, False, True]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_heads_of_a_layer_have_colours_of_their_own(palette: object) -> None:
    assert len({head_colour(palette, head) for head in range(8)}) == 8  # type: ignore[arg-type]


def test_the_joint_picture_holds_all_three_and_marks_where_they_meet() -> None:
    trace = FakeTranslator().translate("one two three").trace
    whole = build_joint_attention(trace, 1, 2)
    figure = plot_joint_attention(whole, 1, 2)
    drawn = next(one for one in figure.data if one.name == "weights").z
    assert trace.cross is not None
    np.testing.assert_array_equal(drawn[4:, :4], trace.cross.weights[1, 2])
    assert np.isnan(drawn[:4, 4:]).all()
    assert {line.x0 for line in figure.layout.shapes if line.x0 == line.x1} == {3.5}
    assert list(figure.layout.yaxis.ticktext)[4] == "ONE"


@pytest.mark.parametrize("which", FLOW_KINDS)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_flow_of_every_kind(which: FlowKind, kind: Kind) -> None:
    trace = FakeTranslator().translate("one two three").trace
    found = (
        compute_attention_flow(trace, kind, 2) if which == "attention flow" else compute_flow_map(trace, kind, which)
    )
    figure = plot_attention_flow(found, which, 2, 3)
    drawn = next(one for one in figure.data if one.name == "weights")
    assert np.nanmax(drawn.z) <= drawn.zmax
    if which.startswith("mean"):
        np.testing.assert_allclose(np.nansum(drawn.z, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("which", ["rollout", "attention flow", "mean of heads"])
def test_the_film_of_a_flow_goes_through_one_layer_more_at_each_picture(which: FlowKind) -> None:
    trace = FakeTranslator().translate("one two three").trace
    layers = trace.maps["encoder"].layers
    assert layers > 1
    through = [
        compute_attention_flow(trace, "encoder", at)
        if which == "attention flow"
        else compute_flow_map(trace, "encoder", which)
        for at in range(layers)
    ]
    film = plot_cumulative_flow_by_layer(through, which, 0)
    drawn = [next(one for one in figure.data if one.name == "weights") for figure in film]
    alone = [
        next(one for one in plot_attention_flow(flow, which, at, 0).data if one.name == "weights")
        for at, flow in enumerate(through)
    ]
    for one, other in zip(drawn, alone, strict=True):
        np.testing.assert_array_equal(one.z, other.z)
    assert {one.zmax for one in drawn} == {max(one.zmax for one in alone)}
    titles = [figure.layout.title.text or str(figure.layout.annotations) for figure in film]
    assert all(f"layer {at}" in title for at, title in enumerate(titles, 1)), titles


def test_the_pipeline_ends_in_the_models_own_context(translator: Translator) -> None:
    result = translator.translate(TEXT, max_tokens=6)
    trace = translator.force(TEXT, result.target_ids, tensors=TENSOR_NAMES).trace
    assert trace.decoder is not None
    steps = compute_attention_steps(trace.decoder, 1, 0, 2)
    header, body = unpack(packed_pipeline(steps, "x", Look(), 6, "x looks at y."))
    numbers = np.frombuffer(body, "<f4")
    keys, width = header["keys"], header["width"]
    assert len(numbers) == 2 * width + 3 * keys * width + 3 * keys
    np.testing.assert_array_equal(numbers[-width:], steps.context)
    assert header["mask"] == [True] * 3 + [False] * (keys - 3)


def test_the_lens_ends_in_what_was_written(translator: Translator) -> None:
    result = translator.translate(TEXT, max_tokens=6)
    lens = run_logit_lens(translator, result)
    figure = plot_lens_grid(lens, pinned=1)
    shown = [html.unescape(text) for text in figure.data[0].text[-1]]
    assert shown == [readable_token(token) for token in result.target_tokens]
    assert list(plot_lens_ranks(lens, 1).data[0].x) == lens.ranks[:, 1].tolist()
    assert "first choice from" in describe_lens_settling_place(lens, 1)
    assert lens.ranks[-1].tolist() == [1] * 6
    worse = replace(lens, ranks=np.full_like(lens.ranks, 7))
    assert "rank at the end is 7" in describe_lens_settling_place(worse, 1)
    late = replace(lens, ranks=np.array([9] + [2] * (len(lens.places) - 2) + [1])[:, None].repeat(6, 1))
    said = f"first choice from {lens.places[-1]} on; its rank was 9 at the {lens.places[0]}."
    assert said in describe_lens_settling_place(late, 1)


def test_a_long_axis_names_some_tokens_and_the_pinned_one() -> None:
    assert token_ticks(("a", "b"), 0) == {"tickvals": [0, 1], "ticktext": ["<b>a</b>", "b"]}
    ticks = token_ticks([f"w{at}" for at in range(128)], 6)
    assert ticks["tickvals"][:4] == [0, 6, 12, 16]
    assert ticks["ticktext"][1] == "<b>w6</b>"


@pytest.mark.parametrize("look", [Look(), Look(DARK), Look(ramp="viridis"), Look(DARK, scale="log")])
def test_the_ink_of_a_word_is_the_one_farther_from_its_cell(look: Look) -> None:
    inks = look.choose_weight_text_colours(np.array([0.0, 1.0]))
    lightest = {LIGHT: LIGHT.background, DARK: DARK.ink}[look.palette]
    darkest = {LIGHT: LIGHT.ink, DARK: DARK.background}[look.palette]
    begins_dark = look.ramp == "viridis" or look.palette == DARK
    assert list(inks) == ([lightest, darkest] if begins_dark else [darkest, lightest])
