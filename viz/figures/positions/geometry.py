"""Similarity by distance, and the shift of positions as a turn of every pair of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..curves import Axis, Curves, Mark, Note, linear
from ..diverging import negative
from ..palette import Palette
from ..speech import number, say

if TYPE_CHECKING:
    from model.positions.geometry import DistanceProfile

COLUMNS = 4
APART, DOWN = 3.0, 3.5
"""Distances of two circles' middles, in radii."""
ARC = 0.72
"""Radius of the arc that a hand has gone."""


def profile(
    own: DistanceProfile, other: DistanceProfile | None, names: tuple[str, str], title: str, palette: Palette
) -> Curves:
    """Similarity over distance: the mean as a line, lowest and highest as a band; `other` for comparison.

    Every second mark is a line with a point a distance.
    """
    drawn = [(own, names[0], palette.accent)]
    if other is not None:
        drawn.append((other, names[1], negative(palette)))
    marks, notes = [], []
    for curve, name, colour in drawn:
        distance = np.arange(len(curve.mean))
        there, back = (np.stack([distance, edge], -1) for edge in (curve.lowest, curve.highest))
        says = say("{x} apart: {value}", x="{x}", value="{0:.4f}")
        if other is not None:
            says = say("{name}, {x} apart: {value}", name=name, x="{x}", value="{0:.4f}")
        mean = np.stack([distance, curve.mean], -1)
        marks += [
            Mark("line", mean, colour, 2.5, says, curve.mean[:, None]),
            Mark("area", np.concatenate([there, back[::-1]]), colour),
        ]
        if other is not None:
            at = len(curve.mean) // 2
            notes.append(Note(name, at, float(curve.mean[at]), colour, down="bottom"))
    low = min(float(curve.lowest.min()) for curve, _, _ in drawn)
    high = max(float(curve.highest.max()) for curve, _, _ in drawn)
    room = 0.05 * (high - low) or 1.0
    return Curves(
        title,
        linear(0, max(len(own.mean) - 1, 1), say("distance between two positions"), whole=True),
        linear(low - room, high + room, grid=True),
        marks,
        palette,
        notes,
    )


def circles(
    before: np.ndarray, after: np.ndarray, pairs: Sequence[int], lengths: np.ndarray, shift: int, palette: Palette
) -> Curves:
    """Pairs (sine, cosine) of one position and of the shifted one, (N, 2) each, on a circle each.

    The cosine is drawn across and the sine up, so that a later position lies further round, against the clock. The
    marks are, for the shifted position and then for the other, the hands' ends, a dot a pair, and the hands; then arcs.
    """
    ring = np.linspace(0, 2 * np.pi, 73)
    middles = np.array([(APART * (at % COLUMNS), -DOWN * (at // COLUMNS)) for at in range(len(pairs))])
    rings, arcs, notes = [], [], []
    for middle, start, pair in zip(middles, before, pairs, strict=True):
        turn = shift * 2 * np.pi / float(lengths[pair])
        steps = int(min(720, 24 + abs(turn) * 8))
        rings.append(middle + _on_circle(ring))
        arcs.append(middle + ARC * _on_circle(np.arctan2(start[0], start[1]) + np.linspace(0, turn, steps)))
        text = say(
            "pair {pair}\nwavelength {length:,.0f}\nturns by {degrees:,.4g}°",
            pair=pair,
            length=float(lengths[pair]),
            degrees=float(np.degrees(turn)),
        )
        notes.append(Note(text, middle[0], middle[1] - 1.1, palette.soft, down="top"))
    first, last = middles + before[:, ::-1], middles + after[:, ::-1]
    return Curves(
        say("A shift by {shift} turns every pair by its own angle", shift=number(shift)),
        Axis(-1.2, APART * (min(COLUMNS, len(pairs)) - 1) + 1.2),
        Axis(-DOWN * ((len(pairs) - 1) // COLUMNS) - 2.2, 1.15),
        [
            Mark("dots", last, palette.accent, 6, say("shifted: sin {0:.4f}, cos {1:.4f}"), after),
            Mark("line", _apart(np.stack([middles, last], 1)), palette.accent, 3),
            Mark("dots", first, palette.soft, 6, say("position: sin {0:.4f}, cos {1:.4f}"), before),
            Mark("line", _apart(np.stack([middles, first], 1)), palette.soft, 3),
            Mark("line", _apart(arcs), palette.soft, 2),
            Mark("line", _apart(rings), palette.line, 1.5),
        ],
        palette,
        notes,
        left=0,
        square=True,
    )


def _on_circle(angle: np.ndarray) -> np.ndarray:
    """(N,) -> (N, 2) across and up."""
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def _apart(lines: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """Lines (N, 2) each as one, with gaps between them."""
    return np.concatenate([np.vstack([line, (np.nan, np.nan)]) for line in lines])
