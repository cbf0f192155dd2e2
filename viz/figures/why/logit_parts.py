"""A logit as a sum of signed parts: by layer in the order in which they are added, and the largest by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from ..diverging import negative
from ..frame import axis, layout
from ..labels import escaped, signed
from ..palette import Palette
from ..speech import say
from .room import room

if TYPE_CHECKING:
    from model.attribution.logit_parts import LogitPart

ROW = 25
EDGES = {"l": 214, "r": 56, "t": 40, "b": 12}


def by_layer(parts: Sequence[LogitPart], palette: Palette) -> go.Figure:
    """The sum of each sublayer, from the embedding up, with the heads of a layer added."""
    names, scores = zip(*sublayer_sums(parts).items(), strict=True)
    return bars(names, scores, say("By layer"), palette)


def largest(parts: Sequence[LogitPart], rest: float, palette: Palette) -> go.Figure:
    """The largest parts one by one, and the sum of all others."""
    names = [*(one.part.label for one in parts), say("all others")]
    return bars(names, [*(one.score for one in parts), rest], say("The largest parts"), palette)


def sublayer_sums(parts: Sequence[LogitPart]) -> dict[str, float]:
    """The sum of each sublayer's parts by its name, in the order in which they are added; biases last."""
    sums: dict[str, float] = {}
    for one in sorted(parts, key=lambda one: one.part.kind == "bias"):
        name = one.part.sublayer.label
        sums[name] = sums.get(name, 0.0) + one.score
    return sums


def bars(names: Sequence[str], scores: Sequence[float], title: str, palette: Palette) -> go.Figure:
    """Signed numbers by name, from the top down."""
    numbers = [signed(one, plus=True) for one in scores]
    drawn = {
        "type": "bar",
        "orientation": "h",
        "x": list(scores),
        "y": list(range(len(scores))),
        "marker": {"color": [palette.accent if one >= 0 else negative(palette) for one in scores]},
        "text": numbers,
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }
    low, high = min(0.0, *scores), max(0.0, *scores)
    shown = layout(palette, title, ROW * len(scores) + EDGES["t"] + EDGES["b"]) | {
        "margin": {**EDGES, "l": room(names, EDGES["l"]), "autoexpand": False},
        "bargap": 0.35,
        "xaxis": axis(
            palette, showticklabels=False, showgrid=False, showline=False, zeroline=True, zerolinecolor=palette.soft
        )
        | {"range": [low, high or 1.0]},
        "annotations": [_number(text, row, palette) for row, text in enumerate(numbers)],
        "yaxis": axis(palette, showgrid=False, showline=False, ticklabelstandoff=6, range=[len(scores) - 0.4, -0.6])
        | {"tickvals": list(range(len(scores))), "ticktext": [escaped(one) for one in names]},
    }
    return go.Figure({"data": [drawn], "layout": shown})


def _number(text: str, row: int, palette: Palette) -> dict:
    """A number in the margin at the right, where no bar and no name is."""
    place = {"xref": "paper", "x": 1, "xanchor": "right", "xshift": EDGES["r"] - 4, "y": row}
    return place | {"text": text, "showarrow": False, "font": {"size": 12, "color": palette.soft}}
