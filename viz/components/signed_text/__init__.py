"""Texts shaded by one signed number a piece: orange below zero, indigo above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.language.say import say

from ...figures.diverging import diverging
from ...figures.labels import readable, signed
from ...figures.palette import Palette
from ..bundle import component
from ..packing import FULL, pack

_mount = component("signed_text")


@dataclass(frozen=True, eq=False)
class SignedText:
    """One text and the number of each of its pieces."""

    title: str
    note: str
    """What stands under the title until a piece is pointed at."""
    pieces: Sequence[str]
    values: np.ndarray | None
    """(P,) or None where nothing is said of these pieces."""


def signed_text(texts: Sequence[SignedText], palette: Palette, label: str, *, key: str) -> None:
    """Draw `texts` beside each other, on one scale; screen readers are told `label`."""
    _mount(key=key, data=packed(texts, palette, label))


def packed(texts: Sequence[SignedText], palette: Palette, label: str) -> bytes:
    """What signed_text.js reads: pieces and colours, then a byte a piece; half of FULL is zero."""
    largest = max((float(np.abs(one.values).max()) for one in texts if one.values is not None), default=0.0) or 1.0
    levels = [np.zeros(len(one.pieces)) if one.values is None else one.values / largest for one in texts]
    header = {
        "texts": [
            {"title": one.title, "note": one.note, "tokens": [_token(one, at) for at in range(len(one.pieces))]}
            for one in texts
        ],
        "label": label,
        "stops": diverging(palette),
        "inks": (palette.ink, palette.background),
    }
    return pack(header, np.rint((np.concatenate(levels) + 1) / 2 * FULL).astype(np.uint8).tobytes())


def _token(text: SignedText, at: int) -> dict[str, str | bool]:
    piece = text.pieces[at]
    value = say("no number") if text.values is None else signed(float(text.values[at]), 3, plus=True)
    return {"text": readable(piece), "space": piece.startswith((" ", "<", "▁")), "value": value}
