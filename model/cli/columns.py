"""Text in columns, as wide as a terminal draws it: a Chinese character takes two places."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import east_asian_width


def width(text: str) -> int:
    """Return the places that a text takes in a terminal."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def left(text: str, places: int) -> str:
    """Return a text filled up with spaces behind it."""
    return text + " " * (places - width(text))


def right(text: str, places: int) -> str:
    """Return a text filled up with spaces before it."""
    return " " * (places - width(text)) + text


def table(rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """Return rows of as many cells each as lines: `texts` columns flush left, then numbers flush right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            (left if at < texts else right)(cell, places)
            for at, (cell, places) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
