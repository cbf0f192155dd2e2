"""A name for what a head does, given only where the corpus carries it.

A row counts for a place when more than half of its weight lies there. A head is labelled with a place when the share of
such rows, among those that have the place, is far above what rows spread evenly would give: by Cohen's (1960) agreement
corrected for chance, (share - even) / (1 - even), of at least one half, also at the lower end of its 95% interval. The
rows of a sentence are alike, so the interval is as wide as if each sentence were one row. A place that few rows have,
less than a quarter, names no head: most rows would not be spoken of. With several places it is the one of the highest
agreement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..atlas.measures import EVEN, HAS, HELD
from ..atlas.places import NAMES, PLACES, Place
from ..language.say import say

LEAST = 0.5
"""The least agreement corrected for chance."""
COMMON = 0.25
"""The least share of a head's rows that have the place."""
MOST = 0.75
"""Below this share of rows that have it, the label says that it speaks of these alone."""


@dataclass(frozen=True)
class Label:
    """What a corpus says of a head."""

    place: Place | None
    """None where it says nothing."""
    share: float
    """Of the rows that have the place, those with more than half of their weight on it; 0 without a place."""
    even: float
    """The same of rows spread evenly."""
    has: float
    """The share of the head's rows that have the place."""

    @property
    def agreement(self) -> float:
        """Corrected for chance: 0 where rows spread evenly would do as well."""
        return (self.share - self.even) / (1 - self.even)

    def is_carried_by(self, sentences: int) -> bool:
        """Return whether so many sentences are enough for the label: at the lower ends of both intervals."""
        agreement = (_lower(self.share, sentences) - self.even) / (1 - self.even)
        return agreement >= LEAST and _lower(self.has, sentences) >= COMMON

    @property
    def text(self) -> str:
        """What a person reads."""
        if self.place is None:
            return say("mixed")
        said = {"place": say(NAMES[self.place]), "share": self.share}
        if self.has < MOST:
            return say("{place}: {share:.0%} of rows that have it", **said)
        return say("{place}: {share:.0%} of rows", **said)


def _lower(share: float, sentences: int) -> float:
    """The lower end of the 95% interval of a share."""
    return share - 1.96 * math.sqrt(share * (1 - share) / max(sentences, 1))


MIXED = Label(None, 0.0, 0.0, 0.0)


def label_of(measures: Mapping[Any, Any] | pd.Series[Any], sentences: int) -> Label:
    """Return the label of a head by a row of an atlas's table, measured on so many sentences."""
    label = best_place(measures)
    return label if label.is_carried_by(sentences) else MIXED


def best_place(measures: Mapping[Any, Any] | pd.Series[Any]) -> Label:
    """Return the place of the highest agreement, however low that is; MIXED where no place is common enough."""
    found = []
    for place in PLACES:
        share, even, has = (float(measures.get(f"{place}{end}", float("nan"))) for end in (HELD, EVEN, HAS))
        if has >= COMMON and even < 1:
            found.append(Label(place, share, even, has))
    return max(found, key=lambda label: label.agreement, default=MIXED)
