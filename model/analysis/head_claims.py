"""What a head does, in one sentence together with the data that the sentence is about. No torch.

A claim names a habit, the rows it counts and the number that it prints, so that anybody can work it out again from
the map. Its words go by how the rows are named: by the token fed in, or by the token predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..language.say import say, to_say
from ..text.words import Label
from ..trace import AttentionMap
from .difference import single_head
from .head_statistics import Habit, distance, entropy, habit_cells, rows_with_choice

MOSTLY, MORE, EVEN = 0.5, 0.2, 0.9
"""The least share of the mass for "mostly" and for "more than at any other", the least entropy for "evenly"."""

_PLACES: dict[Habit, str] = {
    "previous": to_say("the previous token"),
    "same": to_say("the token itself"),
    "next": to_say("the next token"),
    "first": to_say("the first token"),
    "end": to_say("the end-of-sentence token"),
    "alignment": to_say("the token that all heads together point to"),
    "alignment fed in": to_say(
        "the token that all heads together pointed to one row earlier (it aligns the token fed in)"
    ),
}
_PLACES_BY_PREDICTION: dict[Habit, str] = {
    "previous": to_say("the token fed in one step earlier (two before the one that names the row)"),
    "same": to_say("the token just fed in (the one before the one that names the row)"),
    "next": to_say("the token that names the row (which is not fed in yet)"),
}
"""In the decoder's self-attention: its keys are tokens fed in, and its rows may be named by the tokens predicted."""


@dataclass(frozen=True)
class HeadClaim:
    """A sentence about one head, and the data that it is about."""

    text: str
    habit: Habit | Literal["even", "mixed", "none"]
    """Where the head looks: at one of the places counted, everywhere alike, at no one of them, or it has no choice."""
    value: float
    """The number in the sentence: the mean share of the mass at a fixed place, 0 to 1; for "even" the entropy, 0 to 1;
    for "mixed" the mean distance in tokens; for "none" 0."""
    rows: tuple[int, ...]
    """The queries that the number is a mean over, from 0."""


def head_claim(attention: AttentionMap, layer: int, head: int, label: Label = "fed") -> HeadClaim:
    """Return what the map shows of a head, counted from 0, in words for rows that are named by `label`."""
    place = {"head": head + 1, "layer": layer + 1}
    mask = attention.mask_of(layer, head)
    if mask.sum(-1).max(initial=0) < 2:
        text = say("Head {head} of layer {layer} has no choice: there is at most one token to look at.", **place)
        return HeadClaim(text, "none", 0.0, ())
    alone = single_head(attention, layer, head)
    # The cells are those of the whole map: one head alone would always align with itself.
    cells = habit_cells(attention)
    shares = {habit: _share(alone.weights[0, 0], at) for habit, at in cells.items()}
    best = max(shares, key=shares.__getitem__, default=None)
    choosing = _places(rows_with_choice(mask))
    spread, far = entropy(alone).item(), distance(alone).item()
    if best and shares[best] >= MOSTLY:
        text = say(
            "Head {head} of layer {layer} mostly looks at {token}: {share:.0%} of its mass.",
            **place,
            token=_token(attention, best, label),
            share=shares[best],
        )
        return HeadClaim(text, best, shares[best], _places(cells[best].sum(-1) > 0))
    if spread >= EVEN:
        text = say(
            "Head {head} of layer {layer} spreads its attention almost evenly: its entropy is {entropy:.2f}, where 1 "
            "is all the same.",
            **place,
            entropy=spread,
        )
        return HeadClaim(text, "even", spread, choosing)
    if best and shares[best] >= MORE:
        text = say(
            "Head {head} of layer {layer} looks at {token} more than at any other place that is counted: {share:.0%} "
            "of its mass.",
            **place,
            token=_token(attention, best, label),
            share=shares[best],
        )
        return HeadClaim(text, best, shares[best], _places(cells[best].sum(-1) > 0))
    if best is None:
        text = say("Head {head} of layer {layer} looks {distance:.1f} tokens away on average.", **place, distance=far)
        return HeadClaim(text, "mixed", far, choosing)
    # One map does not tell whether such a head goes by the words or by another place, such as two tokens back.
    text = say(
        "Head {head} of layer {layer} looks at no one place: {token} gets most, {share:.0%}; on average {distance:.1f} "
        "tokens away.",
        **place,
        token=_token(attention, best, label),
        share=shares[best],
        distance=far,
    )
    return HeadClaim(text, "mixed", far, choosing)


def _share(weights: np.ndarray, cells: np.ndarray) -> float:
    """The mass of weights (Q, K) on cells (Q, K), mean over the rows that hold one."""
    rows = cells.sum(-1) > 0
    return float((weights * cells)[rows].sum(-1).mean(dtype=np.float64))


def _places(rows: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(rows).tolist())


def _token(attention: AttentionMap, habit: Habit, label: Label) -> str:
    """The token that a habit looks at, in words for rows that are named by `label`."""
    if attention.kind == "decoder" and label == "predicted" and attention.predicted_tokens:
        return say(_PLACES_BY_PREDICTION.get(habit, _PLACES[habit]))
    return say(_PLACES[habit])
