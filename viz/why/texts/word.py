"""What Why says, each sentence computed from what it speaks of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from model.attribution.methods import ATTENTION_X_GRADIENT, DEFAULT_METHOD, METHODS, rank_correlation
from model.attribution.target import no_piece as there_is_no_piece
from model.language.say import listed, say, sentences, to_say
from viz.figures.labels import percent, quoted, readable, signed

from .heads import name_of_logit

if TYPE_CHECKING:
    from model.attribution.methods import Attribution
    from model.attribution.target import Target

OPENED_TRACE = to_say("The opened trace has no model to run: this page speaks of the model that is chosen below.")
COLOURS = to_say("Indigo speaks for the word, orange against it; the strongest colour is the largest number shown.")
ROWS = to_say(
    "In the matrix each row is coloured by its own largest score, as the methods have different units; its last column "
    "is the rank correlation with leave-one-out over the pieces that both score. Click a row to see its method above."
)
UNITS = {
    "leave-one-out": to_say("{method}: {meaning}; signed, in {value}."),
    "integrated-gradients": to_say(
        "{method}: {meaning}; signed, in {value}: the scores sum to what the pieces change together."
    ),
    "gradient-x-input": to_say("{method}: {meaning}; signed, in {value}, to first order."),
    "attention-x-gradient": to_say("{method}: {meaning}; signed, in {value}, to first order."),
    "attention": to_say("{method}: {meaning}; never negative: an attention weight, the same whichever piece X is."),
    "attention-norm": to_say(
        "{method}: {meaning}; never negative: the length of a vector, the same whichever piece X is."
    ),
    "rollout": to_say("{method}: {meaning}; never negative: a share of attention, the same whichever piece X is."),
    "alti": to_say("{method}: {meaning}; never negative: a share of 100%, the same whichever piece X is."),
}
"""Method -> what it is, whether it has a sign, and its unit."""


def no_piece(position: int, count: int) -> str:
    """Why a piece of the address, from 0, cannot be explained."""
    return sentences(there_is_no_piece(position + 1, count), say("Shown instead: its longest word."))


def changes(text: str) -> str:
    """Which changes to the model are made."""
    if not text:
        return say("The changes are left out.")
    count = text.count(",") + 1
    if count < 4:
        return say("Of the changed model: {changes}.", changes=text)
    return say("Of the changed model: {count} changes.", count=count)


def name_of_value(target: Target) -> str:
    """What is explained: log p(X), or logit X − logit Y."""
    if target.against is None:
        return say("log p({word})", word=quoted(target.word))
    return name_of_logit(target.tokens[0], target.against)


def value(target: Target, number: float) -> str:
    """The value that is explained, as a probability or as how many times as probable X is."""
    facts = {"name": name_of_value(target), "value": signed(number)}
    if target.against is None:
        return say("{name} = {value}, a probability of {share}.", share=percent(math.exp(number)), **facts)
    first, second = quoted(target.tokens[0]), quoted(target.against)
    if number < 0:
        first, second = second, first
    ratio = math.exp(abs(number))
    if ratio >= 1e6:
        message = to_say("{name} = {value}: {first} is more than a million times as probable as {second}.")
    elif ratio >= 10:
        message = to_say("{name} = {value}: {first} is {ratio:,.0f} times as probable as {second}.")
    else:
        message = to_say("{name} = {value}: {first} is {ratio:.1f} times as probable as {second}.")
    return say(message, first=first, second=second, ratio=ratio, **facts)


def unit(method: str, target: Target) -> str:
    """What the numbers of a method are: their sign and unit."""
    value = say("nats of log p") if target.against is None else say("logits of the difference")
    return say(UNITS[method], method=say(method), meaning=say((METHODS | ATTENTION_X_GRADIENT)[method]), value=value)


def strongest(found: Attribution) -> str:
    """The pieces with the largest scores of either sign."""
    pieces = [*found.target.source_tokens, *found.target.prefix_tokens][: len(found.scores)]
    order = sorted(range(len(pieces)), key=lambda at: -abs(found.scores[at]))[:2]
    scores = {at: signed(float(found.scores[at]), plus=True) for at in order}
    named = [say("{piece} ({score})", piece=quoted(pieces[at]), score=score) for at, score in scores.items()]
    return sentences(
        say("The largest: {pieces}.", pieces=both(named)),
        "" if len(found.prefix) else say("This method says nothing of the prefix."),
    )


def both(names: Sequence[str]) -> str:
    """Two names, or the only one."""
    return say("{first} and {second}", first=names[0], second=names[1]) if len(names) == 2 else names[0]


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
        return say("No other method orders the pieces, so none can be held against leave-one-out for this word.")
    best, worst = (choose(known, key=known.__getitem__) for choose in (max, min))
    tied = [[say(name) for name, number in known.items() if math.isclose(number, known[end])] for end in (best, worst)]
    if known[best] <= 0:
        return say(
            "For this word no method agrees with leave-one-out: the rank correlation of the best, {best}, is {high}.",
            best=listed(tied[0]),
            high=signed(known[best]),
        )
    if max(map(len, tied)) > 1 or best == worst:
        return say(
            "For this word the rank correlation with leave-one-out is highest for {best}, {high}, and lowest for "
            "{worst}, {low}.",
            best=listed(tied[0]),
            high=signed(known[best]),
            worst=listed(tied[1]),
            low=signed(known[worst]),
        )
    return say(
        "For this word {best} agrees best with leave-one-out: rank correlation {high}; {worst} agrees least, {low}.",
        best=say(best),
        high=signed(known[best]),
        worst=say(worst),
        low=signed(known[worst]),
    )


def completeness(found: Attribution) -> str:
    """How nearly the scores of integrated gradients sum to what they explain, and from which baseline."""
    assert found.completeness_error is not None
    assert found.baseline is not None
    return say(
        "Integrated gradients: baseline {baseline}; the scores sum to the difference from the baseline within "
        "{error:.2%}.",
        baseline=say(found.baseline),
        error=found.completeness_error,
    )


def pieces(tokens: Sequence[str]) -> list[str]:
    """Pieces as a table names them."""
    return [readable(one) for one in tokens]
