"""The forms of the sinusoidal table beside each other, by their error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..curves import Axis, Curves, Mark, Note, decades
from ..labels import room
from ..palette import Palette
from ..speech import number, say

if TYPE_CHECKING:
    from model.positions.forms import FormError

LEAST = -9.0
"""The power of ten at which the axis begins; a form without error stands there."""


def errors(titles: Sequence[str], found: Sequence[FormError], chosen: str, palette: Palette) -> Curves:
    """The largest error of every form as a dot on a logarithmic axis; `chosen` is a form's name.

    The first marks are the dots, one mark a form.
    """
    dots, stems, notes = [], [], []
    for row, (title, one) in enumerate(zip(titles, found, strict=True)):
        at = max(float(np.log10(one.largest)) if one.largest else LEAST, LEAST)
        colour = palette.accent if one.name == chosen else palette.soft
        says, values = say("{form}: largest error {error}", form=title, error="{0:.2e}"), np.array([[one.largest]])
        dots.append(Mark("dots", np.array([(at, -row)]), colour, 6.5, says, values))
        stems.append(Mark("line", np.array([(LEAST, -row), (at, -row)]), palette.line, 3))
        notes.append(Note(number(one.largest, ".1e"), at, -row, colour, "start", shift=14))
        notes.append(Note(title, LEAST, -row, palette.accent if one.name == chosen else palette.ink, "end", shift=-12))
    return Curves(
        say("Largest error against float64"),
        decades(LEAST, 1.6, step=2),
        Axis(0.4 - len(found), 0.6),
        [*dots, *stems],
        palette,
        notes,
        height=356,
        left=room(titles, 176),
    )
