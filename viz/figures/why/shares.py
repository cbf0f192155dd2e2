"""Where each piece of a translation comes from: a stacked bar a piece, attention to </s> beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from ..diverging import negative
from ..frame import axis, layout
from ..labels import label, labels, named, signed
from ..palette import Palette
from ..speech import say

if TYPE_CHECKING:
    from model.attribution.source_shares import SourceShares

HEIGHT, EFFECT_HEIGHT = 330, 210
EDGES = {"l": 64, "r": 16, "t": 44, "b": 64}


def shares(found: SourceShares, chosen: int, palette: Palette) -> go.Figure:
    """The share of the source (indigo) and of the prefix (grey) a piece, from 0; a mark for attention to its end."""
    place, names = np.arange(len(found.tokens)), labels(found.tokens)
    hover = {"piece": "%{customdata}", "share": "%{y:.0%}", "token": label(found.end)}
    end = say("attention to {token}", token=label(found.end))
    bar = {"type": "bar", "x": place, "width": 0.72, "customdata": names}
    traces = [
        bar
        | {"name": say("from the source"), "y": found.source, "marker": {"color": palette.accent}}
        | {"hovertemplate": say("{piece}: {share} from the source", **hover) + "<extra></extra>"},
        bar
        | {"name": say("from what was written before"), "y": found.prefix, "marker": {"color": palette.masked}}
        | {"hovertemplate": say("{piece}: {share} from the prefix", **hover) + "<extra></extra>"},
        {"type": "scatter", "mode": "markers", "name": end, "x": place, "y": found.end_attention}
        | {
            "marker": {
                "symbol": "diamond",
                "size": 11,
                "color": negative(palette),
                "line": {"width": 2, "color": palette.background},
            }
        }
        | {"customdata": names}
        | {"hovertemplate": say("{piece}: {share} of attention on {token}", **hover) + "<extra></extra>"},
    ]
    figure = layout(palette, say("Source or prefix"), HEIGHT) | {
        "margin": {**EDGES, "t": 60, "autoexpand": False},
        "barmode": "stack",
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "itemclick": False}
        | {"itemdoubleclick": False, "font": {"size": 12, "color": palette.ink}},
        "xaxis": _pieces(found, chosen, palette),
        "yaxis": axis(palette, range=[0, 1], tickformat=".0%", dtick=0.5, showgrid=False, showline=False),
    }
    return go.Figure({"data": traces, "layout": figure})


def effects(found: SourceShares, chosen: int, threshold: float | None, palette: Palette) -> go.Figure:
    """How much more probable each piece is with the source than without, in nats; dashed is the alarm's threshold."""
    place = np.arange(len(found.tokens))
    bars = {
        "type": "bar",
        "x": place,
        "y": found.effect,
        "width": 0.72,
        "marker": {"color": [palette.accent if one >= 0 else negative(palette) for one in found.effect]},
        "customdata": [[label(token), signed(float(one), plus=True)] for token, one in _pairs(found)],
        "hovertemplate": say(
            "{piece}: {effect} nats with the source", piece="%{customdata[0]}", effect="%{customdata[1]}"
        )
        + "<extra></extra>",
    }
    line = {"color": palette.soft, "width": 1, "dash": "dash"}
    lines = [] if threshold is None else [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "line": line}]
    figure = layout(palette, say("log p with the source less log p without, nats"), EFFECT_HEIGHT) | {
        "margin": {**EDGES, "autoexpand": False},
        "xaxis": _pieces(found, chosen, palette),
        "yaxis": axis(palette, showgrid=False, showline=False, zeroline=True, zerolinecolor=palette.soft, nticks=4),
        "shapes": [one | {"y0": threshold, "y1": threshold} for one in lines],
    }
    return go.Figure({"data": [bars], "layout": figure})


def _pairs(found: SourceShares) -> list[tuple[str, float]]:
    return list(zip(found.tokens, found.effect.tolist(), strict=True))


def _pieces(found: SourceShares, chosen: int, palette: Palette) -> dict:
    """The axis of the pieces, the chosen one bold."""
    return axis(palette, showgrid=False, showline=False, tickangle=-45, range=[-0.6, len(found.tokens) - 0.4]) | named(
        found.tokens, chosen
    )
