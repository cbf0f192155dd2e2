"""What the heatmap in the browser is given, and how large it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attenscope.viz.figures.figure_style import DARK, Look
from attenscope.viz.figures.heatmap import WeightGrid, make_head_grid
from attenscope.viz.web.component_scripts import FULL_UINT16, MASKED_UINT16, quantise_weights_to_uint16
from attenscope.viz.web.maps import LinkOptions, encode_heatmap
from attenscope.viz.web.maps import encode_attention_links as packed_links
from attenscope.viz.web.text_components import encode_shaded_text as packed_text
from tests.viz.fakes import attention
from tests.viz.web.test_packing import unpack

MOST = 40_000
"""Bytes of one head of 64 tokens."""


def test_weights_by_hand() -> None:
    weights = np.array([[0.0, 1.0], [0.5, np.nan]], dtype=np.float32)
    mask = np.array([[True, True], [True, False]])
    np.testing.assert_array_equal(
        quantise_weights_to_uint16(weights, mask), [[0, FULL_UINT16], [FULL_UINT16 // 2, MASKED_UINT16]]
    )


def test_a_head_of_64_tokens_is_small_and_keeps_three_decimals() -> None:
    words = tuple(f" word{i}" for i in range(64))
    one = attention("decoder", words, words, words)
    data = encode_heatmap(make_head_grid(one, 1, 2, "predicted"), Look(), "", model="toy")
    header, body = unpack(data)
    assert len(data) <= MOST
    found = np.frombuffer(body, "<u2").reshape(64, 64)
    np.testing.assert_allclose(found[one.mask] / FULL_UINT16, one.weights[1, 2][one.mask], atol=1.1 / FULL_UINT16)
    assert (found[~one.mask] == MASKED_UINT16).all()
    assert header["title"] == "Decoder self-attention · layer 2, head 3"


def test_links_and_text_of_64_tokens_are_small() -> None:
    words = tuple(f" word{i}" for i in range(64))
    one = attention("encoder", words, words, words)
    one = replace(one, weights=np.repeat(one.weights, 8 // one.heads, axis=1))
    assert len(packed_links(one, LinkOptions(0, 0), Look(), "fed", (None, None), "")) <= MOST
    assert len(packed_text(one, 0, 0, Look(), "fed", (None, None), "")) <= MOST


def test_names_colours_and_pins_travel_as_they_are() -> None:
    grid = WeightGrid(np.full((2, 1), 0.1), np.ones((2, 1), bool), (" <b>", "\t"), (" key",), "title", (1,), top=0.2)
    header, body = unpack(encode_heatmap(grid, Look(DARK, scale="log"), "in words", model="toy", pinned=(1, None)))
    assert header["rows"] == ["<b>", "␣"]
    assert header["pinned"] == [1, None]
    assert header["breaks"] == [1]
    assert header["colours"]["background"] == DARK.background
    assert (header["alt"], header["scale"], header["top"]) == ("in words", "log", 0.2)
    assert np.frombuffer(body, "<u2").tolist() == [FULL_UINT16 // 2] * 2


@pytest.mark.parametrize(("side", "written"), [(20, True), (21, False)])
def test_numbers_are_written_where_there_is_room(side: int, written: bool) -> None:
    grid = WeightGrid(np.eye(side), np.ones((side, side), bool), ("a",) * side, ("b",) * side, "")
    assert unpack(encode_heatmap(grid, Look(), "", model="", numbers=True))[0]["numbers"] is written
