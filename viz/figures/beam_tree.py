"""A beam search as a tree: a column a step, the best candidate on top, lines from each to what continues it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from .labels import escaped, label, readable
from .palette import LIGHT, Palette

if TYPE_CHECKING:
    from model.decoding.beam_tree import BeamNode, BeamTree

ROW = 44
"""Pixels from one candidate to the next below it."""
FATES = {"alive": "searched on from", "finished": "finished", "pruned": "pruned: given up here"}
SYMBOLS = {"alive": "circle", "finished": "square", "pruned": "x-thin"}
SILENT = {"hoverinfo": "skip", "showlegend": False}
LABELLED = 40
"""Above so many steps there is no room for tokens, and they are read by hovering."""


def beam_tree(tree: BeamTree, palette: Palette = LIGHT, chosen: tuple[int, ...] = ()) -> go.Figure:
    """Draw every candidate; `chosen` is the way (token ids) to the node the player shows."""
    nodes = tree.nodes
    best = [node for node in nodes if tree.on_best_way(node)]
    steps = 1 + max((node.position for node in nodes), default=0)
    traces = [
        _edges(nodes, nodes, palette.line, 1.5),
        _edges(best, nodes, palette.accent, 3),
        *(_points(fate, [node for node in nodes if node.fate == fate], tree, palette, steps) for fate in FATES),
        _ring([node for node in nodes if node.token_ids == chosen], palette),
    ]
    return go.Figure({"data": traces, "layout": _layout(nodes, steps, palette)})


def node_in_words(node: BeamNode) -> str:
    """What a screen reader says of a node; steps and places count from 1."""
    where = f"Step {node.position + 1}, place {node.place + 1}: {readable(node.token)}"
    return f"{where}, log-probability so far {node.score:.2f}, {FATES[node.fate]}"


def _edges(children: Iterable[BeamNode], nodes: tuple[BeamNode, ...], colour: str, width: float) -> dict:
    xs: list[float | None] = []
    ys: list[float | None] = []
    for node in children:
        if node.parent is not None:
            parent = nodes[node.parent]
            xs += [parent.position, node.position, None]
            ys += [parent.place, node.place, None]
    line = {"color": colour, "width": width}
    return {
        "type": "scatter",
        "x": xs,
        "y": ys,
        "mode": "lines",
        "line": line,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _points(fate: str, nodes: list[BeamNode], tree: BeamTree, palette: Palette, steps: int) -> dict:
    colours = [palette.accent if tree.on_best_way(node) else palette.soft for node in nodes]
    pruned = fate == "pruned"
    named = not pruned and steps <= LABELLED
    return {
        "type": "scatter",
        "name": FATES[fate],
        "x": [node.position for node in nodes],
        "y": [node.place for node in nodes],
        "mode": "markers+text" if named else "markers",
        "text": [label(node.token) for node in nodes],
        "textposition": "top center",
        "textfont": {"size": 13 if steps <= 20 else 10, "color": palette.ink},
        "marker": {
            "symbol": SYMBOLS[fate],
            "size": 7 if pruned else 10,
            "color": colours,
            "line": {"color": palette.soft if pruned else palette.background, "width": 1.5 if pruned else 1},
        },
        "customdata": [
            [escaped(readable(node.token)), node.score, math.exp(node.score), FATES[fate]] for node in nodes
        ],
        "hovertemplate": "<b>%{customdata[0]}</b><br>log-probability so far %{customdata[1]:.2f}<br>%{customdata[3]}"
        "<extra></extra>",
    }


def _ring(nodes: list[BeamNode], palette: Palette) -> dict:
    marker = {"symbol": "circle-open", "size": 18, "color": palette.accent, "line": {"width": 2}}
    x, y = [node.position for node in nodes], [node.place for node in nodes]
    return {"type": "scatter", "x": x, "y": y, "mode": "markers", "marker": marker} | SILENT


def _layout(nodes: tuple[BeamNode, ...], steps: int, palette: Palette) -> dict:
    rows = 1 + max((node.place for node in nodes), default=0)
    bare = {"showgrid": False, "zeroline": False, "fixedrange": True}
    return {
        "height": 70 + ROW * rows,
        "margin": {"l": 8, "r": 8, "t": 34, "b": 26},
        "paper_bgcolor": palette.background,
        "plot_bgcolor": palette.background,
        "font": {"color": palette.ink},
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"color": palette.soft}},
        "xaxis": bare
        | {"range": [-0.6, max(steps, 8) - 0.4], "tickvals": list(range(steps)), "ticks": ""}
        | {"ticktext": [str(step + 1) for step in range(steps)], "tickfont": {"color": palette.soft}},
        "yaxis": bare | {"range": [rows - 0.5, -0.8], "showticklabels": False},
    }
