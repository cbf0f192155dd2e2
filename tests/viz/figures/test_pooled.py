"""Large maps in small tiles: what is kept, what it costs, and that the page says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from model.trace import AttentionMap
from viz.components.heatmap import packed as packed_heatmap
from viz.components.overview import packed as packed_overview
from viz.components.packing import MASKED
from viz.explore.saving import DrawnView, has_all_heads
from viz.explore.saving import parts as saved_parts
from viz.explore.token_display import display_tokens
from viz.export.parts import Columns, Words
from viz.figures.heatmap import head_grid
from viz.figures.palette import LIGHT, Look
from viz.figures.pooled import POINTS, SHARPEST, block, pooled
from viz.figures.words import heatmap_in_words, overview_in_words

from ..components.test_packing import unpack

MOST_BYTES_A_WEIGHT = 1.5


def long_map(tokens: int, layers: int = 12, heads: int = 12) -> AttentionMap:
    """A causal map of random weights."""
    mask = np.tri(tokens, dtype=bool)
    weights = np.random.default_rng(0).random((layers, heads, tokens, tokens), dtype=np.float32) ** 8 * mask
    names = tuple(f" token{place}" for place in range(tokens))
    return AttentionMap("encoder", weights / weights.sum(-1, keepdims=True), names, names, mask)


def test_a_long_map_is_saved_alone_as_its_tiles_are_too_coarse_to_be_opened() -> None:
    shown = DrawnView(lambda look: [Words("the view")], follows=True)
    for tokens, beside in ((SHARPEST, True), (SHARPEST + 1, False)):
        scene: Any = SimpleNamespace(attention=long_map(tokens, 2, 2), layer=0, head=1, look=Look())
        (part,) = saved_parts(shown, scene, LIGHT, frozenset())
        assert isinstance(part, Columns) is beside
        assert has_all_heads(shown, scene) is beside


def test_a_point_is_the_largest_weight_of_its_block() -> None:
    weights = np.zeros((1, 1, SHARPEST + 1, 200), dtype=np.float32)
    weights[0, 0, 128, 199] = 0.7
    weights[0, 0, 5, 6] = 0.3
    mask = np.ones(weights.shape[-2:], dtype=bool)
    mask[:4, 4:8] = mask[0, 0] = False
    found, seen = pooled(weights, mask)
    assert block(129, 200) == 4
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
    assert pooled(weights, mask)[0].max() == 0


def test_short_maps_are_left_alone() -> None:
    weights, mask = np.ones((1, 1, SHARPEST, SHARPEST)), np.ones((SHARPEST, SHARPEST), dtype=bool)
    assert pooled(weights, mask) == (weights, mask)


@pytest.mark.parametrize("tokens", [16, 64, SHARPEST, SHARPEST + 1, 512])
def test_the_overview_is_small_at_any_length(tokens: int) -> None:
    one = long_map(tokens, 4, 8)
    data = packed_overview(one, 0, 0, Look())
    header, body = unpack(data)
    assert len(data) <= MOST_BYTES_A_WEIGHT * one.weights.size
    assert len(body) == 32 * header["queries"] * header["keys"]
    assert max(header["queries"], header["keys"]) <= (SHARPEST if tokens <= SHARPEST else POINTS)
    upper_corner = np.frombuffer(body, np.uint8).reshape(4, 8, header["queries"], header["keys"])[..., 0, -1]
    assert (upper_corner == MASKED).all()


def test_144_heads_of_512_tokens_are_under_a_megabyte_and_the_page_says_why() -> None:
    one = long_map(512)
    assert len(packed_overview(one, 0, 0, Look())) < 1_000_000
    head = packed_heatmap(head_grid(one, 0, 0, "fed"), Look(), "", model="toy")
    assert len(head) < 2.2 * one.mask.size
    assert "the largest of 8 × 8 weights" in overview_in_words(one)
    assert "averaged in colour" in heatmap_in_words(one, "fed", "sqrt")
    short = long_map(20, 1, 1)
    assert "largest" not in overview_in_words(short)
    assert "averaged" not in heatmap_in_words(short, "fed", "sqrt")


def test_what_is_hidden_or_merged_is_worked_out_once() -> None:
    one = long_map(20, 2, 2)
    first = display_tokens(one, "fed", merge=True, hide=True)
    assert display_tokens(one, "fed", merge=True, hide=True) is first
    assert display_tokens(one, "fed", merge=False, hide=True) is not first
