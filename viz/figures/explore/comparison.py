"""Two heads side by side, what one has more than the other, and one row of both, in a single picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from ..diverging import colorscale, diverging, negative
from ..frame import surface
from ..heatmap import Grid, drawn_grid
from ..labels import escaped, labels, named, quoted, signed
from ..palette import Look, Palette
from ..speech import say, sentences

if TYPE_CHECKING:
    from model.analysis.difference import Difference
    from model.trace import AttentionMap

    from ..heatmap import Rows

OFFSET = 10_000
"""Rows of panel p count from p * OFFSET, so that the place of a click says which panel it was in."""
FIRST, SECOND, CHANGE, ROW = range(4)
PANEL, CELL = 284, 23.5
"""How high a panel is, and how high its cells are where there are few, in pixels."""
ABOVE, BETWEEN, BELOW = 104, 122, 52
"""Room for titles and names, and for the scale, in pixels."""
LEFT, RIGHT = (0.0, 0.42), (0.58, 1.0)
"""Where the panels of a column lie across; between them stand the names of rows."""
STAGE = ((0.0, 0.265), (0.3675, 0.6325), (0.735, 1.0))
"""The same of the three maps beside each other on a stage, where the one row has no room of its own."""
LONGEST_NAMED = 40
"""Rows or columns beyond which there is no room for their names."""
Pins = tuple[int | None, int | None]


@dataclass(frozen=True, eq=False)
class Side:
    """One of two maps that are compared."""

    attention: AttentionMap
    """Of one head: weights (1, 1, Q, K)."""
    name: str
    pinned: Pins = (None, None)
    """Row and column, from 0."""


@dataclass(frozen=True)
class Place:
    """Where a panel lies: its part of the picture across and up, from 0 to 1, and how many pixels it is high."""

    across: tuple[float, float]
    down: tuple[float, float]
    height: float

    def range(self, first: int, rows: int) -> list[float]:
        """Of an axis of `rows` counted from `first`, downwards: a short one leaves room below it."""
        return [first + max(rows, self.height / CELL) - 0.5, first - 0.5]


def comparison(
    first: Side,
    second: Side,
    difference: Difference | None,
    pinned: Pins = (None, None),
    *,
    look: Look | None = None,
    rows: Rows = "predicted",
    on_stage: bool = False,
) -> go.Figure:
    """Both maps above; below, the second minus the first on what both share, and one row of both.

    `pinned` are row and column of the difference; without a pinned row, the row of the greatest change is shown.
    Without a difference, the maps stand alone. `on_stage` the maps stand in a row, the difference last.
    """
    look = look or Look()
    if on_stage and difference is not None:
        return _in_a_row(first, second, difference, pinned, look, rows)
    high = _height(first.attention, second.attention)
    low = 0 if difference is None else _height(difference.first)
    total = high + (BETWEEN + low if low else 0)
    panels = [
        _weights(panel, side, look, rows, Place(across, (1 - high / total, 1.0), high))
        for panel, side, across in ((FIRST, first, LEFT), (SECOND, second, RIGHT))
    ]
    if difference is not None:
        row = pinned[0] if pinned[0] is not None else difference.largest[2]
        panels += [
            _change(difference, pinned, look, rows, Place(LEFT, (0.0, low / total), low)),
            _row(difference, row, look.palette, rows, Place(RIGHT, (0.0, low / total), low)),
        ]
    return _figure(panels, _layout(look.palette, total, BELOW if low else 8))


def _in_a_row(first: Side, second: Side, difference: Difference, pinned: Pins, look: Look, rows: Rows) -> go.Figure:
    """Both maps and their difference beside each other, each as high as the figure."""
    one, two, three = (Place(across, (0.0, 1.0), 0.0) for across in STAGE)
    panels = [
        _weights(FIRST, first, look, rows, one),
        _weights(SECOND, second, look, rows, two),
        _change(difference, pinned, look, rows, three),
    ]
    return _figure(panels, _layout(look.palette, PANEL, BELOW))


def _figure(panels: Sequence[dict[str, Any]], layout: dict[str, Any]) -> go.Figure:
    for panel in panels:
        layout |= panel["axes"]
        layout["shapes"] += panel["shapes"]
        layout["annotations"] += panel["annotations"]
    return go.Figure({"data": [trace for panel in panels for trace in panel["data"]], "layout": layout})


def _height(*maps: AttentionMap) -> float:
    """Of the panels of these maps, in pixels: no more than their rows need, and as the rows of a head may be keys."""
    return min(PANEL, CELL * max(3, *(max(one.mask.shape) for one in maps)))


def clicked(row: int, column: int) -> tuple[int, int, int]:
    """What a click on the picture was on: the panel, and there the row and the column."""
    return row // OFFSET, row % OFFSET, column


def comparison_in_words(difference: Difference, pinned: Pins, rows: Rows) -> str:
    """How much of a row lies elsewhere in the second map, and the greatest change or that of the pinned pair."""
    if not difference.weights.any():
        return say("No weight differs between the two.")
    _, _, row, column = difference.largest
    found = say(
        "On average {share:.0%} of a row's attention lies elsewhere in the second.", share=difference.mass_moved
    )
    if pinned[0] is not None and pinned[1] is not None:
        return sentences(found, say("Pinned: {pair}.", pair=_pair(difference, pinned[0], pinned[1], rows)))
    return sentences(found, say("The greatest change: {pair}.", pair=_pair(difference, row, column, rows)))


def _pair(difference: Difference, row: int, column: int, rows: Rows) -> str:
    first, second = difference.first, difference.second
    link = {"query": quoted(first.rows(rows)[row]), "key": quoted(first.key_tokens[column])}
    if not difference.mask[row, column]:
        return say("{query} → {key} is masked", **link)
    one, two = (float(one.weights[0, 0, row, column]) for one in (first, second))
    return say(
        "{query} → {key} {first:.2f} in the first, {second:.2f} in the second ({change})",
        first=one,
        second=two,
        change=signed(two - one, plus=True),
        **link,
    )


def _weights(panel: int, side: Side, look: Look, rows: Rows, place: Place) -> dict[str, Any]:
    attention = side.attention
    grid = Grid(attention.weights[0, 0], attention.mask, attention.rows(rows), attention.key_tokens, "")
    return _panel(panel, grid, escaped(side.name), look, side.pinned, place)


def _change(difference: Difference, pinned: Pins, look: Look, rows: Rows, place: Place) -> dict[str, Any]:
    first = difference.first
    weights = difference.weights[0, 0]
    grid = Grid(weights, difference.mask, first.rows(rows), first.key_tokens, "")
    panel = _panel(CHANGE, grid, escaped(say("Second minus first")), look, pinned, place)
    shown = np.abs(np.where(difference.mask, weights, 0))
    most = float(np.ceil(shown.max(initial=0.1) * 10) / 10)  # the same on both sides, so that zero is the middle
    for trace in panel["data"]:
        if trace.get("name") == "weights":
            trace |= {"zmin": -most, "zmax": most, "colorscale": colorscale(diverging(look.palette))}
            trace |= {"name": "difference", "hovertemplate": "%{y} → %{x}<br><b>%{z:+.3f}</b><extra></extra>"}
            trace |= {"showscale": True, "colorbar": _bar(look.palette, most, place)}
    return panel


def _panel(panel: int, grid: Grid, title: str, look: Look, pinned: Pins, place: Place) -> dict[str, Any]:
    """A heatmap of its own, moved to its place: its axes named by the panel, its rows counted from its offset."""
    figure = drawn_grid(grid, look, pinned=pinned[0], pinned_key=pinned[1])
    first, number = panel * OFFSET, "" if panel == 0 else str(panel + 1)
    own = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    for trace in figure["data"]:
        trace |= own
        if trace["type"] == "heatmap":
            trace |= {"y0": first, "dy": 1, "showscale": False}
        else:
            trace["y"] = trace["y"] + first
    layout = figure["layout"]
    across, down = layout["xaxis"], layout["yaxis"]
    across |= {"domain": place.across, "anchor": own["yaxis"]} | _named(grid.columns, look.palette, pinned[1])
    down |= {"domain": place.down, "anchor": own["xaxis"]} | _named(grid.rows, look.palette, pinned[0], first)
    down |= {"range": place.range(first, len(grid.rows))}
    shapes = [
        shape | {"xref": own["xaxis"], "yref": own["yaxis"], "y0": shape["y0"] + first, "y1": shape["y1"] + first}
        for shape in layout.get("shapes", ())
    ]
    axes = {f"xaxis{number}": across, f"yaxis{number}": down}
    return {"data": figure["data"], "axes": axes, "shapes": shapes, "annotations": [_title(title, place, look.palette)]}


def _row(difference: Difference, row: int, palette: Palette, rows: Rows, place: Place) -> dict[str, Any]:
    """One row of both maps: for each key a line from its weight in the first to its weight in the second."""
    names = difference.first.key_tokens
    one, two = (side.weights[0, 0, row] for side in (difference.first, difference.second))
    at = ROW * OFFSET + np.arange(len(names))
    gap = np.full(len(names), np.nan)
    size = 9 if len(names) <= LONGEST_NAMED else 5
    lines = {
        "type": "scatter",
        "x": np.column_stack([one, two, gap]).ravel(),
        "y": np.repeat(at, 3),
        "mode": "lines",
        "line": {"color": palette.line, "width": 3},
        "hoverinfo": "skip",
    }
    dots = [
        {
            "type": "scatter",
            "name": name,
            "x": weights,
            "y": at,
            "mode": "markers",
            "marker": {
                "size": size,
                "color": colour,
                "symbol": symbol,
                "line": {"width": 1.5, "color": line},
            },
            "hovertemplate": f"%{{y}}<br>{read}<extra></extra>",
        }
        for name, read, weights, colour, symbol, line in (
            ("first", say("first <b>%{x:.3f}</b>"), one, palette.background, "circle", negative(palette)),
            ("second", say("second <b>%{x:.3f}</b>"), two, palette.full, "circle", palette.full),
        )
    ]
    own = {"xaxis": "x4", "yaxis": "y4"}
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": ""}
    across = plain | {"domain": place.across, "anchor": "y4", "side": "top", "range": [-0.04, 1.04], "showgrid": True}
    across |= {"tickvals": [0, 0.5, 1], "gridcolor": palette.line, "tickfont": {"size": 12, "color": palette.soft}}
    down = plain | {"domain": place.down, "anchor": "x4", "ticklabelstandoff": 4}
    down |= {"range": place.range(ROW * OFFSET, len(names))} | _named(names, palette, first=ROW * OFFSET)
    token = labels([difference.first.rows(rows)[row]])[0]
    first, second = (
        f'<span style="color:{colour}">{text}</span>'
        for colour, text in ((negative(palette), say("○ first")), (palette.full, say("● second")))
    )
    title = say("Row “{token}”: {first}  {second}", token=token, first=first, second=second)
    return {
        "data": [trace | own for trace in (lines, *dots)],
        "axes": {"xaxis4": across, "yaxis4": down},
        "shapes": [],
        "annotations": [_title(title, place, palette)],
    }


def _named(names: tuple[str, ...], palette: Palette, pinned: int | None = None, first: int = 0) -> dict[str, Any]:
    """The ticks of an axis whose first token stands at `first`."""
    ticks = named(names, pinned, LONGEST_NAMED)
    font = {"size": float(np.clip(300 / max(len(ticks["tickvals"]), 1), 8, 13)), "color": palette.ink}
    return {"tickvals": [first + at for at in ticks["tickvals"]], "ticktext": ticks["ticktext"], "tickfont": font}


def _title(text: str, place: Any, palette: Palette) -> dict[str, Any]:
    return {
        "text": f"<b>{text}</b>",
        "xref": "paper",
        "yref": "paper",
        "x": place.across[0],
        "y": place.down[1],
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 76,
        "showarrow": False,
        "font": {"size": 14, "color": palette.ink},
    }


def _bar(palette: Palette, most: float, place: Place) -> dict[str, Any]:
    return {
        "orientation": "h",
        "thickness": 8,
        "outlinewidth": 0,
        "len": place.across[1] - place.across[0],
        "x": place.across[0],
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "ypad": 12,
        "tickvals": [-most, 0, most],
        "ticktext": [
            say("{weight} first more", weight=signed(-most, 1)),
            "0",
            say("second more {weight}", weight=signed(most, 1, plus=True)),
        ],
        "tickfont": {"size": 12, "color": palette.soft},
    }


def _layout(palette: Palette, panels: float, below: int) -> dict[str, Any]:
    return surface(palette, panels + ABOVE + below, l=96, r=16, t=ABOVE, b=below) | {"shapes": [], "annotations": []}
