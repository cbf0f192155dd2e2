"""Two maps side by side: what one attends to more than the other, on the tokens both have. No torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from ..language.say import say
from ..text.words import Label
from ..trace import AttentionMap, TraceError

Pairs = tuple[tuple[int, int], ...]
"""(Position in the first, position in the second), rising."""


@dataclass(frozen=True, eq=False)
class Difference:
    """Two maps cut down to their shared rows and columns; the rows no longer sum to 1, for nothing is rescaled."""

    first: AttentionMap
    second: AttentionMap
    queries: Pairs
    """Rows of the two maps as they were given that are shared: (row of the first, row of the second)."""
    keys: Pairs
    """The same of the columns."""

    @property
    def weights(self) -> np.ndarray:
        """(L, H, Q, K) second minus first, -1 to 1."""
        return self.second.weights - self.first.weights

    @property
    def mask(self) -> np.ndarray:
        """(Q, K) bool: allowed in both."""
        return self.first.mask & self.second.mask

    @property
    def mass_moved(self) -> float:
        """The share of a row that lies elsewhere in the second map, 0 to 1, averaged over all rows with a choice.

        Total variation distance where both maps have the same columns; a lower bound where some are not shared.
        """
        weights = np.where(self.mask, self.weights, 0)
        apart = np.maximum(weights.clip(min=0).sum(-1), -weights.clip(max=0).sum(-1))
        rows = self.mask.sum(-1) > 1
        return float(apart[..., rows].mean()) if rows.any() else 0.0

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
        raise TraceError(
            say(
                "Only maps of one kind can be compared; these are {first} and {second} attention.",
                first=first.kind,
                second=second.kind,
            )
        )
    if first.weights.shape[:2] != second.weights.shape[:2]:
        raise TraceError(
            say(
                "The first model has {layers} layers of {heads} heads, the second {other_layers} of {other_heads}: "
                "there is no head-by-head difference. Average over heads and layers first.",
                layers=first.layers,
                heads=first.heads,
                other_layers=second.layers,
                other_heads=second.heads,
            )
        )
    queries, keys = shared_axes(first, second, rows)
    if not queries or not keys:
        raise TraceError(say("The two sentences share no token, so there is nothing to take the difference of."))
    return Difference(
        _part(first, [one for one, _ in queries], [one for one, _ in keys]),
        _part(second, [two for _, two in queries], [two for _, two in keys]),
        queries,
        keys,
    )


def shared_axes(first: AttentionMap, second: AttentionMap, rows: Label = "fed") -> tuple[Pairs, Pairs]:
    """Return the rows and the columns that two maps have in common, whatever their kinds; either may be none.

    Maps of different kinds have a common axis only where it counts the same tokens: the decoder's and the cross map's
    rows, the encoder's and the cross map's columns.
    """
    same = first.kind == second.kind
    kinds = {first.kind, second.kind}
    queries = common_tokens(first.rows(rows), second.rows(rows)) if same or "encoder" not in kinds else []
    keys = common_tokens(first.key_tokens, second.key_tokens) if same or "decoder" not in kinds else []
    return tuple(queries), tuple(keys)


def single_head(attention: AttentionMap, layer: int, head: int) -> AttentionMap:
    """Return a map of nothing but one head, counted from 0: weights (1, 1, Q, K)."""
    weights, mask = attention.weights[layer, head][None, None], attention.mask_of(layer, head)
    paths = attention.layer_paths[layer : layer + 1]
    return dataclasses.replace(
        attention,
        weights=weights,
        mask=mask,
        layer_masks=None,
        layer_paths=paths,
        layer_calls=(),
        passed_masks=None,
        tensors={},
    )


def common_tokens(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of tokens that both have in the same order: [(in the first, in the second), ...]."""
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
        layer_masks=None if attention.layer_masks is None else attention.layer_masks[:, :, queries][..., keys],
        passed_masks=None,
        tensors={},
    )
