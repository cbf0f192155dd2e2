"""Two maps side by side: what one attends to more than the other, on the tokens both have. No torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from .trace import AttentionMap, TraceError
from .words import Label


@dataclass(frozen=True, eq=False)
class Difference:
    """Two maps cut down to their shared rows and columns; the rows no longer sum to 1, for nothing is rescaled."""

    first: AttentionMap
    second: AttentionMap

    @property
    def weights(self) -> np.ndarray:
        """(L, H, Q, K) second minus first, -1 to 1."""
        return self.second.weights - self.first.weights

    @property
    def mask(self) -> np.ndarray:
        """(Q, K) bool: allowed in both."""
        return self.first.mask & self.second.mask

    @property
    def largest(self) -> tuple[int, int, int, int]:
        """Layer, head, row and column, from 0, of the greatest change."""
        weights = np.abs(self.weights)
        layer, head, row, column = np.unravel_index(int(weights.argmax()), weights.shape)
        return int(layer), int(head), int(row), int(column)


def difference(first: AttentionMap, second: AttentionMap, rows: Label = "fed") -> Difference:
    """Align the tokens of two maps of one kind, in order, and keep what both have; rows by the chosen label.

    TraceError for different kinds, different numbers of layers or heads, and for sentences that share no token.
    """
    if first.kind != second.kind:
        raise TraceError(f"Only maps of one kind can be compared; these are {first.kind} and {second.kind} attention.")
    if first.weights.shape[:2] != second.weights.shape[:2]:
        raise TraceError(
            f"The first model has {first.layers} layers of {first.heads} heads, the second {second.layers} of "
            f"{second.heads}: there is no head-by-head difference. Average over heads and layers first."
        )
    queries = shared(first.rows(rows), second.rows(rows))
    keys = shared(first.key_tokens, second.key_tokens)
    if not queries or not keys:
        raise TraceError("The two sentences share no token, so there is nothing to take the difference of.")
    return Difference(
        _part(first, [one for one, _ in queries], [one for one, _ in keys]),
        _part(second, [two for _, two in queries], [two for _, two in keys]),
    )


def shared(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of tokens that both sequences have in the same order: [(in the first, in the second), ...]."""
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


def _part(attention: AttentionMap, queries: list[int], keys: list[int]) -> AttentionMap:
    predicted = attention.predicted_tokens
    return dataclasses.replace(
        attention,
        weights=attention.weights[:, :, queries][..., keys],
        query_tokens=tuple(attention.query_tokens[row] for row in queries),
        key_tokens=tuple(attention.key_tokens[column] for column in keys),
        predicted_tokens=tuple(predicted[row] for row in queries) if predicted else (),
        mask=attention.mask[np.ix_(queries, keys)],
        tensors={},
    )
