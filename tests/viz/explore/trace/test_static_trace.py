"""The overview of a large trace."""

from __future__ import annotations

import numpy as np

from attenscope.viz.explore.trace_page import pool_attention
from tests.viz.fakes import attention


def test_a_large_map_has_smaller_tiles_that_keep_the_largest_weight() -> None:
    one = attention("decoder", tuple("abcdefgh"), tuple("abcdefgh"))
    small = pool_attention(one, one.weights.size // 4)
    assert small.weights.shape == (*one.weights.shape[:2], 4, 4)
    np.testing.assert_array_equal(small.mask, np.tri(4, dtype=bool))
    assert small.weights[1, 2, 3, 0] == one.weights[1, 2, 6:, :2].max()
    assert pool_attention(one, one.weights.size) is one
