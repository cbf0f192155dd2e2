"""Scores of several methods for the same pieces, each row on its own scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from ..diverging import signed_cells
from ..frame import surface
from ..labels import escaped, label, signed
from ..palette import Palette
from ..speech import say
from .room import room

ROW = 30
MARGIN = {"l": 158, "r": 104, "t": 78, "b": 8}
GAP = 1
"""Columns left free between the source and the prefix."""


def methods(
    scores: Mapping[str, np.ndarray],
    source: Sequence[str],
    prefix: Sequence[str],
    correlations: Mapping[str, float],
    chosen: str,
    palette: Palette,
) -> go.Figure:
    """Methods down, pieces of the source (S) and of the prefix (P) across; `scores` are (S + P,) or (S,) each.

    A row is coloured by its own largest score. The last column is each method's rank correlation with the first.
    """
    width = len(source) + GAP + len(prefix)
    values = np.full((len(scores), width), np.nan)
    for row, found in zip(values, scores.values(), strict=True):
        row[: len(source)] = found[: len(source)]
        row[width - len(prefix) :][: len(found) - len(source)] = found[len(source) :]
    largest = np.nanmax(np.abs(values), axis=1, keepdims=True, initial=1e-12)
    names = [*source, *[" "] * GAP, *prefix]
    cells = signed_cells(values / largest, palette) | {
        "customdata": [
            [f"{label(name)}: {'' if math.isnan(one) else signed(float(one), 3, plus=True)}" for name, one in pairs]
            for pairs in (list(zip(names, row, strict=True)) for row in values)
        ],
        "hovertemplate": "%{y}<br>%{customdata}<extra></extra>",
    }
    places = [*range(len(source)), *range(len(source) + GAP, width)]
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 4}
    rows = [f"<b>{escaped(say(one))}</b>" if one == chosen else escaped(say(one)) for one in scores]
    margin = MARGIN | {"l": room(map(say, scores), MARGIN["l"])}
    figure = surface(palette, ROW * len(scores) + MARGIN["t"] + MARGIN["b"], **margin) | {
        "xaxis": axis
        | {"side": "top", "tickangle": -45, "tickfont": {"size": 12, "color": palette.ink}}
        | {"tickvals": places, "ticktext": [label(names[at]) for at in places], "range": [-0.5, width - 0.5]},
        "yaxis": axis
        | {"tickvals": list(range(len(rows))), "ticktext": rows, "tickfont": {"size": 13, "color": palette.ink}}
        | {"range": [len(rows) - 0.5, -0.5]},
        "annotations": _correlations(list(correlations.values()), palette),
    }
    return go.Figure({"data": [cells], "layout": figure})


def _correlations(numbers: Sequence[float], palette: Palette) -> list[dict]:
    """The column at the right: one number a row, under its heading."""
    look = {"xref": "paper", "x": 1, "xanchor": "right", "xshift": 88, "showarrow": False, "align": "right"}
    texts = [say("reference"), *("—" if math.isnan(one) else signed(one) for one in numbers[1:])]
    heading = look | {"text": say("rank<br>correlation"), "yref": "paper", "y": 1, "yanchor": "bottom", "yshift": 4}
    heading |= {"font": {"size": 12, "color": palette.soft}}
    rows = [look | {"text": one, "y": at, "font": {"size": 13, "color": palette.ink}} for at, one in enumerate(texts)]
    return [heading, *rows]
