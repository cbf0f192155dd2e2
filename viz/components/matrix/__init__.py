"""A large table of numbers as a picture, one byte a value: hover or arrow keys read a cell, a click chooses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from ..bundle import component
from ..packing import FULL, pack

_mount = component("matrix")


@dataclass(frozen=True, eq=False)
class Matrix:
    """What is drawn: `values` (R, C), the names of rows and columns, and colours from `low` to `high`."""

    values: np.ndarray
    title: str
    row_names: Sequence[str | int]
    column_names: Sequence[str | int]
    row_title: str
    column_title: str
    low: float
    high: float
    stops: Sequence[str]
    """Colours #rrggbb, evenly spaced from `low` to `high`."""
    square: bool = False
    """Cells as wide as they are high."""
    height: int = 430
    marks: Sequence[int] = field(default=())
    """Rows under which a line is drawn."""
    exponent: bool = False
    """`values`, `low` and `high` are logarithms to base 10, and read as 1e-6 and so on."""


def matrix(
    shown: Matrix,
    chosen: tuple[int, int] | None = None,
    *,
    key: str,
    on_cell: Callable[[int, int], None] | None = None,
) -> None:
    """Draw `shown`; `on_cell(row, column)` hears of a chosen cell, both counted from 0 in the order drawn."""

    def picked() -> None:
        cell = st.session_state[key].cell
        if on_cell:
            on_cell(int(cell["row"]), int(cell["column"]))

    _mount(key=key, data=packed(shown, chosen), on_cell_change=picked)


def packed(shown: Matrix, chosen: tuple[int, int] | None = None) -> bytes:
    """What matrix.js reads: names, colours and the chosen cell, then (R, C) bytes, 0 at `low` and FULL at `high`."""
    rows, columns = shown.values.shape
    header = {
        "rows": rows,
        "columns": columns,
        "title": shown.title,
        "rowNames": list(shown.row_names),
        "columnNames": list(shown.column_names),
        "rowTitle": shown.row_title,
        "columnTitle": shown.column_title,
        "low": shown.low,
        "high": shown.high,
        "stops": list(shown.stops),
        "square": shown.square,
        "height": shown.height,
        "marks": list(shown.marks),
        "exponent": shown.exponent,
        "chosen": chosen,
    }
    return pack(header, levels(shown.values, shown.low, shown.high).tobytes())


def levels(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values -> uint8 0..FULL, evenly from `low` to `high`; what lies outside is held at the ends."""
    share = (values.astype(np.float32) - low) / (high - low)
    return np.rint(share.clip(0, 1) * FULL).astype(np.uint8)
