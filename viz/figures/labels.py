"""Tokens and maps in words, safe to hand to plotly, which reads a subset of HTML in every text."""

from __future__ import annotations

import html
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

from .speech import number, say, to_say

KIND_NAMES = {
    "encoder": to_say("Encoder self-attention"),
    "decoder": to_say("Decoder self-attention"),
    "cross": to_say("Cross-attention"),
}
LETTER = 7.2
"""Pixels of a letter in the name of a place."""
LONGEST = 11
LONGEST_WITH_LABELS = 64
"""Tokens along an axis beyond which not each can be named."""


@lru_cache(maxsize=4096)
def readable(token: str) -> str:
    """A token as a person can see it: no leading space, and a visible sign for what has no shape of its own."""
    text = "".join(_visible(character) for character in token.strip())
    return text or "␣"


def quoted(token: str) -> str:
    """A token inside a sentence, isolated so that right-to-left text does not reorder the words around it."""
    return say("“{token}”", token=f"\u2068{readable(token)}\u2069")


def escaped(text: str) -> str:
    """Text for plotly, which reads tags and entities, but not that of a quotation mark."""
    return html.escape(text, quote=False)


def label(token: str) -> str:
    """A token as an axis label: readable, cut to the width of LONGEST letters, and escaped for plotly."""
    return escaped(label_text(token, LONGEST))


def label_text(token: str, longest: int = 18) -> str:
    """A token as a label that no one reads as HTML: readable, cut to the width of so many letters."""
    text = readable(token)
    ends = list(accumulate(map(_width, text)))
    return text if ends[-1] <= longest else text[: bisect_right(ends, longest - 1)] + "…"


def room(names: Iterable[str], least: int) -> int:
    """Pixels that the longest of some names, of one or more lines each, needs beside a plot, and `least` of them."""
    lines = [line for name in names for line in name.split("\n")]
    return max(least, int(LETTER * max((sum(map(_width, line)) for line in lines), default=0)) + 16)


def signed(value: float, digits: int = 2, plus: bool = False) -> str:
    """A number as it is printed, with a minus sign as wide as its digits; `plus` writes the other sign too."""
    return number(value, f"{'+' if plus else ''}.{digits}f")


def percent(share: float) -> str:
    """A probability as it is printed, as ``percent`` of the decode player does: what is not zero never reads so."""
    if share == 0:
        return number(0.0, ".0%")
    return f"<{number(0.001, '.1%')}" if share < 0.0005 else number(share, f".{1 if share < 0.0995 else 0}%")


def labels(tokens: Sequence[str]) -> list[str]:
    return [label(token) for token in tokens]


def named(tokens: Sequence[str], pinned: int | None = None, longest: int = LONGEST_WITH_LABELS) -> dict[str, list]:
    """The ticks of an axis of tokens: each is named up to `longest`, else half as many, evenly; `pinned` is bold."""
    step = 1 if len(tokens) <= longest else -(-2 * len(tokens) // longest)
    shown = [at for at in range(0, len(tokens), step) if pinned is None or abs(at - pinned) >= step]
    if pinned is not None:
        shown = sorted([*shown, pinned])
    texts = [f"<b>{label(tokens[at])}</b>" if at == pinned else label(tokens[at]) for at in shown]
    return {"tickvals": shown, "ticktext": texts}


def _width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _visible(character: str) -> str:
    # Cc: control, Cf: invisible format marks such as direction overrides, which would reorder the label around them.
    if unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return f"\\u{ord(character):04x}"
    return character
