"""A map of weights drawn in the browser: crosshair, numbers, pins; a tile of the overview changes it at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...figures.heatmap import room_for_numbers
from ...figures.labels import LONGEST, label_text, readable
from ..bundle import component, told
from ..packing import fine, pack

if TYPE_CHECKING:
    from ...figures.heatmap import Grid
    from ...figures.palette import Look

Pins = tuple[int | None, int | None]
"""The pinned row and column, from 0."""
Places = tuple[Sequence[int], Sequence[int]]
"""Some of the rows and of the columns, from 0."""
COLOURS = ("background", "ink", "soft", "line", "accent", "masked", "hatch")

_mount = component("heatmap")


def heatmap(
    grid: Grid,
    look: Look,
    alt: str,
    *,
    model: str,
    pinned: Pins = (None, None),
    numbers: bool = False,
    follows: str = "",
    special: Places = ((), ()),
    key: str,
    on_cell: Callable[[int, int], None] | None = None,
) -> None:
    """Draw `grid`, described to screen readers by `alt`; `on_cell(row, column)` hears of a chosen cell.

    `follows` is what a title says before layer and head: given, a click on a tile of the overview shows that head at
    once, from the overview's bytes, before Python has answered with the weights themselves. So are they with another
    scale, and, given the rows and columns that are `special` tokens, without these.
    """

    def chosen() -> None:
        cell = told(key).cell
        if on_cell:
            on_cell(int(cell["row"]), int(cell["column"]))

    given: dict[str, Any] = {"model": model, "pinned": pinned, "numbers": numbers, "follows": follows}
    data = packed(grid, look, alt, **given, special=special, pins=on_cell is not None)
    _mount(key=key, data=data, on_cell_change=chosen)


def packed(
    grid: Grid,
    look: Look,
    alt: str,
    *,
    model: str,
    pinned: Pins = (None, None),
    numbers: bool = False,
    follows: str = "",
    special: Places = ((), ()),
    pins: bool = False,
) -> bytes:
    """What heatmap.js reads: names, colours and pins, then (R, C) little-endian uint16, as `fine` makes them."""
    palette = look.palette
    header = {
        "title": grid.title,
        "model": model,
        "follows": follows,
        "special": special,
        "alt": alt,
        "rows": [readable(token) for token in grid.rows],
        "columns": [readable(token) for token in grid.columns],
        "rowLabels": [label_text(token, LONGEST) for token in grid.rows],
        "columnLabels": [label_text(token, LONGEST) for token in grid.columns],
        "breaks": grid.breaks,
        "top": grid.top,
        "scale": look.scale,
        "stops": look.stops,
        "colours": {name: getattr(palette, name) for name in COLOURS},
        "pinned": pinned,
        "pins": pins,
        "numbers": numbers and room_for_numbers(grid.weights),
    }
    return pack(header, fine(grid.weights, grid.mask, grid.top).astype("<u2").tobytes())
