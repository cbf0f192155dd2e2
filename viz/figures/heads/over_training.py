"""A measure of every head over the training: a line a head, coloured by its map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..curves import Axis, Curves, Mark, linear
from ..palette import Palette
from ..speech import say
from .scatter import kind_colours, kind_legend

HEIGHT = 480


def over_training(
    courses: Mapping[str, tuple[str, Sequence[float]]], ticks: Sequence[str], measure: str, title: str, palette: Palette
) -> Curves:
    """`courses`: the map and the values of each head by its name, a value a stop of the training (`ticks`).

    Stops stand at even distances. Two marks a head, in the order of `courses`: its line and its dots.
    """
    colours = kind_colours(palette)
    across = np.arange(len(ticks), dtype=float)
    marks = []
    for name, (kind, values) in courses.items():
        points = np.stack([across, np.array(values, dtype=float)], -1)
        known = ~np.isnan(points[:, 1])
        points[~known] = np.nan
        marks += [
            Mark("line", points, colours[kind], 1.5),
            Mark("dots", points[known], colours[kind], 2.5, f"{name} · {measure} {{0:.3f}}", points[known][:, 1:]),
        ]
    values = [value for _, course in courses.values() for value in course if not np.isnan(value)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.05 * (high - low) or 1.0
    return Curves(
        title,
        Axis(-0.2, len(ticks) - 0.8, say("training step"), list(enumerate(ticks))),
        linear(low - room, high + room, measure, grid=True),
        marks,
        palette,
        height=HEIGHT,
        legend=kind_legend({kind for kind, _ in courses.values()}, palette),
    )
