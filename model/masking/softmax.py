"""Softmax over the keys, also of rows in which every key is blocked. No torch."""

from __future__ import annotations

import numpy as np


def softmax(scores: np.ndarray, nan_rows: bool = False) -> np.ndarray:
    """Return the softmax of scores (..., K) over the last axis.

    A row of nothing but -inf gives zeros, or with ``nan_rows`` NaN as torch does.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        largest = scores.max(-1, keepdims=True)
        exponentials = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
        total = exponentials.sum(-1, keepdims=True)
        empty = np.nan if nan_rows else np.where(total == 0, 0, np.nan)
        return np.where(total > 0, exponentials / np.where(total > 0, total, 1), empty)
