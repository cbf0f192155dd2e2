"""What is left of a word as source pieces are taken away, by the order of each method and in random orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from ..frame import axis, layout, note
from ..labels import escaped
from ..palette import Palette
from ..speech import say

if TYPE_CHECKING:
    from model.evaluation.deletion_curves import DeletionCurves

HEIGHT = 430


def deletion(curves: DeletionCurves, chosen: str, palette: Palette) -> go.Figure:
    """A line a method over the number of pieces taken away, the chosen one thick; the band is that of random orders."""
    low, mean, high = curves.band
    steps = np.arange(len(mean))
    share = curves.against is None
    places = {"x": "%{x}", "y": "%{y:.1%}" if share else "%{y:.2f}"}
    hover = (
        say("{x} pieces away<br>{y} left", **places) if share else say("{x} pieces away<br>difference {y}", **places)
    )
    plain = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
    traces: list[dict] = [
        plain | {"x": steps, "y": low, "line": {"width": 0}},
        plain | {"x": steps, "y": high, "line": {"width": 0}, "fill": "tonexty", "fillcolor": palette.line},
        plain
        | {"x": steps, "y": mean, "name": say("random order"), "line": {"color": palette.soft, "dash": "dot"}}
        | {"hoverinfo": None, "hovertemplate": f"{say('random order, mean')}<br>{hover}<extra></extra>"},
    ]
    for name in sorted(curves.methods, key=lambda one: one == chosen):
        line = {"color": palette.accent, "width": 3} if name == chosen else {"color": palette.soft, "width": 1}
        traces.append(
            {"type": "scatter", "name": say(name), "x": steps, "y": curves.left(curves.methods[name]), "mode": "lines"}
            | {"line": line, "opacity": 1 if name == chosen else 0.6}
            | {"hovertemplate": f"{escaped(say(name))}<br>{hover}<extra></extra>"}
        )
    at = int(high.argmax())
    title = (
        say("What is left of the probability; thick: the order of {method}", method=escaped(say(chosen)))
        if share
        else say("What is left of the difference of logits; thick: the order of {method}", method=escaped(say(chosen)))
    )
    ticks = {"tickformat": ".0%"} if share else {}
    shown = layout(palette, title, HEIGHT) | {
        "xaxis": axis(
            palette, say("source pieces taken away"), range=[0, len(mean) - 1], dtick=_tick(len(mean)), showgrid=False
        ),
        "yaxis": axis(palette, "", showgrid=True, rangemode="tozero", **ticks),
        "annotations": [note(say("random orders"), at, high[at], palette, yshift=-12)],
    }
    return go.Figure({"data": traces, "layout": shown})


def _tick(count: int) -> int:
    return max(1, count // 9)
