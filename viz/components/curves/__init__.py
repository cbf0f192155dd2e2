"""Lines, areas and dots over two axes, drawn in the browser: hover or arrow keys read a point, a click chooses it.

A plotly chart is mounted anew at every change and takes 50 to 60 ms for it, two of them twice that; these curves
follow a control in a few. They have no zoom and no legend: a figure that needs those is plotly's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import streamlit as st

from ...figures.curves import Curves, Mark
from ..bundle import component
from ..packing import pack
from ..presenter import SCENE, presenting

_mount = component("curves")


def curves(shown: Curves, *, key: str, on_point: Callable[[int, int], None]) -> None:
    """Draw `shown`; `on_point(mark, point)` hears which point of which mark was chosen, both counted from 0."""

    def picked() -> None:
        point = st.session_state[key].point
        on_point(int(point["mark"]), int(point["at"]))

    _mount(key=key, data=packed(shown, presenting()), on_point_change=picked)


def packed(shown: Curves, scene: bool = False) -> bytes:
    """What curves.js reads: the figure without numbers, then points and values of every mark as float32."""
    header = {
        "title": shown.title,
        "x": asdict(shown.x),
        "y": asdict(shown.y),
        "notes": [asdict(note) for note in shown.notes],
        "marks": [_described(mark) for mark in shown.marks],
        "height": min(shown.height, SCENE) if scene else shown.height,
        "left": shown.left,
        "square": shown.square,
        "soft": shown.palette.soft,
        "line": shown.palette.line,
        "background": shown.palette.background,
    }
    arrays = [array for mark in shown.marks for array in (mark.points, mark.values) if array is not None]
    return pack(header, b"".join(np.ascontiguousarray(array, np.dtype("<f4")).tobytes() for array in arrays))


def _described(mark: Mark) -> dict[str, Any]:
    columns = 0 if mark.values is None else mark.values.shape[1]
    look = {"kind": mark.kind, "colour": mark.colour, "size": mark.size, "says": mark.says}
    return {**look, "count": len(mark.points), "columns": columns}
