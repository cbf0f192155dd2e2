"""Figures of the page Heads that are lists: one head among the others, and the heads that do what is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from ..frame import axis, layout
from ..labels import escaped
from ..palette import Palette
from ..speech import number, say

ROW = 24
NAMES = (214, 290)
"""Pixels for the names of measures, at least and at most."""
LETTER = 7
"""Pixels of a letter of a name, more or less."""


@dataclass(frozen=True)
class Strip:
    """A measure of one head among the heads of its map."""

    name: str
    own: float
    others: tuple[float, ...]


@dataclass(frozen=True)
class Lift:
    """How often a head does what is asked for."""

    name: str
    hits: int
    links: int
    lift: float


def strips(found: Sequence[Strip], title: str, palette: Palette) -> go.Figure:
    """A row a measure: the other heads in grey, the head in the accent, each from the least to the most of the map."""
    grey: tuple[list[float], list[int], list[str]] = ([], [], [])
    own: tuple[list[float], list[int], list[str]] = ([], [], [])
    for row, strip in enumerate(found):
        low, high = min(strip.others), max(strip.others)
        for values, into in ((strip.others, grey), ((strip.own,), own)):
            for value in values:
                into[0].append((value - low) / ((high - low) or 1.0))
                into[1].append(row)
                into[2].append(f"{escaped(strip.name)} {number(value, '.3f')}")
    dots = {"type": "scatter", "mode": "markers", "hovertemplate": "%{text}<extra></extra>", "cliponaxis": False}
    traces = [
        dots | dict(zip(("x", "y", "text"), grey, strict=True)) | {"marker": {"color": palette.line, "size": 9}},
        dots | dict(zip(("x", "y", "text"), own, strict=True)) | {"marker": {"color": palette.accent, "size": 13}},
    ]
    longest = max((len(strip.name) for strip in found), default=0)
    shown = layout(palette, title, ROW * len(found) + 76) | {
        "margin": {"l": min(max(NAMES[0], LETTER * longest), NAMES[1]), "r": 72, "t": 40, "b": 30, "autoexpand": False},
        "xaxis": axis(
            palette, showgrid=False, tickvals=[0, 1], ticktext=[say("least"), say("most")], range=[-0.03, 1.03]
        ),
        "yaxis": axis(
            palette,
            range=[len(found) - 0.5, -0.5],
            tickvals=list(range(len(found))),
            ticktext=[escaped(strip.name) for strip in found],
            showgrid=False,
        ),
        "annotations": [
            {"text": number(strip.own, ".3f"), "x": 1.0, "xref": "paper", "xshift": 8, "y": row, "showarrow": False}
            | {"xanchor": "left", "font": {"size": 13, "color": palette.soft}}
            for row, strip in enumerate(found)
        ],
    }
    return go.Figure({"data": traces, "layout": shown})


def lifts(found: Sequence[Lift], title: str, palette: Palette) -> go.Figure:
    """A bar a head: how many times as often as all heads of its map together; the line at 1 is chance."""
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [one.lift for one in found],
        "y": list(range(len(found))),
        "marker": {"color": [palette.accent if one.lift > 1 else palette.line for one in found]},
        "text": [say("{counts}, lift {lift:.2f}", counts=_counts(one), lift=one.lift) for one in found],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }
    chance = {"color": palette.soft, "dash": "dot"}
    shown = layout(palette, title, ROW * max(len(found), 1) + 88) | {
        "margin": {"l": 112, "r": 110, "t": 40, "b": 44, "autoexpand": False},
        "bargap": 0.35,
        "xaxis": axis(palette, say("times as often as all heads of the map"), rangemode="tozero", showgrid=False),
        "yaxis": axis(
            palette,
            range=[len(found) - 0.5, -0.5],
            tickvals=list(range(len(found))),
            ticktext=[escaped(one.name) for one in found],
            showgrid=False,
        ),
        "shapes": [{"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": chance}],
        "annotations": [
            {"text": _counts(one), "x": 1.0, "xref": "paper", "xshift": 6, "y": row}
            | {"xanchor": "left", "showarrow": False, "font": {"size": 12, "color": palette.soft}}
            for row, one in enumerate(found)
        ],
    }
    return go.Figure({"data": [bars], "layout": shown})


def _counts(one: Lift) -> str:
    return say("{hits:,} of {links:,}", hits=one.hits, links=one.links)
