"""Every head as a dot over two measures: coloured by its map, as large as what switching it off costs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ..curves import Axis, Curves, Mark, Note, linear
from ..diverging import negative
from ..labels import KIND_NAMES
from ..palette import Palette
from ..speech import say

HEIGHT = 520
SMALLEST, LARGEST = 4.0, 15.0
"""Radii in pixels; the area grows with the cost."""
NAMED = 6
"""Heads whose name stands beside their dot: those that cost most."""
NAME_WIDTH, NAME_HEIGHT = 0.14, 0.06
"""Shares of the picture that a name takes in a narrow window, its distance from the dot included."""


@dataclass(frozen=True)
class Dot:
    """A head on the map."""

    name: str
    kind: str
    x: float
    y: float
    cost: float
    """In nats; 0 where it is not known."""
    label: str
    chosen: bool = False


def scatter(
    dots: Sequence[Dot], across: str, up: str, title: str, palette: Palette, beside: Sequence[Dot] = ()
) -> Curves:
    """A mark a dot, in the order of `dots`, so that a click names its head.

    `beside` are the dots of a second picture, with which this one shares its axes and the sizes of its dots.
    """
    colours, priced = kind_colours(palette), say("cost")
    most = max((max(dot.cost, 0.0) for dot in (*dots, *beside)), default=0.0) or 1.0
    marks = [
        Mark(
            "dots",
            np.array([[dot.x, dot.y]]),
            colours[dot.kind],
            SMALLEST + (LARGEST - SMALLEST) * (max(dot.cost, 0.0) / most) ** 0.5,
            f"{dot.name} · {dot.label} · {across} {{0:.3f}} · {up} {{1:.3f}} · {priced} {{2:.4f}}",
            np.array([[dot.x, dot.y, dot.cost]]),
        )
        for dot in dots
    ]
    largest = sorted(dots, key=lambda dot: (not dot.chosen, -dot.cost))[:NAMED]
    x, y = (_axis([getattr(dot, one) for dot in (*dots, *beside)], name) for one, name in (("x", across), ("y", up)))
    notes = [_name(dot, dots, x, y, palette) for dot in largest]
    kinds = {dot.kind for dot in (*dots, *beside)}
    return Curves(title, x, y, marks, palette, notes, height=HEIGHT, legend=kind_legend(kinds, palette))


def _name(dot: Dot, dots: Sequence[Dot], x: Axis, y: Axis, palette: Palette) -> Note:
    """The name beside its dot, where it stays in the picture and covers fewer others; towards the middle if equal."""
    inwards = 1 if dot.x < (x.low + x.high) / 2 else -1
    wide, tall = NAME_WIDTH * (x.high - x.low), NAME_HEIGHT * (y.high - y.low)

    def covered(side: int) -> float:
        if not x.low <= dot.x + side * wide <= x.high:
            return np.inf
        return sum(0 < side * (one.x - dot.x) < wide and abs(one.y - dot.y) < tall / 2 for one in dots)

    side = min((inwards, -inwards), key=covered)
    return Note(dot.name, dot.x, dot.y, palette.ink, "start" if side > 0 else "end", "middle", 18 * side)


def kind_colours(palette: Palette) -> dict[str, str]:
    """The colour of each map's heads."""
    return {"encoder": palette.accent, "decoder": negative(palette), "cross": palette.soft}


def kind_legend(kinds: Collection[str], palette: Palette) -> list[tuple[str, str]]:
    """Which colour is which map, of those there are."""
    return [(say(KIND_NAMES[kind]), colour) for kind, colour in kind_colours(palette).items() if kind in kinds]


def _axis(values: Sequence[float], name: str) -> Axis:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.06 * ((high - low) or 1.0)
    return linear(low - room, high + room, name, grid=True)
