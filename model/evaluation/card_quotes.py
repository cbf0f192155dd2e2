"""Translations that a model card quotes, written into it by the model that the card is of.

They stand in a table between two marks. A person writes its first column, the sentences, and its last, what is to be
seen; `python -m model quality` fills in the translations between them, so that a card quotes what its model writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..checkpoint.card_section import CardSection

SECTION = CardSection("quotes", "python -m model quality")
_BORDER = re.compile(r"(?<!\\)\|")


def quotes(card: str) -> tuple[tuple[str, str], ...]:
    """The sentences of a card's table and their translations as they stand there; none where there is no table."""
    return tuple((cells[0], cells[1]) for cells in map(_cells, _rows(card)))


def with_quotes(card: str, translate: Callable[[str], str]) -> str:
    """A card with every translation of its table made again; one without the two marks stays as it is."""
    for row in _rows(card):
        sentence, _, *remarks = _cells(row)
        card = card.replace(row, f"| {' | '.join(map(_escaped, (sentence, translate(sentence), *remarks)))} |")
    return card


def _rows(card: str) -> list[str]:
    """The lines of the table below its heading."""
    return [line for line in SECTION.text(card).splitlines() if line.startswith("|")][2:]


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BORDER.split(row)[1:-1]]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
