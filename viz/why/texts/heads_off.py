"""What the view Heads says of heads that are switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.heads.names import head_name
from model.language.say import say, say_many, sentences, to_say
from viz.figures.labels import signed

from .word import name_of_value

if TYPE_CHECKING:
    from model.attribution.target import Target
    from model.experiments.head_effects import HeadEffects

SMALL = 0.05
"""Nats, or logits, below which a head is counted as one that changes next to nothing."""
EXPLAINED = to_say(
    "Each head is switched off alone, its output zero, and the same translation is read again: the number is how far "
    "{value} falls without it. Indigo speaks for the word, orange against it. The numbers do not add up: what one head "
    "does another may do when it is gone. Click a head to open it on Explore."
)


def most(found: HeadEffects, target: Target) -> str:
    """The head without which the value changes most, and how many change next to nothing."""
    every = found.strongest()
    head, change = every[0]
    facts = {"head": head_name(head), "value": name_of_value(target), "size": signed(abs(change))}
    first = say("Without {head} {value} falls by {size}, more than without any other head.", **facts)
    if change > 0:
        first = say("Without {head} {value} rises by {size}, more than without any other head.", **facts)
    idle = sum(abs(one) < SMALL for _, one in every)
    return sentences(
        first,
        say_many(
            "{count} of {all} heads changes it by less than {small} when it is off.",
            "{count} of {all} heads change it by less than {small}, each switched off by itself.",
            idle,
            all=len(every),
            small=signed(SMALL),
        ),
    )


def explained(target: Target) -> str:
    """What the numbers and colours are."""
    return say(EXPLAINED, value=name_of_value(target))
