"""What a figure of lines, areas and dots is made of; viz/components/curves draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .palette import Palette
from .speech import number


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; `ticks` are numbers and what stands at them."""

    low: float
    high: float
    title: str = ""
    ticks: Sequence[tuple[float, str]] = ()
    grid: bool = False


@dataclass(frozen=True, eq=False)
class Mark:
    """One line, area or row of dots through `points` (N, 2); NaN parts a line."""

    kind: Literal["line", "area", "dots"]
    points: np.ndarray
    colour: str
    size: float = 2.0
    """Pixels: a line's width, a dot's radius."""
    says: str = ""
    """What is read at a point, {x} being its first coordinate, {name} its name and {0}, {1} its `values`, as in
    {0:,.2f} or {0:.1e}; where this is empty, the mark is not pointed at."""
    values: np.ndarray | None = None
    """(N, M)"""
    names: Sequence[str] = ()
    """(N,) where points have names."""


@dataclass(frozen=True)
class Note:
    """Words in the picture. Lines are parted by a line feed; the first is bold where there are more."""

    text: str
    x: float
    y: float
    colour: str
    across: Literal["start", "middle", "end"] = "middle"
    """Which side of the words stands at `x`."""
    down: Literal["top", "middle", "bottom"] = "middle"
    shift: float = 0
    """Pixels to the right."""


@dataclass(frozen=True, eq=False)
class Curves:
    """A whole figure, in the coordinates of its axes."""

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    """From front to back."""
    palette: Palette
    notes: Sequence[Note] = ()
    height: int = 460
    left: int = 64
    """Pixels for what stands left of the plot."""
    legend: Sequence[tuple[str, str]] = ()
    """What each colour is: names and colours, said beside the title."""
    square: bool = False
    """One unit is as long across as up."""


def linear(low: float, high: float, title: str = "", most: int = 8, grid: bool = False, whole: bool = False) -> Axis:
    """An axis with at most `most` round numbers at even steps; with `whole`, no fractions."""
    span = (high - low) or 1.0
    power = 10.0 ** np.floor(np.log10(span / most))
    step = next(power * part for part in (1, 2, 5, 10) if span / (power * part) <= most)
    if whole:
        step = max(step, 1.0)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    ticks = [(at * step, number(at * step, f",.{digits}f")) for at in range(first, last + 1)]
    return Axis(low, high, title, ticks, grid)


def decades(low: float, high: float, title: str = "", step: int = 1, grid: bool = False) -> Axis:
    """A logarithmic axis; `low` and `high` are powers of ten, and so are the coordinates on it."""
    signs = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    powers = range(int(np.ceil(low)), int(np.floor(high)) + 1, step)
    plain = {0: "1", 1: "10", 2: "100"}
    return Axis(low, high, title, [(at, plain.get(at, f"10{str(at).translate(signs)}")) for at in powers], grid)
