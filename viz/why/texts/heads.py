"""What the view Heads says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.language.say import say, to_say
from viz.figures.labels import quoted, signed

if TYPE_CHECKING:
    from model.attribution.logit_parts import LogitPart, LogitParts

OPEN_HEAD = to_say("Click the bar of a head to open it on Explore, at the row of this word.")


def link(head: LogitPart) -> str:
    """The head with the largest part of the logit, as a button says it."""
    score = signed(head.score, plus=True)
    return say("The head with the largest part: {head} ({score})", head=head.part.label, score=score)


def name_of_logit(word: str, against: str | None) -> str:
    """logit X, or logit X − logit Y."""
    if against is None:
        return say("logit {word}", word=quoted(word))
    return say("logit {word} − logit {other}", word=quoted(word), other=quoted(against))


def total(found: LogitParts) -> str:
    """The sum of all parts beside the logit that the model computed."""
    return say(
        "{name}: the {count} parts sum to {sum}; the model computed {logit}.",
        name=name_of_logit(found.word, found.against),
        count=len(found.parts),
        sum=signed(found.sum, 3),
        logit=signed(found.logit, 3),
    )


def largest(found: LogitParts) -> str:
    """The head with the largest share, and how much all heads of each attention add."""
    heads = [one for one in found.sorted if one.part.head is not None]
    first = heads[0]
    cross, own = (
        signed(sum(one.score for one in heads if one.part.kind == kind), plus=True) for kind in ("cross", "decoder")
    )
    return say(
        "The head with the largest part of the logit is {head}, {score}; all heads of cross-attention {cross} and "
        "self-attention {own}. What switching a head off changes is another question, which “switched off” answers.",
        head=first.part.label,
        score=signed(first.score, plus=True),
        cross=cross,
        own=own,
    )
