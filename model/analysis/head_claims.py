"""What a head does, in one sentence together with the data that the sentence is about. No torch.

A claim names a habit, the rows it counts and the number that it prints, so that anybody can work it out again from
the map. Its words go by how the rows are named: by the token fed in, or by the token predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..text.words import Label
from ..trace import AttentionMap
from .difference import single_head
from .head_statistics import Habit, distance, entropy, habit_cells, rows_with_choice

MOSTLY, MORE, EVEN = 0.5, 0.2, 0.9
"""The least share of the mass for "mostly" and for "more than at any other", the least entropy for "evenly"."""

_PLACES: dict[Habit, str] = {
    "previous": "the previous token",
    "same": "the token itself",
    "next": "the next token",
    "first": "the first token",
    "end": "the end-of-sentence token",
    "alignment": "the token that all heads together point to",
    "alignment fed in": "the token that all heads together pointed to one row earlier (it aligns the token fed in)",
}
_PLACES_BY_PREDICTION: dict[Habit, str] = {
    "previous": "the token fed in one step earlier (two before the one that names the row)",
    "same": "the token just fed in (the one before the one that names the row)",
    "next": "the token that names the row (which is not fed in yet)",
}
"""In the decoder's self-attention: its keys are tokens fed in, and its rows may be named by the tokens predicted."""


@dataclass(frozen=True)
class HeadClaim:
    """A sentence about one head, and the data that it is about."""

    text: str
    habit: Habit | Literal["even", "words", "none"]
    """Where the head looks: at a fixed place, everywhere alike, where the words say, or it has no choice."""
    value: float
    """The number in the sentence: the mean share of the mass at a fixed place, 0 to 1; for "even" the entropy, 0 to 1;
    for "words" the mean distance in tokens; for "none" 0."""
    rows: tuple[int, ...]
    """The queries that the number is a mean over, from 0."""


def head_claim(attention: AttentionMap, layer: int, head: int, label: Label = "fed") -> HeadClaim:
    """Return what the map shows of a head, counted from 0, in words for rows that are named by `label`."""
    name = f"Head {head + 1} of layer {layer + 1}"
    mask = attention.mask_of(layer, head)
    if mask.sum(-1).max(initial=0) < 2:
        return HeadClaim(f"{name} has no choice: there is at most one token to look at.", "none", 0.0, ())
    alone = single_head(attention, layer, head)
    # The cells are those of the whole map: one head alone would always align with itself.
    cells = habit_cells(attention)
    shares = {habit: _share(alone.weights[0, 0], at) for habit, at in cells.items()}
    best = max(shares, key=shares.__getitem__, default=None)
    choosing = _places(rows_with_choice(mask))
    spread, far = entropy(alone).item(), distance(alone).item()
    if best and shares[best] >= MOSTLY:
        text = f"{name} mostly looks at {_place(attention, best, label)}: {shares[best]:.0%} of its mass."
        return HeadClaim(text, best, shares[best], _places(cells[best].sum(-1) > 0))
    if spread >= EVEN:
        text = f"{name} spreads its attention almost evenly: its entropy is {spread:.2f}, where 1 is all the same."
        return HeadClaim(text, "even", spread, choosing)
    if best and shares[best] >= MORE:
        place = _place(attention, best, label)
        text = f"{name} looks at {place} more than at any other fixed place: {shares[best]:.0%} of its mass"
        return HeadClaim(
            f"{text}; the rest depends on the words.", best, shares[best], _places(cells[best].sum(-1) > 0)
        )
    text = f"{name} has no fixed place to look at: it depends on the words, {far:.1f} tokens away on average."
    return HeadClaim(text, "words", far, choosing)


def _share(weights: np.ndarray, cells: np.ndarray) -> float:
    """The mass of weights (Q, K) on cells (Q, K), mean over the rows that hold one."""
    rows = cells.sum(-1) > 0
    return float((weights * cells)[rows].sum(-1).mean(dtype=np.float64))


def _places(rows: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(rows).tolist())


def _place(attention: AttentionMap, habit: Habit, label: Label) -> str:
    if attention.kind == "decoder" and label == "predicted" and attention.predicted_tokens:
        return _PLACES_BY_PREDICTION.get(habit, _PLACES[habit])
    return _PLACES[habit]
