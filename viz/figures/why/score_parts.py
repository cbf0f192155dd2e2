"""One attention score as a sum over pairs of a query part and a key part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ..diverging import ink_on_signed, signed_cells
from ..frame import surface
from ..labels import escaped, signed
from ..palette import Palette
from ..speech import say
from .room import room

ROW = 32
MARGIN = {"l": 168, "r": 92, "t": 112, "b": 8}
FAINT = 0.02
"""A cell below this share of the largest has no number written into it."""


def score_matrix(rows: Sequence[str], columns: Sequence[str], cells: np.ndarray, palette: Palette) -> go.Figure:
    """Parts of the query down, parts of the key across; cells (rows, columns) that sum to the score."""
    largest = float(np.abs(cells).max()) or 1.0
    down, across = np.indices(cells.shape)
    heat = signed_cells(cells, palette, largest) | {
        "customdata": [[signed(one, 3, plus=True) for one in row] for row in cells.tolist()],
        "hovertemplate": say("query: {query}<br>key: {key}", query="%{y}", key="%{x}")
        + "<br><b>%{customdata}</b><extra></extra>",
    }
    numbers = {
        "type": "scatter",
        "mode": "text",
        "x": across.ravel(),
        "y": down.ravel(),
        "text": [signed(one, plus=True) if abs(one) >= FAINT * largest else "" for one in cells.ravel().tolist()],
        "textfont": {"size": 11, "color": ink_on_signed(cells / largest, palette).ravel().tolist()},
        "hoverinfo": "skip",
    }
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 4}
    axis |= {"tickfont": {"size": 12, "color": palette.ink}}
    height = ROW * len(rows) + MARGIN["t"] + MARGIN["b"]
    layout = surface(palette, height, **MARGIN | {"l": room(rows, MARGIN["l"])}) | {
        "xaxis": axis
        | {"side": "top", "tickangle": -35, "range": [-0.5, len(columns) - 0.5]}
        | {"tickvals": list(range(len(columns))), "ticktext": list(map(escaped, columns))},
        "yaxis": axis
        | {"range": [len(rows) - 0.5, -0.5]}
        | {"tickvals": list(range(len(rows))), "ticktext": list(map(escaped, rows))},
        "annotations": [_corner(say("key part →"), 22, palette), _corner(say("query part ↓"), 2, palette)],
    }
    return go.Figure({"data": [heat, numbers], "layout": layout})


def _corner(text: str, up: int, palette: Palette) -> dict:
    """A word in the corner that both axes leave free."""
    place = {"xref": "paper", "x": 0, "xanchor": "right", "xshift": -8, "yref": "paper", "y": 1, "yanchor": "bottom"}
    font = {"size": 12, "color": palette.soft}
    return place | {"text": text, "yshift": up, "showarrow": False, "font": font}
