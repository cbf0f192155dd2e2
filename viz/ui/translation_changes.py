"""Two translations of one sentence: which words differ, and how differently the model attended."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Literal

import numpy as np

from model.trace import AttentionMap

Mark = Literal["same", "new", "gone"]
"""Of a piece of a text, beside what it was before."""


def word_changes(before: str, after: str) -> tuple[tuple[str, Mark], ...]:
    """The words of both texts in reading order: those of both, those only in `after`, those only in `before`."""
    old, new = before.split(), after.split()
    words: list[tuple[str, Mark]] = []
    for kind, i, j, k, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            words += [(word, "same") for word in old[i:j]]
        else:
            words += [(word, "gone") for word in old[i:j]] + [(word, "new") for word in new[k:end]]
    return tuple(words)


def attention_difference(first: AttentionMap, second: AttentionMap) -> float:
    """How differently two decodings of one sentence attended to it, 0 (the same) to 1 (nothing in common).

    Total variation distance, half the sum of |a - b| over the keys, averaged over layers, heads and the rows both have.
    """
    rows = min(first.weights.shape[2], second.weights.shape[2])
    return float(np.abs(first.weights[:, :, :rows] - second.weights[:, :, :rows]).sum(-1).mean() / 2)
