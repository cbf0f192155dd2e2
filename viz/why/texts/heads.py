"""What the view Heads says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viz.figures.labels import quoted, signed

if TYPE_CHECKING:
    from model.attribution.logit_parts import LogitPart, LogitParts

OPEN_HEAD = "Click the bar of a head to open it on Explore, at the row of this word."


def link(head: LogitPart) -> str:
    """The head with the largest part of the logit, as a button says it."""
    return f"The head with the largest part: {head.part.name} ({signed(head.score, plus=True)})"


def total(found: LogitParts) -> str:
    """The sum of all parts beside the logit that the model computed."""
    name = f"logit {quoted(found.word)}"
    if found.against is not None:
        name += f" − logit {quoted(found.against)}"
    return (
        f"{name}: the {len(found.parts)} parts sum to {signed(found.sum, 3)}; the model computed "
        f"{signed(found.logit, 3)}."
    )


def largest(found: LogitParts) -> str:
    """The head with the largest share, and how much all heads of each attention add."""
    heads = [one for one in found.sorted if one.part.head is not None]
    first = heads[0]
    sums = {
        name: sum(one.score for one in heads if one.part.kind == kind)
        for kind, name in (("cross", "cross-attention"), ("decoder", "self-attention"))
    }
    rest = " and ".join(f"{name} {signed(number, plus=True)}" for name, number in sums.items())
    return (
        f"The head with the largest part of the logit is {first.part.name}, {signed(first.score, plus=True)}; all "
        f"heads of {rest}. What switching a head off changes is another question; see the word's card on Explore."
    )
