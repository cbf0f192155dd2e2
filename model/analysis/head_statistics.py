"""What each head does, in numbers: how spread its attention is, how far it looks, on which token its mass lies.

Every measure is a mean over the rows (queries) that have a choice and for which it is defined: a row that may attend to
one key only, such as the decoder's first, says nothing of the head, and the first row has no previous token. Where no
row has a choice, those with one key count. No torch.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal

import numpy as np

from ..language.say import to_say
from ..text.words import END_TOKENS
from ..trace import AttentionMap
from .alignment import alignment_cells

Measure = Literal["entropy", "distance", "previous", "same", "next", "first", "end", "alignment"]
Habit = Literal["previous", "same", "next", "first", "end", "alignment", "alignment fed in"]
"""A fixed place that a head may look at in every row."""
Place = tuple[int, int]
"""A head: (layer, head), from 0."""

EXPLAINED: MappingProxyType[Measure, str] = MappingProxyType(
    {
        "entropy": to_say(
            "How evenly a row is spread over the keys it may attend to: 0 is one key, 1 is all the same."
        ),
        "distance": to_say(
            "Mean distance in tokens between query and key, weighted by the weights; "
            "in cross-attention from the diagonal that runs from corner to corner."
        ),
        "previous": to_say("Weight on the token before the query."),
        "same": to_say("Weight on the query's own token."),
        "next": to_say("Weight on the token after the query."),
        "first": to_say("Weight on the first token."),
        "end": to_say("Weight on the end-of-sentence token, where heads with nothing to do often rest."),
        "alignment": to_say(
            "Weight on the source token that the average of all cross-attention heads points to in the same "
            "row or, if that is more, in the row before (a head that aligns the token just fed in)."
        ),
    }
)
FOCUS: tuple[Measure, ...] = ("previous", "same", "next", "first", "end", "alignment")
"""The measures that are a share of the mass, 0 to 1, on one token of every row."""


def head_statistics(attention: AttentionMap) -> dict[Measure, np.ndarray]:
    """Every measure that means something for this map, each (L, H)."""
    measures: dict[Measure, np.ndarray] = {"entropy": entropy(attention), "distance": distance(attention)}
    for habit, cells in habit_cells(attention).items():
        share = _mean_over_rows((attention.weights * cells).sum(-1), cells.sum(-1) > 0)
        name: Measure = "alignment" if habit == "alignment fed in" else habit
        measures[name] = np.maximum(measures[name], share) if name in measures else share
    return measures


def habit_cells(attention: AttentionMap) -> dict[Habit, np.ndarray]:
    """For each habit that this map allows, (Q, K) bool: the cells whose weights are its share of the mass.

    Only rows with a choice hold such cells, and the habit is a mean over the rows that hold one.
    """
    mask = attention.mask & rows_with_choice(attention.mask)[:, None]
    rows, columns = np.indices(mask.shape)
    cells: dict[Habit, np.ndarray] = {}
    if attention.kind != "cross":  # across two sentences there is no "previous"
        cells |= {"previous": columns == rows - 1, "same": columns == rows, "next": columns == rows + 1}
    ends = np.array([token in END_TOKENS for token in attention.key_tokens], dtype=bool)
    cells |= {"first": columns == 0, "end": np.broadcast_to(ends, mask.shape)}
    if attention.kind == "cross":
        cells |= {"alignment": alignment_cells(attention, "predicted")}
        cells |= {"alignment fed in": alignment_cells(attention, "fed")}
    allowed = {habit: mask & chosen for habit, chosen in cells.items()}
    return {habit: chosen for habit, chosen in allowed.items() if chosen.any()}


def rows_with_choice(mask: np.ndarray) -> np.ndarray:
    """(Q,) bool: the rows with two allowed keys or more; where there is none, those with one."""
    allowed = mask.sum(-1)
    return allowed > 1 if (allowed > 1).any() else allowed > 0


def entropy(attention: AttentionMap) -> np.ndarray:
    """-sum w ln w of a row over ln of its number of allowed keys, mean over rows with two or more -> (L, H), 0 to 1."""
    weights, allowed = attention.weights, attention.masks.sum(-1)
    surprise = -np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return _mean_over_rows((weights * surprise).sum(-1) / np.log(np.maximum(allowed, 2)), allowed > 1)


def distance(attention: AttentionMap) -> np.ndarray:
    """Weighted mean of |query - key| in tokens -> (L, H).

    In cross-attention the query's place is scaled to the length of the source, so that 0 is the diagonal.
    """
    queries, keys = attention.mask.shape
    rows, columns = np.arange(queries)[:, None], np.arange(keys)[None, :]
    if attention.kind == "cross":
        apart = np.abs((rows + 0.5) * keys / queries - (columns + 0.5))
    else:
        apart = np.abs(rows - columns)
    return _mean_over_rows((attention.weights * apart).sum(-1), rows_with_choice(attention.mask))


def rank_heads(values: np.ndarray, largest_first: bool = True) -> tuple[Place, ...]:
    """values (L, H) -> all heads in order; equal ones by layer, then head."""
    order = np.argsort(-values if largest_first else values, axis=None, kind="stable")
    layers, heads = np.unravel_index(order, values.shape)
    return tuple(zip(layers.tolist(), heads.tolist(), strict=True))


def between(values: np.ndarray, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """values (L, H) -> (L, H) bool: the heads whose value lies in [low, high]."""
    return (values >= low) & (values <= high)


def _mean_over_rows(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """values (L, H, Q), counted (Q,) or (L, 1 or H, Q) bool -> (L, H); 0 where no row counts."""
    counted = np.broadcast_to(counted, values.shape)
    return np.where(counted, values, 0).sum(-1, dtype=np.float64) / np.maximum(counted.sum(-1), 1)
