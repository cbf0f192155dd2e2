"""Rows of heads as shaded text: HTML in which every token is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from model.language.say import number, say

from ..figures.labels import readable

if TYPE_CHECKING:
    from model.heads.rows import ShownRow

STEPS = 10
"""Shades, each a class of the style sheet."""


def rows_markup(rows: Sequence[ShownRow], kinds: Sequence[str], name: str, heads: Sequence[str] = ()) -> str:
    """A list of rows; `kinds` says the map that each is of, `name` tells screen readers what the list is.

    `heads` names the head of each row, where they are of several.
    """
    names = [f'<span class="of">{html.escape(head)}</span>' for head in heads] or [""] * len(rows)
    found = zip(rows, kinds, names, strict=True)
    items = "".join(f"<li>{of}{_row(row, kind == 'cross')}</li>" for row, kind, of in found)
    return f'<ol class="shaded" aria-label="{html.escape(name)}">{items}</ol>'


def _row(row: ShownRow, two_sides: bool) -> str:
    """In self-attention one text, in cross-attention the token predicted before the source."""
    own = None if two_sides else row.query
    pieces = "".join(_piece(piece, float(row.weights[at]), at == own) for at, piece in enumerate(row.keys))
    before = f"{_piece(row.queries[row.query], 0.0, True)} ← " if two_sides else ""
    return f"{before}<span>{pieces}</span>"


def _piece(piece: str, weight: float, attends: bool) -> str:
    space = " " if piece.startswith((" ", "<", "▁")) else ""
    looks = [f"w{round(weight * STEPS)}"] if weight > 0 else []
    looks += ["attends"] if attends else []
    share = say("{share} of the weight", share=number(weight, ".0%"))
    title = f' title="{html.escape(share)}"' if weight > 0 else ""
    return f'{space}<span class="{" ".join(looks)}"{title}>{html.escape(readable(piece))}</span>'
