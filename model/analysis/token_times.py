"""When each token of a transcript was spoken, by the cross-attention of heads that follow the sound.

As OpenAI's Whisper tells it (Radford et al. 2022; ``timing.py`` of its code): weights are normalised over the tokens,
smoothed over time, averaged over the heads, and the best way through them that never goes back says where each token
begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FRAME_SECONDS = 0.02
"""What one position of Whisper's encoder stands for."""
MEDIAN_WIDTH = 7
"""Positions over which weights are smoothed."""


def compute_token_times(
    weights: np.ndarray,
    heads: Sequence[tuple[int, int]],
    *,
    width: int = MEDIAN_WIDTH,
    frame_seconds: float = FRAME_SECONDS,
) -> np.ndarray:
    """Return the second at which each token begins, (T,).

    Args:
        weights: cross-attention (L, H, T, S), a row for each token, S positions of the sound without its padding.
        heads: layers and heads, from 0, that follow the sound.
        width: positions over which the median is taken; an odd number.
        frame_seconds: the length of a position.
    """
    chosen = np.stack([weights[layer, head] for layer, head in heads]).astype(float)
    spread = chosen.std(1, keepdims=True)
    normal = (chosen - chosen.mean(1, keepdims=True)) / np.where(spread == 0, 1, spread)
    smooth = _filter_by_median(normal, width).mean(0)
    rows, frames = find_monotonic_path(-smooth)
    begins = np.r_[True, np.diff(rows) > 0]
    return frames[begins] * frame_seconds


def _filter_by_median(values: np.ndarray, width: int) -> np.ndarray:
    """The median over `width` neighbours along the last axis, mirrored at its ends; as it is where it is short."""
    beside = width // 2
    if values.shape[-1] <= beside:
        return values
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(beside, beside)], mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1), axis=-1)


def find_monotonic_path(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of the cheapest way through costs (T, S) from corner to corner.

    A step goes to the next row, the next column, or both (dynamic time warping).
    """
    rows, columns = costs.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0
    came = np.zeros((rows + 1, columns + 1), np.int8)
    for column in range(1, columns + 1):
        for row in range(1, rows + 1):
            both, down, right = total[row - 1, column - 1], total[row - 1, column], total[row, column - 1]
            came[row, column] = 0 if both < down and both < right else 1 if down < both and down < right else 2
            total[row, column] = costs[row - 1, column - 1] + (both, down, right)[came[row, column]]
    row, column = rows, columns
    path = []
    while row and column:
        path.append((row - 1, column - 1))
        step = came[row, column]
        row, column = row - (step != 2), column - (step != 1)
    found = np.array(path[::-1])
    return found[:, 0], found[:, 1]
