"""Lines, areas and dots over two axes, drawn in the browser: hover or arrow keys read a point, a click chooses it.

A plotly chart is mounted anew at every change and takes 50 to 60 ms for it, two of them twice that; these curves
follow a control in a few. They have no zoom: a figure that needs one is plotly's.
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

_mount = component("curves")


Box = tuple[float, float, float, float]
"""Left, right, low and high of a part of the plot, in the coordinates of its axes."""


def curves(
    shown: Curves, *, key: str, on_point: Callable[[int, int], None], on_box: Callable[[Box], None] | None = None
) -> None:
    """Draw `shown`; `on_point(mark, point)` hears which point of which mark was chosen, both counted from 0.

    With `on_box`, a box can be drawn with the mouse, and it hears of that.
    """

    def picked() -> None:
        point = st.session_state[key].point
        on_point(int(point["mark"]), int(point["at"]))

    def brushed() -> None:
        left, right, low, high = (float(end) for end in st.session_state[key].box)
        if on_box:
            on_box((left, right, low, high))

    data = packed(shown, brush=on_box is not None)
    _mount(key=key, data=data, on_point_change=picked, on_box_change=brushed)


def packed(shown: Curves, brush: bool = False) -> bytes:
    """What curves.js reads: the figure without numbers, then points and values of every mark as float32."""
    header = {
        "title": shown.title,
        "legend": list(shown.legend),
        "x": asdict(shown.x),
        "y": asdict(shown.y),
        "notes": [asdict(note) for note in shown.notes],
        "marks": [_described(mark) for mark in shown.marks],
        "height": shown.height,
        "left": shown.left,
        "square": shown.square,
        "brush": brush,
        "soft": shown.palette.soft,
        "line": shown.palette.line,
        "background": shown.palette.background,
    }
    arrays = [array for mark in shown.marks for array in (mark.points, mark.values) if array is not None]
    return pack(header, b"".join(np.ascontiguousarray(array, np.dtype("<f4")).tobytes() for array in arrays))


def _described(mark: Mark) -> dict[str, Any]:
    columns = 0 if mark.values is None else mark.values.shape[1]
    look = {"kind": mark.kind, "colour": mark.colour, "size": mark.size, "says": mark.says, "names": mark.names}
    return {**look, "count": len(mark.points), "columns": columns}
