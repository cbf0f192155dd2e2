"""One input changed: how far each output moves under the model's own mask and under another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ..frame import axis, layout
from ..labels import labels
from ..palette import Palette
from ..speech import say
from .colours import mask_colours

HEIGHT = 250


def poked_bars(
    outputs: Sequence[str], own: np.ndarray, tried: np.ndarray, may: np.ndarray, title: str, palette: Palette
) -> go.Figure:
    """`own` and `tried` (T,) changes from 0 to 1 of the T outputs; `may` (T,) bool, True = may move.

    An output that moves and should not is drawn in the colour of a leak, with a cross above it.
    """
    colours = mask_colours(palette)
    leaks = ~may & (tried > 0)
    places = np.arange(len(outputs))
    bars = [
        _bars(places - 0.2, own, [palette.soft] * len(outputs), say("own mask")),
        _bars(places + 0.2, tried, [colours.leak if one else palette.accent for one in leaks], say("this mask")),
    ]
    cross = {"symbol": "x-thin-open", "size": 8, "color": colours.leak, "line": {"width": 2, "color": colours.leak}}
    signs = {"type": "scatter", "mode": "markers", "marker": cross, "hoverinfo": "skip", "name": "leaks"}
    signs |= {"x": (places + 0.2)[leaks], "y": tried[leaks] + 0.06}
    named = {"tickvals": places, "ticktext": labels(outputs), "tickangle": -45, "range": [-0.6, len(outputs) - 0.4]}
    frame = layout(
        palette,
        title,
        HEIGHT,
        bargap=0.2,
        margin={"l": 52, "r": 8, "t": 40, "b": 84, "autoexpand": False},
        xaxis=axis(palette, "", tickmode="array", showgrid=False, **named),
        yaxis=axis(palette, say("moved by"), range=[0, 1.12], tickvals=[0, 0.5, 1]),
    )
    return go.Figure({"data": [*bars, signs], "layout": frame})


def _bars(places: np.ndarray, heights: np.ndarray, colours: list[str], name: str) -> dict:
    hover = f"{name}: %{{y:.3g}}<extra></extra>"
    return {"type": "bar", "x": places, "y": heights, "width": 0.36, "name": name, "hovertemplate": hover} | {
        "marker": {"color": colours, "line": {"width": 0}}
    }
