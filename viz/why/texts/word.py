"""What Why says, each sentence computed from what it speaks of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from model.attribution.methods import DEFAULT_METHOD, METHODS, rank_correlation
from viz.figures.labels import percent, quoted, readable, signed

if TYPE_CHECKING:
    from model.attribution.methods import Attribution
    from model.attribution.target import Target

OPENED_TRACE = "The opened trace has no model to run: this page speaks of the model that is chosen below."
COLOURS = "Indigo speaks for the word, orange against it; the strongest colour is the largest number shown."
ROWS = (
    "In the matrix each row is coloured by its own largest score, as the methods have different units; its last column "
    "is the rank correlation with leave-one-out over the pieces that both score. Click a row to see its method above."
)
UNITS = {
    "leave-one-out": "signed, in {value}",
    "integrated-gradients": "signed, in {value}: the scores sum to what the pieces change together",
    "gradient-x-input": "signed, in {value}, to first order",
    "attention": "never negative: an attention weight, the same whichever piece X is",
    "attention-norm": "never negative: the length of a vector, the same whichever piece X is",
    "rollout": "never negative: a share of attention, the same whichever piece X is",
    "alti": "never negative: a share of 100%, the same whichever piece X is",
}
"""Method -> whether it has a sign, and its unit."""


def no_piece(position: int, count: int) -> str:
    """Why a piece of the address, from 0, cannot be explained."""
    return f"There is no piece {position + 1}: this translation has {count} pieces. Shown instead: its longest word."


def changes(text: str) -> str:
    """Which changes to the model are made."""
    count = text.count(",") + 1
    return (
        f"Of the changed model: {text if count < 4 else f'{count} changes'}." if text else "The changes are left out."
    )


def name_of_value(target: Target) -> str:
    """What is explained: log p(X), or logit X − logit Y."""
    if target.against is None:
        return f"log p({quoted(target.word)})"
    return f"logit {quoted(target.tokens[0])} − logit {quoted(target.against)}"


def value(target: Target, number: float) -> str:
    """The value that is explained, as a probability or as how many times as probable X is."""
    line = f"{name_of_value(target)} = {signed(number)}"
    if target.against is None:
        return f"{line}, a probability of {percent(math.exp(number))}."
    first, second = quoted(target.tokens[0]), quoted(target.against)
    if number < 0:
        first, second = second, first
    return f"{line}: {first} is {_times(math.exp(abs(number)))} as probable as {second}."


def unit(method: str, target: Target) -> str:
    """What the numbers of a method are: their sign and unit."""
    says = UNITS[method].format(value="nats of log p" if target.against is None else "logits of the difference")
    return f"{METHODS[method].capitalize()}; {says}."


def strongest(found: Attribution) -> str:
    """The pieces with the largest scores of either sign."""
    pieces = [*found.target.source_tokens, *found.target.prefix_tokens][: len(found.scores)]
    order = sorted(range(len(pieces)), key=lambda at: -abs(found.scores[at]))[:2]
    named = " and ".join(f"{quoted(pieces[at])} ({signed(float(found.scores[at]), plus=True)})" for at in order)
    nothing = "" if len(found.prefix) else " This method says nothing of the prefix."
    return f"The largest: {named}.{nothing}"


def correlations(found: Mapping[str, Attribution]) -> dict[str, float]:
    """Rank correlation of each method with leave-one-out, NaN where it cannot be computed."""
    judge = found[DEFAULT_METHOD]
    return {name: rank_correlation(one, judge) for name, one in found.items()}


def trust(found: Mapping[str, Attribution]) -> str:
    """Which method agrees best with leave-one-out for this word."""
    known = {
        name: number
        for name, number in correlations(found).items()
        if name != DEFAULT_METHOD and not math.isnan(number)
    }
    if not known:
        return "No other method orders the pieces, so none can be held against leave-one-out for this word."
    best, worst = (choose(known, key=known.__getitem__) for choose in (max, min))
    if known[best] <= 0:
        return (
            f"For this word no method agrees with leave-one-out: the rank correlation of the best, {best}, is "
            f"{signed(known[best])}."
        )
    return (
        f"For this word {best} agrees best with leave-one-out: rank correlation {signed(known[best])}; "
        f"{worst} agrees least, {signed(known[worst])}."
    )


def completeness(found: Attribution) -> str:
    """How nearly the scores of integrated gradients sum to what they explain, and from which baseline."""
    assert found.completeness_error is not None
    return (
        f"Integrated gradients: baseline {found.baseline}; the scores sum to the difference from the baseline "
        f"within {found.completeness_error:.2%}."
    )


def pieces(tokens: Sequence[str]) -> list[str]:
    """Pieces as a table names them."""
    return [readable(one) for one in tokens]


def _times(ratio: float) -> str:
    if ratio >= 1e6:
        return "more than a million times"
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
