"""The pinned positions of a sentence and of its translation, which every view marks; they are in the address."""

from __future__ import annotations

from collections.abc import Mapping

from .addresses.pins import PIN, Place


def pin_of(text: str, place: Place) -> int | None:
    """Return the pinned position of `text` or of its translation, from 0; another sentence starts with none."""
    return PIN.get(of=text).get(place)


def pin(text: str, cell: Mapping[Place, int]) -> None:
    """Pin positions beside those that are pinned; for callbacks."""
    PIN.set(PIN.get(of=text) | dict(cell), of=text)


def toggle_pins(text: str, cell: Mapping[Place, int]) -> None:
    """Pin positions, or let go of them where all of them are pinned already; for callbacks."""
    before = PIN.get(of=text)
    if cell.items() <= before.items():
        after = {place: position for place, position in before.items() if place not in cell}
    else:
        after = before | dict(cell)
    PIN.set(after, of=text)
