"""Two translations of one sentence side by side: which words differ, and how differently the model looked."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np

from model.trace import AttentionMap

from ..export.parts import Mark


def changes(before: str, after: str) -> tuple[tuple[str, Mark], ...]:
    """The words of both texts in reading order: those of both, those only in `after`, those only in `before`."""
    old, new = before.split(), after.split()
    found: list[tuple[str, Mark]] = []
    for kind, i, j, k, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [(word, "same") for word in old[i:j]]
        else:
            found += [(word, "gone") for word in old[i:j]] + [(word, "new") for word in new[k:end]]
    return tuple(found)


def attention_difference(one: AttentionMap, other: AttentionMap) -> float:
    """How differently two decodings of one sentence looked at it, 0 (the same) to 1 (nothing in common).

    Total variation distance, half the sum of |a - b| over the keys, averaged over layers, heads and the rows both have.
    """
    rows = min(one.weights.shape[2], other.weights.shape[2])
    return float(np.abs(one.weights[:, :, :rows] - other.weights[:, :, :rows]).sum(-1).mean() / 2)
