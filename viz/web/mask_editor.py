"""Masks side by side on one grid of cells: hover reads a cell in all of them, a click or Enter turns one over.

Cells that contradict the intended mask differ by colour and by a sign in the cell, never by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import streamlit as st

from attenscope.viz.figures.figure_style import format_signed
from attenscope.viz.figures.masks import MaskColours
from attenscope.viz.web.component_scripts import create_mount_function, pack_arrays

TokenNames = tuple[Sequence[str], Sequence[str]]
"""The names of the queries and of the keys; empty where they are unknown."""

_mount_mask_editor = create_mount_function("mask_editor")


class CellState(IntEnum):
    """What a cell is."""

    BLOCKED = 0
    ALLOWED = 1
    LEAK = 2
    OVER = 3
    """Blocked although it was meant to be allowed."""
    NAN = 4
    DIM = 5
    """Carries weight, but in the row of a padding query, which nothing reads."""


class CellMark(IntEnum):
    """How it came to be so."""

    NONE = 0
    INFINITE = 1
    """Blocked by -inf."""
    FINITE = 2
    """Blocked by a finite fill."""
    UNIFORM = 3
    """In a row whose weights are all the same although nothing was meant to be seen."""
    ADDED = 4
    """A 1 that was added to the score."""


@dataclass(frozen=True, eq=False)
class MaskPanel:
    """One mask. Arrays are (Q, K); a panel without them says why in ``note``."""

    name: str
    title: str
    note: str
    states: np.ndarray | None = None
    marks: np.ndarray | None = None
    values: np.ndarray | None = None
    """Numbers that the readout tells; NaN where there are none."""
    editable: bool = False
    row_sums: Sequence[float] = field(default=())
    column_sums: Sequence[float] = field(default=())


@dataclass(frozen=True)
class LegendSign:
    """How a cell looks, and what that says."""

    sign: str
    said: str
    colour: str = "none"
    ink: str = "inherit"


def draw_mask_editor(
    panels: Sequence[MaskPanel],
    colours: MaskColours,
    *,
    key: str,
    marked: tuple[Sequence[int], Sequence[int]] = ((), ()),
    tokens: TokenNames = ((), ()),
    words: Sequence[str] = (),
    legend: Sequence[LegendSign] = (),
    on_cell: Callable[[str, int, int], None] | None = None,
) -> None:
    """Draw ``panels``; ``on_cell(panel, query, key)`` hears of a cell that was turned over in an editable one.

    ``marked`` are queries and keys to draw a frame around, from 0; ``tokens`` are the names of the queries and of the
    keys, where they are known; ``words`` say what each :class:`CellState` is, where it is not against what was meant;
    ``legend`` says it of the signs below the masks.
    """

    def handle_turn() -> None:
        cell = st.session_state[key].cell
        if on_cell:
            on_cell(str(cell["panel"]), int(cell["row"]), int(cell["column"]))

    _mount_mask_editor(
        key=key, data=encode_mask_editor(panels, colours, marked, tokens, words, legend), on_cell_change=handle_turn
    )


def encode_mask_editor(
    panels: Sequence[MaskPanel],
    colours: MaskColours,
    marked: tuple[Sequence[int], Sequence[int]],
    tokens: TokenNames = ((), ()),
    words: Sequence[str] = (),
    legend: Sequence[LegendSign] = (),
) -> bytes:
    """What mask_editor.js reads: for every panel with arrays (Q, K) float32, then (Q, K) states, then marks."""
    drawn = [panel for panel in panels if panel.states is not None]
    rows, columns = drawn[0].states.shape if drawn and drawn[0].states is not None else (0, 0)
    header = {
        "rows": rows,
        "columns": columns,
        "marked": [list(marked[0]), list(marked[1])],
        "colours": vars(colours),
        "tokens": [list(side) for side in tokens],
        "words": list(words),
        "legend": [vars(sign) for sign in legend],
        "panels": [
            {
                "name": panel.name,
                "title": panel.title,
                "note": panel.note,
                "drawn": panel.states is not None,
                "editable": panel.editable,
                "rowSums": [_format_mask_sum(one) for one in panel.row_sums],
                "columnSums": [_format_mask_sum(one) for one in panel.column_sums],
            }
            for panel in panels
        ],
    }
    body = b"".join(_panel_bytes(panel) for panel in drawn)
    return pack_arrays(header, body)


def _format_mask_sum(value: float) -> str:
    """A sum as it is read: without decimals where three of them show none."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    whole = round(value)
    return format_signed(whole, 0) if abs(value - whole) < 0.0005 else format_signed(value)


def _panel_bytes(panel: MaskPanel) -> bytes:
    states = np.asarray(panel.states, np.uint8)
    marks = np.zeros_like(states) if panel.marks is None else panel.marks.astype(np.uint8)
    values = np.full(states.shape, np.nan) if panel.values is None else panel.values
    with np.errstate(over="ignore"):
        return values.astype("<f4").tobytes() + states.tobytes() + marks.tobytes()
