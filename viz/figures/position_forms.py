"""The forms of the sinusoidal table beside each other, by their error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from .frame import axis, bare, layout
from .palette import Palette

if TYPE_CHECKING:
    from model.position_forms import FormError

LEAST = 1e-9


def errors(titles: Sequence[str], found: Sequence[FormError], chosen: str, palette: Palette) -> go.Figure:
    """The largest error of every form as a dot on a logarithmic axis; `chosen` is a form's name."""
    place = np.arange(len(found))
    marked = [one.name == chosen for one in found]
    names = [f"<b>{title}</b>" if one else title for title, one in zip(titles, marked, strict=True)]
    colours = [palette.accent if one else palette.soft for one in marked]
    dots = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [max(one.largest, LEAST) for one in found],
        "y": place,
        "text": [f"  {one.largest:.1e}" for one in found],
        "textposition": "middle right",
        "textfont": {"size": 14, "color": colours},
        "marker": {"size": 13, "color": colours},
        "hovertemplate": "largest error %{x:.2e}<extra></extra>",
    }
    stems = [
        {"type": "line", "x0": LEAST, "x1": max(one.largest, LEAST), "y0": y, "y1": y, "layer": "below"}
        | {"line": {"color": palette.line, "width": 3}}
        for y, one in enumerate(found)
    ]
    return go.Figure(
        {
            "data": [dots],
            "layout": layout(
                palette,
                "Largest error against float64",
                400,
                shapes=stems,
                xaxis=axis(palette, type="log", range=[-9, 1.6], dtick=2, exponentformat="power", showgrid=False),
                yaxis=bare(tickvals=place, ticktext=names, range=[len(found) - 0.4, -0.6])
                | {"visible": True, "tickfont": {"size": 14}, "showgrid": False, "zeroline": False},
                margin={"l": 176, "r": 8, "t": 44, "b": 36, "autoexpand": False},
            ),
        }
    )
