"""Two translations of one sentence side by side: which words differ, and how differently the model looked."""

from __future__ import annotations

import numpy as np

from model.text.word_difference import word_difference
from model.trace import AttentionMap

from ..export.parts import MARKS, Mark


def changes(before: str, after: str) -> tuple[tuple[str, Mark], ...]:
    """Runs of words of both texts in reading order, spaces included, each with its mark."""
    return tuple((run.text, MARKS[run.change]) for run in word_difference(before, after))


def attention_difference(one: AttentionMap, other: AttentionMap) -> float:
    """How differently two decodings of one sentence looked at it, 0 (the same) to 1 (nothing in common).

    Total variation distance, half the sum of |a - b| over the keys, averaged over layers, heads and the rows both have.
    """
    rows = min(one.weights.shape[2], other.weights.shape[2])
    return float(np.abs(one.weights[:, :, :rows] - other.weights[:, :, :rows]).sum(-1).mean() / 2)
