"""Scores, masked scores, weights, weights after dropout: one attention call from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from ..diverging import colorscale, diverging
from ..frame import axis, layout, note
from ..heatmap import hatch
from ..palette import Look, Palette
from ..speech import say

NUMBERED = 8
"""Longest side of a picture whose cells have room for their numbers."""
HEIGHT, GAP = 310, 0.035


@dataclass(frozen=True, eq=False)
class Stage:
    """One step: its values (Q, K), and whether they are weights (0 to 1) or scores of both signs."""

    title: str
    values: np.ndarray
    weights: bool
    blocked: np.ndarray | None = None
    """(Q, K) bool: cells that a mask blocks; of scores only."""


def mask_pipeline(stages: Sequence[Stage], title: str, look: Look) -> go.Figure:
    """The steps side by side. Blocked cells (-inf, or a large negative fill) are grey, hatched or with the fill."""
    palette = look.palette
    figure: dict = {"data": [], "layout": layout(palette, title, HEIGHT, margin={"l": 34, "r": 8, "t": 62, "b": 8})}
    figure["layout"]["annotations"] = []
    limit = _limit(stages)
    width = (1 - GAP * (len(stages) - 1)) / len(stages)
    for at, stage in enumerate(stages):
        _add(figure, stage, at, (at * (width + GAP), at * (width + GAP) + width), look, limit)
    return go.Figure(figure)


def _limit(stages: Sequence[Stage]) -> float:
    """The largest score in size, of those that are no fill."""
    scores = [stage.values[~_blocked(stage)] for stage in stages if not stage.weights]
    plain = np.concatenate([np.abs(part[np.isfinite(part)].astype(np.float64)) for part in scores] or [np.zeros(1)])
    return float(plain.max()) if plain.size and plain.max() > 0 else 1.0


def _blocked(stage: Stage) -> np.ndarray:
    return np.zeros(stage.values.shape, bool) if stage.blocked is None else stage.blocked


def _add(figure: dict, stage: Stage, at: int, domain: tuple[float, float], look: Look, limit: float) -> None:
    palette, number = look.palette, "" if at == 0 else str(at + 1)
    values = stage.values.astype(np.float64)
    rows, columns = values.shape
    off = _blocked(stage)
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    figure["layout"][f"xaxis{number}"] = _side(palette, columns) | {"domain": list(domain), "side": "top"}
    figure["layout"][f"yaxis{number}"] = _side(palette, rows) | {
        "anchor": f"x{number}",
        "range": [rows - 0.5, -0.5],
        "showticklabels": at == 0,
    }
    figure["data"] += [_cells(values, off, stage, look, limit) | axes, *(_marks(off, values, palette, axes))]
    heading = note(
        f"<b>{stage.title}</b>", domain[0], 1, palette, xref="paper", yref="paper", yshift=34, xanchor="left"
    )
    figure["layout"]["annotations"].append(heading | {"font": {"size": 14, "color": palette.ink}})


def _side(palette: Palette, cells: int) -> dict:
    step = max(1, cells // 8)
    places = list(range(0, cells, step))
    names = [str(place + 1) for place in places]
    return axis(palette, showgrid=False, ticks="", tickvals=places, ticktext=names, range=[-0.5, cells - 0.5])


def _cells(values: np.ndarray, off: np.ndarray, stage: Stage, look: Look, limit: float) -> dict:
    scale = look.colorscale if stage.weights else colorscale(diverging(look.palette))
    shown = np.where(off, np.nan, values)
    cell = say("query {query} → key {key}", query="%{y}", key="%{x}")
    return {
        "type": "heatmap",
        "name": stage.title,
        "z": shown.astype(np.float32),
        "zmin": 0 if stage.weights else -limit,
        "zmax": 1 if stage.weights else limit,
        "colorscale": scale,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "hovertemplate": cell + "<br><b>%{z:.4f}</b><extra></extra>",
        **({"texttemplate": "%{z:.2f}", "textfont": {"size": 11}} if max(values.shape) <= NUMBERED else {}),
    }


def _marks(off: np.ndarray, values: np.ndarray, palette: Palette, axes: dict) -> list[dict]:
    """Grey under blocked cells, with the fill in figures where there is room, else hatched; NaN spelled out."""
    found: list[dict] = []
    if off.any():
        fill = {"type": "heatmap", "z": off.astype(np.uint8), "zmin": 0, "zmax": 1, "showscale": False}
        shades = {"colorscale": [(0, "rgba(0,0,0,0)"), (1, palette.masked)], "hoverinfo": "skip", "xgap": 1, "ygap": 1}
        found.append(fill | shades | axes)
        if max(off.shape) > NUMBERED:
            x, y = hatch(~off)
            line = {"mode": "lines", "line": {"color": palette.hatch, "width": 1}, "hoverinfo": "skip"}
            found.append({"type": "scatter", "x": x, "y": y} | line | axes)
        else:
            rows, columns = np.nonzero(off)
            texts = [_short(values[row, column]) for row, column in zip(rows, columns, strict=True)]
            words = {"mode": "text", "text": texts, "textfont": {"size": 11, "color": palette.soft}}
            found.append({"type": "scatter", "x": columns, "y": rows, "hoverinfo": "skip"} | words | axes)
    rows, columns = np.nonzero(np.isnan(values))
    if rows.size:
        crosses = {"mode": "text", "text": ["NaN"] * rows.size, "textfont": {"size": 11, "color": palette.ink}}
        found.append({"type": "scatter", "x": columns, "y": rows, "hoverinfo": "skip"} | crosses | axes)
    return found


def _short(value: float) -> str:
    return "−∞" if np.isneginf(value) else f"{value:.0e}".replace("-", "−").replace("e+0", "e").replace("e+", "e")
