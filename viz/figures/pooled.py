"""Large maps made small enough for a tile of the overview. No plotly."""

from __future__ import annotations

import numpy as np

SHARPEST = 128
"""Tokens a side up to which a tile has a point for each weight."""
POINTS = 64
"""Points a side that a tile of a longer map has at most; on the page it is about as many pixels wide."""


def block(queries: int, keys: int) -> int:
    """How many queries, and how many keys, share a point of a tile."""
    longest = max(queries, keys)
    return 1 if longest <= SHARPEST else -(-longest // POINTS)


def pooled(weights: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (..., Q, K) and a mask that broadcasts, True = may attend -> both with a point for each block of them.

    A point is the largest weight of its block, so that a thin line of strong weights does not fade away, as it would
    in the mean; it is masked where the whole block is.
    """
    size = block(*mask.shape[-2:])
    if size == 1:
        return weights, mask
    rows, columns = (np.arange(0, side, size) for side in mask.shape[-2:])
    allowed = weights if mask.all() else np.where(mask, weights, 0)
    # Rows first: reduceat is quick along an axis whose neighbours lie together in memory.
    largest = np.maximum.reduceat(np.maximum.reduceat(allowed, rows, axis=-2), columns, axis=-1)
    open_ = np.logical_or.reduceat(np.logical_or.reduceat(mask, rows, axis=-2), columns, axis=-1)
    return largest, open_
