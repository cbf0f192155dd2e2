"""Figures fitted for projection: type that the back row can read.

A scene is laid out for a height of 540 pixels (viz/web/src/stage/fit.js), so type of 12 pixels is 1/45 of the
screen. Names without room at that size are left out by the browser, which knows the room (stage/fit.js); a weight
is not written into a cell that is too narrow for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

LEAST_FONT_SIZE = 12.5
"""Pixels of the smallest type."""
STAGE_WIDTH = 560
"""Pixels that a picture on the stage can count on across: beside the tiles of all heads."""
NUMBER_WIDTH = 31
"""Pixels that a weight such as 0.25 needs across."""


def enlarge_fonts_for_projection(figure: go.Figure) -> go.Figure:
    """The figure with type of at least :data:`LEAST_FONT_SIZE` pixels; numbers as far as they have room."""
    raw = figure.to_dict()
    layout = raw["layout"]
    for font in _find_fonts(raw):
        font["size"] = _enlarge_font_size(font["size"])
    layout["font"] = {"size": LEAST_FONT_SIZE} | layout.get("font", {})
    shapes = [np.shape(trace.z) if trace.type == "heatmap" else None for trace in figure.data]
    heatmaps = [(trace, shape) for trace, shape in zip(raw["data"], shapes, strict=True) if shape]
    for trace, shape in heatmaps:
        _stretch_heatmap_to_panel(trace, shape, layout)
    for trace, shape in heatmaps:
        if "texttemplate" in trace and not _has_room_for_weights(trace, shape[1], layout):
            del trace["texttemplate"]
    return go.Figure(raw)


def _stretch_heatmap_to_panel(trace: Mapping[str, Any], shape: Sequence[int], layout: Mapping[str, Any]) -> None:
    """Let a heatmap take its whole panel: elsewhere a short sentence leaves room free (figures/heatmap.py)."""
    for letter, count in zip("yx", shape, strict=True):
        axis = _find_axis(trace, letter, layout)
        low, high = axis.get("range") or (0, 0)
        if abs(high - low) > count and letter not in trace:
            first = trace.get(f"{letter}0", 0)
            ends = first - 0.5, first + count - 0.5
            axis["range"] = list(ends if low < high else ends[::-1])


def _find_axis(trace: Mapping[str, Any], letter: str, layout: Mapping[str, Any]) -> dict[str, Any]:
    found = layout.get(trace.get(f"{letter}axis", letter).replace(letter, f"{letter}axis"), {})
    return found if isinstance(found, dict) else {}


def _find_fonts(found: Any) -> Iterator[dict[str, Any]]:
    """Every font that says its size, anywhere in a figure."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name.endswith("font") and isinstance(value, dict) and "size" in value:
                yield value
            yield from _find_fonts(value)
    elif isinstance(found, (list, tuple)):
        for value in found:
            if isinstance(value, (dict, list, tuple)):
                yield from _find_fonts(value)


def _enlarge_font_size(size: Any) -> Any:
    return (
        [max(one, LEAST_FONT_SIZE) for one in size] if isinstance(size, (list, tuple)) else max(size, LEAST_FONT_SIZE)
    )


def _compute_axis_fraction(axis: Mapping[str, Any]) -> float:
    """The part of the picture that an axis takes."""
    low, high = axis.get("domain") or (0.0, 1.0)
    return float(high - low)


def _has_room_for_weights(trace: Mapping[str, Any], columns: int, layout: Mapping[str, Any]) -> bool:
    """Whether the cells of a heatmap have room for their weights."""
    margins = sum(layout.get("margin", {}).get(side, 80) for side in "lr")
    axis = _find_axis(trace, "x", layout)
    low, high = axis.get("range") or (0, columns)
    return (STAGE_WIDTH - margins) * _compute_axis_fraction(axis) / abs(high - low) >= NUMBER_WIDTH
