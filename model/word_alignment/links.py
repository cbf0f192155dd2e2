"""Word alignments in the Pharaoh format: a line a pair of sentences, ``0-0 1-2 3?1``, source and target word from 0.

``-`` is a sure link; ``?`` or ``p`` a possible one, as in the gold alignments of Vilar et al. (2006) and others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..language.say import say

Link = tuple[int, int]
"""Source word and target word, from 0."""
_LINK = re.compile(r"^(\d+)([-?p])(\d+)$")


class GoldError(ValueError):
    """A gold alignment that cannot be used; the message says where and why."""


@dataclass(frozen=True)
class Links:
    """The links of one pair of sentences."""

    sure: frozenset[Link]
    possible: frozenset[Link]
    """All that are at least possible, sure ones included (Och and Ney 2003)."""

    @classmethod
    def read(cls, line: str) -> Links:
        """Read a line. GoldError."""
        sure, possible = set(), set()
        for text in line.split():
            found = _LINK.match(text)
            if found is None:
                raise GoldError(
                    say("“{text}” is no link: 2-3 is a sure one, 2?3 a possible one, words counted from 0.", text=text)
                )
            link = int(found[1]), int(found[3])
            possible.add(link)
            if found[2] == "-":
                sure.add(link)
        return cls(frozenset(sure), frozenset(possible))

    @property
    def text(self) -> str:
        """As it is written."""
        return " ".join(f"{i}{'-' if (i, j) in self.sure else '?'}{j}" for i, j in sorted(self.possible))


@dataclass(frozen=True)
class Agreement:
    """How far two passes of an annotation agree: twice the links of both over the links of each, 0 to 1 (Dice 1945)."""

    any: float
    """Of all links, sure or possible."""
    sure: float
    """Of the sure ones."""
    pairs: int
    identical: int
    """Pairs of sentences whose links are the same, each as sure."""


def combined(first: Links, second: Links) -> Links:
    """The gold made of two passes: sure is what both say is sure, possible what either says."""
    return Links(first.sure & second.sure, first.possible | second.possible)


def agreement(first: Sequence[Links], second: Sequence[Links]) -> Agreement:
    """Compare two passes over the same pairs."""
    both = list(zip(first, second, strict=True))
    return Agreement(
        _dice((one.possible, other.possible) for one, other in both),
        _dice((one.sure, other.sure) for one, other in both),
        len(both),
        sum(one == other for one, other in both),
    )


def _dice(pairs: Iterable[tuple[frozenset[Link], frozenset[Link]]]) -> float:
    common = total = 0
    for one, other in pairs:
        common += 2 * len(one & other)
        total += len(one) + len(other)
    return common / total if total else 1.0
