"""Tokens as dots in the plane of their two principal components, coloured by what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..curves import Axis, Curves, Mark, Note
from ..diverging import negative
from ..palette import Palette, blend, head_colour
from ..speech import say, to_say

HEIGHT = 500
SMALL, LARGE = 2.4, 5.0
"""Radii in pixels: of a token, and of one that is marked."""
LINE = 19
"""Pixels from one line of the legend to the next."""
TAGS = 7
"""Parts of speech that have a colour of their own: the commonest."""
OTHER = to_say("other")
PARTS = (to_say("beginning"), to_say("first third"), to_say("middle"), to_say("last third"), to_say("end"))
SIDES = (to_say("query"), to_say("key"))


@dataclass(frozen=True, eq=False)
class Dots:
    """N tokens of one colour."""

    name: str
    """What they are, for the legend."""
    colour: str
    points: np.ndarray
    """(N, 2)"""
    names: Sequence[str]
    """(N,) what is read at each."""
    marked: bool = False


def projection(groups: Sequence[Dots], axes: tuple[str, str], title: str, palette: Palette) -> Curves:
    """A mark a group, in their order, marked tokens in front of all others; each group is named in its colour."""
    every = np.concatenate([one.points for one in groups])
    x, y = (_axis(every[:, at], name) for at, name in enumerate(axes))
    marks = [
        Mark("dots", one.points, one.colour, LARGE if one.marked else SMALL, "{name}", names=one.names)
        for one in groups
    ]
    line = (y.high - y.low) * LINE / HEIGHT
    notes = [Note(one.name, x.high, y.high - (at + 0.7) * line, one.colour, "end") for at, one in enumerate(groups)]
    return Curves(title, x, y, marks, palette, notes, HEIGHT, left=30)


def group_name(name: str) -> str:
    """A group of tokens as a person reads it; a part of speech by its code."""
    return say(name) if name in (OTHER, *PARTS, *SIDES) else name


def side_colours(palette: Palette) -> dict[str, str]:
    """Queries in the colour of attention, keys in its opposite."""
    return dict(zip(SIDES, (palette.accent, negative(palette)), strict=True))


def tag_colours(counts: Mapping[str, int], palette: Palette) -> dict[str, str]:
    """A colour for each of the commonest parts of speech, the commonest first; all others share the last."""
    common = sorted((tag for tag in counts if tag), key=lambda tag: (-counts[tag], tag))[:TAGS]
    return {**{tag: head_colour(palette, at) for at, tag in enumerate(common)}, OTHER: palette.soft}


def position_colours(palette: Palette) -> dict[str, str]:
    """Parts of a sentence from its beginning to its end, from the opposite colour to that of attention."""
    return dict(zip(PARTS, blend(negative(palette), palette.accent, len(PARTS)), strict=True))


def part_of(place: int, last: int) -> str:
    """Where in its sentence a token stands, `place` and `last` from 0."""
    if place in (0, last):
        return PARTS[0] if place == 0 else PARTS[-1]
    return PARTS[1 + min(2, 3 * (place - 1) // max(1, last - 1))]


def _axis(values: np.ndarray, name: str) -> Axis:
    low, high = float(values.min()), float(values.max())
    room = 0.04 * ((high - low) or 1.0)
    return Axis(low - room, high + room, name)
