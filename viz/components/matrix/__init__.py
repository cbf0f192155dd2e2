"""A large table of numbers as a picture: hover or arrow keys read a cell, a click chooses it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from ..bundle import component
from ..packing import FINE_FULL, FULL, levels, pack

_mount = component("matrix")
LEAST = -99
"""The least power of ten: a size below ten of it counts as zero, but no error of a table is nearly as small."""


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
    """`values` are sizes read as 1.0e-6 and so on; `low` and `high` are powers of ten."""


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
    """What matrix.js reads: names, colours and the chosen cell, then (R, C) numbers as values.js reads them."""
    rows, columns = shown.values.shape
    numbers, reading = _significant(shown.values) if shown.exponent else _even(shown.values, shown.low, shown.high)
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
        **reading,
    }
    return pack(header, numbers.tobytes())


def _even(values: np.ndarray, low: float, high: float) -> tuple[np.ndarray, dict[str, int]]:
    """Return levels from `low` to `high`, in as many bytes as two decimals need, and how they are read.

    Where two bytes are not enough, fewer decimals are printed.
    """
    span = high - low
    full = FULL if 100 * span < FULL else FINE_FULL
    decimals = max(0, min(2, math.floor(math.log10(FINE_FULL / span))))

    def printed(values: np.ndarray) -> np.ndarray:
        """Halves away from zero, as JavaScript rounds them."""
        return np.trunc(values * 10**decimals + np.copysign(0.5, values))

    found = levels(values, low, high, full, printed)
    return found.astype("u1" if full == FULL else "<u2"), {"full": full, "decimals": decimals}


def _significant(values: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Return sizes rounded to two significant digits as uint16, and how they are read.

    m * 10**p with m from 10 to 99 is 1 + 90 * (p - LEAST) + (m - 10); 0 is an exact zero.
    """
    known = values >= 10.0 ** (LEAST + 1)
    power = np.floor(np.log10(values, out=np.zeros(values.shape), where=known)) - 1
    digits = np.floor(values / 10.0**power + 0.5)  # 100 is 10 of the next power, and so are their codes.
    return np.where(known, 1 + 90 * (power - LEAST) + (digits - 10), 0).astype("<u2"), {"least": LEAST}
