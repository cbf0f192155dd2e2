"""What each head does, in numbers: how spread its attention is, how far it looks, on which token its mass lies.

Every measure is a mean over the rows (queries) it is defined for: a row that may attend to nothing counts nowhere, a
row with one key allowed has no entropy, and the first row has no previous token. No torch.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Literal

import numpy as np

from ..text.words import END_TOKENS
from ..trace import AttentionMap
from .alignment import averaged_alignment, mass_on_alignment

Measure = Literal["entropy", "distance", "previous", "same", "next", "first", "end", "alignment"]
Place = tuple[int, int]
"""A head: (layer, head), from 0."""

EXPLAINED: MappingProxyType[Measure, str] = MappingProxyType(
    {
        "entropy": "How evenly a row is spread over the keys it may attend to: 0 is one key, 1 is all the same.",
        "distance": "Mean distance in tokens between query and key, weighted by the weights; "
        "in cross-attention from the diagonal that runs from corner to corner.",
        "previous": "Weight on the token before the query.",
        "same": "Weight on the query's own token.",
        "next": "Weight on the token after the query.",
        "first": "Weight on the first token.",
        "end": "Weight on the end-of-sentence token, where heads with nothing to do often rest.",
        "alignment": "Weight on the source token that the average of all cross-attention heads points to.",
    }
)
FOCUS: tuple[Measure, ...] = ("previous", "same", "next", "first", "end", "alignment")
"""The measures that are a share of the mass, 0 to 1, on one token of every row."""

_TOKEN_WORDS: dict[Measure, str] = {
    "previous": "the previous token",
    "same": "the token itself",
    "next": "the next token",
    "first": "the first token",
    "end": "the end-of-sentence token",
    "alignment": "the token that all heads together point to",
}


def head_statistics(attention: AttentionMap) -> dict[Measure, np.ndarray]:
    """Every measure that means something for this map, each (L, H)."""
    return _measured(attention, averaged_alignment(attention) if attention.kind == "cross" else None)


def entropy(attention: AttentionMap) -> np.ndarray:
    """-sum w ln w of a row over ln of its number of allowed keys, mean over rows with two or more -> (L, H), 0 to 1."""
    weights, allowed = attention.weights, attention.mask.sum(-1)
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
    return _mean_over_rows((attention.weights * apart).sum(-1), attention.mask.sum(-1) > 0)


def ranked(values: np.ndarray, largest_first: bool = True) -> tuple[Place, ...]:
    """values (L, H) -> all heads in order; equal ones by layer, then head."""
    order = np.argsort(-values if largest_first else values, axis=None, kind="stable")
    layers, heads = np.unravel_index(order, values.shape)
    return tuple(zip(layers.tolist(), heads.tolist(), strict=True))


def between(values: np.ndarray, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """values (L, H) -> (L, H) bool: the heads whose value lies in [low, high]."""
    return (values >= low) & (values <= high)


def summary(attention: AttentionMap, layer: int, head: int) -> str:
    """One plain sentence on a head, counted from 0: where its mass lies, or that it is spread."""
    alone = dataclasses.replace(attention, weights=attention.weights[[layer], [head]][None], tensors={})
    average = averaged_alignment(attention) if attention.kind == "cross" else None
    values = {measure: array.item() for measure, array in _measured(alone, average).items()}
    focus = {measure: mass for measure, mass in values.items() if measure in FOCUS}
    name, spread = f"Head {head + 1} of layer {layer + 1}", values["entropy"]
    best = max(focus, key=focus.__getitem__, default=None)
    if attention.mask.sum(-1).max(initial=0) < 2:
        return f"{name} has no choice: there is at most one token to look at."
    if best and focus[best] >= 0.5:
        return f"{name} mostly looks at {_TOKEN_WORDS[best]}: {focus[best]:.0%} of its mass."
    if spread >= 0.9:
        return f"{name} spreads its attention almost evenly: its entropy is {spread:.2f}, where 1 is all the same."
    if best and focus[best] >= 0.2:
        return (
            f"{name} looks at {_TOKEN_WORDS[best]} more than at any other fixed place: "
            f"{focus[best]:.0%} of its mass; the rest depends on the words."
        )
    far = f"{values['distance']:.1f} tokens away on average"
    return f"{name} has no fixed place to look at: it depends on the words, {far}."


def _measured(attention: AttentionMap, average: np.ndarray | None) -> dict[Measure, np.ndarray]:
    """average (Q, K), the alignment of all cross-attention heads, is not that of a part of a map."""
    found: dict[Measure, np.ndarray] = {"entropy": entropy(attention), "distance": distance(attention)}
    for measure in ("previous", "same", "next", "first", "end"):
        if (cells := _cells(attention, measure)).any():
            found[measure] = _mean_over_rows((attention.weights * cells).sum(-1), cells.sum(-1) > 0)
    if average is not None:
        found["alignment"] = mass_on_alignment(attention, average)
    return found


def _cells(attention: AttentionMap, measure: Measure) -> np.ndarray:
    """(Q, K) bool: the allowed cells whose weights a focus measure sums."""
    rows, columns = np.indices(attention.mask.shape)
    if measure == "first":
        return attention.mask & (columns == 0)
    if measure == "end":
        return attention.mask & np.array([token in END_TOKENS for token in attention.key_tokens], dtype=bool)
    if attention.kind == "cross":  # two different sentences: there is no "previous" across them
        return np.zeros_like(attention.mask)
    steps: dict[Measure, int] = {"previous": -1, "same": 0, "next": 1}
    return attention.mask & (columns - rows == steps[measure])


def _mean_over_rows(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """values (L, H, Q), counted (Q,) bool -> (L, H); 0 where no row counts."""
    if not counted.any():
        return np.zeros(values.shape[:2])
    return values[..., counted].mean(-1, dtype=np.float64)
