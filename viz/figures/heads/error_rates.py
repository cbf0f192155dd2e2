"""The alignment error rate of every head as a table of colours: the lower, the stronger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from ..frame import heading, surface
from ..labels import escaped
from ..palette import Look, Palette
from ..speech import say

ROW = 30


@dataclass(frozen=True, eq=False)
class RateTable:
    """The rates at one reading."""

    name: str
    rates: np.ndarray
    """(L + 1, H + 1): of each layer its heads and their mean; the last row has the mean of all at its end, else NaN."""


def rate_tables(tables: Sequence[RateTable], title: str, palette: Palette) -> go.Figure:
    """One table below the other; a row of the figure that is none of a table, at :func:`first_row` - 1, names it."""
    rows, columns = tables[0].rates.shape
    cells = np.full((len(tables) * (rows + 1), columns), np.nan)
    for at, table in enumerate(tables):
        first = first_row(at, rows)
        cells[first : first + rows] = table.rates
    names = [*(say("layer {layer}", layer=layer + 1) for layer in range(rows - 1)), say("all")]
    text = np.where(np.isnan(cells), "", np.char.mod("%.0f", 100 * np.nan_to_num(cells)))
    drawn = {
        "type": "heatmap",
        "z": 1 - cells,
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": Look(palette=palette, scale="linear").colorscale,
        "showscale": False,
        "hoverongaps": False,
        "xgap": 2,
        "ygap": 2,
        "text": text,
        "texttemplate": "%{text}",
        "textfont": {"size": 14},
        "hovertemplate": f"{escaped(say('%{y}, %{x}: error rate %{text}%'))}<extra></extra>",
    }
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "tickmode": "array"}
    small = {"size": 13, "color": palette.soft}
    shown = surface(palette, ROW * len(cells) + 64, l=72, r=8, t=60, b=4) | {
        "title": heading(palette, f"<b>{escaped(title)}</b>"),
        "xaxis": plain
        | {"side": "top", "range": [-0.5, columns - 0.5], "tickvals": list(range(columns)), "tickfont": small}
        | {"ticktext": [*(f"{head + 1}" for head in range(columns - 1)), say("mean")]},
        "yaxis": plain
        | {"range": [len(cells) - 0.5, -0.5], "tickfont": small}
        | {"tickvals": [first_row(at, rows) + row for at in range(len(tables)) for row in range(rows)]}
        | {"ticktext": names * len(tables)},
        "annotations": [
            {
                "text": escaped(table.name),
                "x": -0.5,
                "y": first_row(at, rows) - 1,
                "xanchor": "left",
                "showarrow": False,
            }
            | {"font": {"size": 14, "color": palette.ink}}
            for at, table in enumerate(tables)
        ],
    }
    return go.Figure({"data": [drawn], "layout": shown})


def first_row(table: int, rows: int) -> int:
    """The row of the figure at which a table of so many rows begins."""
    return table * (rows + 1) + 1
