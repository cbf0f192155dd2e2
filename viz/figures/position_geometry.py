"""Similarity by distance, and the shift of positions as a turn of every pair of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from .diverging import negative
from .frame import axis, bare, layout, note
from .palette import Palette

if TYPE_CHECKING:
    from model.position_geometry import DistanceProfile

HEIGHT = 500
COLUMNS = 4
APART = 3
"""Distance of two circles' middles, in radii."""


def profile(
    own: DistanceProfile, other: DistanceProfile | None, names: tuple[str, str], title: str, palette: Palette
) -> go.Figure:
    """Similarity over distance: the mean as a line, lowest and highest as a band; `other` for comparison."""
    curves = [(own, names[0], palette.accent)]
    if other is not None:
        curves.append((other, names[1], negative(palette)))
    traces: list[dict] = []
    notes = []
    for curve, name, colour in curves:
        distance = np.arange(len(curve.mean))
        edge = {"type": "scatter", "x": distance, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        traces += [
            edge | {"y": curve.lowest},
            edge | {"y": curve.highest, "fill": "tonexty", "fillcolor": f"rgba{_channels(colour)}"},
            {
                "type": "scatter",
                "x": distance,
                "y": curve.mean,
                "mode": "lines",
                "line": {"color": colour, "width": 2.5},
                "hovertemplate": f"{name}<br>distance %{{x}}<br><b>%{{y:.4f}}</b><extra></extra>",
            },
        ]
        if other is not None:
            at = len(curve.mean) // 2
            notes.append(
                note(name, at, float(curve.mean[at]), palette, yanchor="bottom", font={"size": 14, "color": colour})
            )
    return go.Figure(
        {
            "data": traces,
            "layout": layout(
                palette,
                title,
                HEIGHT,
                xaxis=axis(palette, "distance between two positions", showgrid=False),
                yaxis=axis(palette, zeroline=True, zerolinecolor=palette.line),
                annotations=notes,
            ),
        }
    )


def circles(
    before: np.ndarray, after: np.ndarray, pairs: Sequence[int], lengths: np.ndarray, shift: int, palette: Palette
) -> go.Figure:
    """Pairs (sine, cosine) of one position and of the shifted one, (N, 2) each, on a circle each.

    The cosine is drawn across and the sine up, so that a later position lies further round, against the clock.
    """
    ring = np.linspace(0, 2 * np.pi, 73)
    rings, arcs, notes = [], [], []
    middles = np.array([(APART * (at % COLUMNS), -APART * 1.16 * (at // COLUMNS)) for at in range(len(pairs))])
    for middle, start, pair in zip(middles, before, pairs, strict=True):
        turn = shift * 2 * np.pi / float(lengths[pair])
        steps = int(min(720, 24 + abs(turn) * 8))
        rings.append(middle + _on_circle(ring))
        arcs.append(middle + 0.72 * _on_circle(np.arctan2(start[0], start[1]) + np.linspace(0, turn, steps)))
        text = f"<b>pair {pair}</b> · wavelength {float(lengths[pair]):,.0f}<br>turns by {np.degrees(turn):,.4g}°"
        notes.append(note(text, middle[0], middle[1] - 1.1, palette, yanchor="top"))
    # One trace for all circles of a kind: plotly's time grows with the number of traces.
    traces = [
        _lines(rings, palette.line, 1.5),
        _lines(arcs, palette.soft, 2),
        _hands(middles, before, palette.soft, "position"),
        _hands(middles, after, palette.accent, "shifted"),
    ]
    rows = (len(pairs) + COLUMNS - 1) // COLUMNS
    return go.Figure(
        {
            "data": traces,
            "layout": layout(
                palette,
                f"A shift by {shift} turns every pair by its own angle",
                HEIGHT,
                xaxis=bare(range=[-1.4, APART * (COLUMNS - 1) + 1.4]),
                yaxis=bare(range=[-APART * 1.16 * (rows - 1) - 1.8, 1.15], scaleanchor="x"),
                annotations=notes,
                margin={"l": 0, "r": 0, "t": 44, "b": 0, "autoexpand": False},
            ),
        }
    )


def _on_circle(angle: np.ndarray) -> np.ndarray:
    """(N,) -> (N, 2) across and up."""
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def _lines(parts: Sequence[np.ndarray], colour: str, width: float) -> dict:
    """Lines (N, 2) each, apart from each other."""
    x, y = np.concatenate([np.vstack([part, (np.nan, np.nan)]) for part in parts]).T
    line = {"color": colour, "width": width}
    return {"type": "scatter", "x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip"}


def _hands(middles: np.ndarray, ends: np.ndarray, colour: str, name: str) -> dict:
    """A hand from the middle (N, 2) of every circle to (sine, cosine) (N, 2) on it."""
    tips = middles + ends[:, ::-1]
    broken = np.full_like(tips, np.nan)
    x, y = np.stack([middles, tips, broken], 1).reshape(-1, 2).T
    texts = [text for sin, cos in ends for text in ("", f"{name}<br>sin {sin:.4f}<br>cos {cos:.4f}", "")]
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "mode": "lines+markers",
        "line": {"color": colour, "width": 3},
        "marker": {"size": [0, 12, 0] * len(ends), "color": colour, "opacity": 1},
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
    }


def _channels(colour: str) -> tuple[float, ...]:
    return (*(int(colour[at : at + 2], 16) for at in (1, 3, 5)), 0.18)
