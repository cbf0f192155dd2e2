"""What each head does for a word: how far its value falls without it, all heads by attention and layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from ..diverging import signed_cells
from ..frame import heading, surface
from ..labels import KIND_NAMES, escaped, signed
from ..palette import Palette
from ..places import numbered_name
from ..speech import say
from .room import room

if TYPE_CHECKING:
    from model.trace import Kind

ROW = 28
MARGIN = {"l": 76, "r": 8, "t": 64, "b": 8}
WIDEST_NAMED = 8
"""Heads of a layer beyond which the cells have no room for a number."""
Rows = tuple[tuple["Kind", int] | None, ...]
"""The attention and the layer of each row; None where the name of an attention stands."""


def rows_of(falls: Mapping[Kind, np.ndarray]) -> Rows:
    """The rows of the picture from the top down: a name above the layers of each attention."""
    return tuple(place for kind, one in falls.items() for place in (None, *((kind, at) for at in range(len(one)))))


def head_falls(falls: Mapping[Kind, np.ndarray], title: str, palette: Palette) -> go.Figure:
    """Layers down and heads across, for each attention (L, H); indigo where the word falls without the head."""
    rows = rows_of(falls)
    most = max(one.shape[1] for one in falls.values())
    values = np.full((len(rows), most), np.nan)
    for at, place in enumerate(rows):
        if place is not None:
            own = falls[place[0]][place[1]]
            values[at, : len(own)] = own
    heads = [numbered_name(f"head {head + 1}") for head in range(most)]
    layers = ["" if place is None else numbered_name(f"layer {place[1] + 1}") for place in rows]
    heat = signed_cells(values, palette, max(float(np.nanmax(np.abs(values))), 1e-9)) | {
        "text": [[_number(one) for one in row] for row in values.tolist()],
        "customdata": [[[name, head] for head in heads] for name in layers],
        "hovertemplate": "%{customdata[0]}, %{customdata[1]}: %{text}<extra></extra>",
    }
    if most <= WIDEST_NAMED:
        heat |= {"texttemplate": "%{text}", "textfont": {"size": 11}}
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 4}
    axis |= {"tickfont": {"size": 12, "color": palette.soft}}
    numbers = [str(head + 1) for head in range(most)]
    named = [(at, kind) for at, kind in zip(_names(rows), falls, strict=True)]
    layout = surface(palette, ROW * len(rows) + MARGIN["t"] + MARGIN["b"], **MARGIN | {"l": room(layers, 76)}) | {
        "title": heading(palette, f"<b>{escaped(title)}</b>"),
        "xaxis": axis
        | {"side": "top", "tickvals": list(range(most)), "ticktext": heads if most <= WIDEST_NAMED else numbers},
        "yaxis": axis
        | {"range": [len(rows) - 0.5, -0.5]}
        | {"tickvals": list(range(len(rows))), "ticktext": list(map(escaped, layers))},
        "annotations": [_name(say(KIND_NAMES[kind]), at, palette) for at, kind in named],
    }
    return go.Figure({"data": [heat], "layout": layout})


def _names(rows: Rows) -> list[int]:
    return [at for at, place in enumerate(rows) if place is None]


def _number(value: float) -> str:
    rounded = round(value, 2) or 0.0  # no sign before nothing
    return "" if np.isnan(value) else signed(rounded, plus=bool(rounded))


def _name(text: str, row: int, palette: Palette) -> dict:
    """The name of an attention in the row above its layers."""
    place = {"xref": "paper", "x": 0, "xanchor": "left", "y": row, "yanchor": "middle"}
    return place | {"text": escaped(text), "showarrow": False, "font": {"size": 13, "color": palette.ink}}
