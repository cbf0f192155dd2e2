"""The pinned positions of a sentence and of its translation, which every view marks; they are in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from attenscope.viz.ui.address import Parameter

PinPlace = Literal["source", "target", "source_key", "target_key"]
"""What a pinned position counts: tokens of the sentence, of its translation, or, in self-attention, keys of either."""
PIN_PLACES: tuple[PinPlace, ...] = get_args(PinPlace)


def read_pins(text: str) -> dict[PinPlace, int]:
    """``target.4,source.2``, counted from 1 -> positions from 0; what is no pin is left out."""
    pairs = (part.split(".") for part in text.split(","))
    pins = {pair[0]: int(pair[1]) - 1 for pair in pairs if len(pair) == 2 and is_short_number(pair[1])}
    return {place: pins[place] for place in PIN_PLACES if pins.get(place, -1) >= 0}


def write_pins(pins: Mapping[PinPlace, int]) -> str:
    return ",".join(f"{place}.{position + 1}" for place, position in pins.items())


def is_short_number(text: str) -> bool:
    """Whether a text is a short whole number without a sign."""
    return text.isascii() and text.isdecimal() and len(text) < 6


PIN: Parameter[dict[PinPlace, int]] = Parameter("pin", {}, read_pins, write=write_pins, slot="pins")


def get_pin(text: str, place: PinPlace) -> int | None:
    """Return the pinned position of `text` or of its translation, from 0; another sentence starts with none."""
    return PIN.get(of=text).get(place)


def add_pins(text: str, cell: Mapping[PinPlace, int]) -> None:
    """Pin positions beside those that are pinned; for callbacks."""
    PIN.set(PIN.get(of=text) | dict(cell), of=text)


def toggle_pins(text: str, cell: Mapping[PinPlace, int]) -> None:
    """Pin positions, or let go of them where all of them are pinned already; for callbacks."""
    before = PIN.get(of=text)
    if cell.items() <= before.items():
        after = {place: position for place, position in before.items() if place not in cell}
    else:
        after = before | dict(cell)
    PIN.set(after, of=text)
