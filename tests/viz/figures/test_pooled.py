"""Large maps in small tiles: what is kept, what it costs, and that the page says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attenscope.trace import AttentionMap
from attenscope.viz.explore.saving import DrawnView, includes_all_heads_in_file
from attenscope.viz.explore.saving import build_view_parts as saved_parts
from attenscope.viz.explore.view_data import display_tokens
from attenscope.viz.export.parts import Columns, Words
from attenscope.viz.figures.figure_style import LIGHT, Look
from attenscope.viz.figures.heatmap import (
    LONGEST_UNPOOLED,
    MOST_POINTS,
    make_head_grid,
    pool_weights,
    pooling_block_size,
)
from attenscope.viz.figures.text_alternatives import describe_head_overview, explain_heatmap_reading
from attenscope.viz.web.component_scripts import MASKED_BYTE
from attenscope.viz.web.maps import encode_heads_overview as packed_overview
from attenscope.viz.web.maps import encode_heatmap as packed_heatmap
from tests.viz.web.test_packing import unpack

MOST_BYTES_A_WEIGHT = 1.5


def long_map(tokens: int, layers: int = 12, heads: int = 12) -> AttentionMap:
    """A causal map of random weights."""
    mask = np.tri(tokens, dtype=bool)
    weights = np.random.default_rng(0).random((layers, heads, tokens, tokens), dtype=np.float32) ** 8 * mask
    names = tuple(f" token{place}" for place in range(tokens))
    return AttentionMap("encoder", weights / weights.sum(-1, keepdims=True), names, names, mask)


def test_a_long_map_is_saved_alone_as_its_tiles_are_too_coarse_to_be_opened() -> None:
    shown = DrawnView(lambda look: [Words("the view")], follows=True)
    for tokens, beside in ((LONGEST_UNPOOLED, True), (LONGEST_UNPOOLED + 1, False)):
        scene: Any = SimpleNamespace(attention=long_map(tokens, 2, 2), layer=0, head=1, look=Look())
        (part,) = saved_parts(shown, scene, LIGHT, frozenset())
        assert isinstance(part, Columns) is beside
        assert includes_all_heads_in_file(shown, scene) is beside


def test_a_point_is_the_largest_weight_of_its_block() -> None:
    weights = np.zeros((1, 1, LONGEST_UNPOOLED + 1, 200), dtype=np.float32)
    weights[0, 0, 128, 199] = 0.7
    weights[0, 0, 5, 6] = 0.3
    mask = np.ones(weights.shape[-2:], dtype=bool)
    mask[:4, 4:8] = mask[0, 0] = False
    found, seen = pool_weights(weights, mask)
    assert pooling_block_size(129, 200) == 4
    assert found.shape == (1, 1, 33, 50)
    assert found[0, 0, 32, 49] == np.float32(0.7)
    assert found[0, 0, 1, 1] == np.float32(0.3)
    assert found.sum() == np.float32(1.0)
    assert not seen[0, 1]  # all of the block is masked
    assert seen[0, 0]  # some of it is


def test_a_weight_under_the_mask_is_never_the_largest() -> None:
    weights = np.zeros((1, 1, 256, 256), dtype=np.float32)
    weights[0, 0, 0, 1] = 0.9
    mask = np.ones((256, 256), dtype=bool)
    mask[0, 1] = False
    assert pool_weights(weights, mask)[0].max() == 0


def test_short_maps_are_left_alone() -> None:
    weights, mask = (
        np.ones((1, 1, LONGEST_UNPOOLED, LONGEST_UNPOOLED)),
        np.ones((LONGEST_UNPOOLED, LONGEST_UNPOOLED), dtype=bool),
    )
    assert pool_weights(weights, mask) == (weights, mask)


@pytest.mark.parametrize("tokens", [16, 64, LONGEST_UNPOOLED, LONGEST_UNPOOLED + 1, 512])
def test_the_overview_is_small_at_any_length(tokens: int) -> None:
    one = long_map(tokens, 4, 8)
    data = packed_overview(one, 0, 0, Look())
    header, body = unpack(data)
    assert len(data) <= MOST_BYTES_A_WEIGHT * one.weights.size
    assert len(body) == 32 * header["queries"] * header["keys"]
    assert max(header["queries"], header["keys"]) <= (LONGEST_UNPOOLED if tokens <= LONGEST_UNPOOLED else MOST_POINTS)
    upper_corner = np.frombuffer(body, np.uint8).reshape(4, 8, header["queries"], header["keys"])[..., 0, -1]
    assert (upper_corner == MASKED_BYTE).all()


def test_144_heads_of_512_tokens_are_under_a_megabyte_and_the_page_says_why() -> None:
    one = long_map(512)
    assert len(packed_overview(one, 0, 0, Look())) < 1_000_000
    head = packed_heatmap(make_head_grid(one, 0, 0, "fed"), Look(), "", model="toy")
    assert len(head) < 2.2 * one.mask.size
    assert "the largest of 8 × 8 weights" in describe_head_overview(one)
    assert "averaged in colour" in explain_heatmap_reading(one, "fed", "sqrt")
    short = long_map(20, 1, 1)
    assert "largest" not in describe_head_overview(short)
    assert "averaged" not in explain_heatmap_reading(short, "fed", "sqrt")


def test_what_is_hidden_or_merged_is_worked_out_once() -> None:
    one = long_map(20, 2, 2)
    first = display_tokens(one, "fed", merge=True, hide=True)
    assert display_tokens(one, "fed", merge=True, hide=True) is first
    assert display_tokens(one, "fed", merge=False, hide=True) is not first
