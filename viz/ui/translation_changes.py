"""Two translations of one sentence: which words differ, and how differently the model attended."""

from __future__ import annotations

from typing import Literal

import numpy as np

from model.text.word_difference import word_difference
from model.trace import AttentionMap

Mark = Literal["same", "new", "gone"]
"""The mark of a piece of a text, beside what it was before."""
MARKS: dict[str, Mark] = {"same": "same", "removed": "gone", "added": "new"}
"""The mark of each :class:`model.text.word_difference.WordChange`."""


def word_changes(before: str, after: str) -> tuple[tuple[str, Mark], ...]:
    """Runs of words of both texts in reading order, spaces included, each with its mark."""
    return tuple((run.text, MARKS[run.change]) for run in word_difference(before, after))


def attention_difference(first: AttentionMap, second: AttentionMap) -> float:
    """How differently two decodings of one sentence attended to it, 0 (the same) to 1 (nothing in common).

    Total variation distance, half the sum of |a - b| over the keys, averaged over layers, heads and the rows both have.
    """
    rows = min(first.weights.shape[2], second.weights.shape[2])
    return float(np.abs(first.weights[:, :, :rows] - second.weights[:, :, :rows]).sum(-1).mean() / 2)
