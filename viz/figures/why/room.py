"""How much room the names beside a picture need."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LETTER = 7.0
"""Pixels of a letter of the names of an axis, on average; a Chinese one has two of them."""
GAP = 12


def room(names: Iterable[str], least: int) -> int:
    """The pixels of a margin in which the longest of the names fits, at least as many as `least`."""
    letters = (sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in name) for name in names)
    return max(least, int(LETTER * max(letters, default=0)) + GAP)
