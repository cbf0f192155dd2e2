"""A table of positional encodings in pictures: as waves, and its wavelengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from .frame import axis, bare, layout, note
from .palette import Palette, blend

HEIGHT = 500


def waves(values: np.ndarray, dimensions: Sequence[int], lengths: np.ndarray | None, palette: Palette) -> go.Figure:
    """Chosen dimensions of `values` (P, D) over position, one below the other; `lengths` (ceil(D / 2),) wavelengths."""
    colours = blend(palette.accent, palette.full, max(len(dimensions), 2))
    position = np.arange(len(values))
    size = max(float(np.abs(values[:, dimensions]).max()), 1e-9)
    notes, traces = [], []
    for row, (dimension, colour) in enumerate(zip(dimensions, colours, strict=False)):
        middle = -float(row)
        traces.append(
            {
                "type": "scatter",
                "x": position,
                "y": middle + values[:, dimension].astype(np.float32) / size * 0.42,
                "customdata": values[:, dimension].astype(np.float32),
                "mode": "lines+markers" if len(values) <= 128 else "lines",
                "line": {"color": colour, "width": 2.2},
                "marker": {"size": 4},
                "hovertemplate": f"dimension {dimension}, position %{{x}}<br><b>%{{customdata:.4f}}</b><extra></extra>",
            }
        )
        notes.append(_wave_name(dimension, middle, lengths, palette))
    lines = [_rule(-float(row), palette) for row in range(len(dimensions))]
    return go.Figure(
        {
            "data": traces,
            "layout": layout(
                palette,
                "Waves: chosen dimensions over position",
                HEIGHT,
                xaxis=axis(palette, "position", showgrid=False, range=[-0.5, len(values) - 0.5]),
                yaxis=bare(range=[-len(dimensions) + 0.45, 0.55]),
                annotations=notes,
                shapes=lines,
                margin={"l": 164, "r": 16, "t": 44, "b": 52, "autoexpand": False},
            ),
        }
    )


def _wave_name(dimension: int, middle: float, lengths: np.ndarray | None, palette: Palette) -> dict:
    text = f"<b>dimension {dimension}</b>"
    if lengths is not None:
        length = float(lengths[dimension // 2])
        function = "cos" if dimension % 2 else "sin"
        text += f" · {function}<br>wavelength {length:,.1f}<br>frequency {1 / length:.2g}"
    return note(text, 0, middle, palette, xref="paper", xanchor="right", xshift=-12, align="right")


def _rule(y: float, palette: Palette) -> dict:
    ends = {"x0": 0, "x1": 1, "y0": y, "y1": y}
    return {"type": "line", "xref": "paper", **ends, "layer": "below", "line": {"color": palette.line, "width": 1}}


def wavelengths(
    lengths: np.ndarray, dimensions: Sequence[int], positions: int, base: float, palette: Palette
) -> go.Figure:
    """Wavelength of every pair of dimensions (ceil(D / 2),) on a logarithmic axis; those of `dimensions` are marked."""
    pairs = np.arange(len(lengths))
    chosen = sorted({dimension // 2 for dimension in dimensions})
    hover = "pair %{x}<br><b>%{y:,.1f} positions</b><extra></extra>"
    line = {"type": "scatter", "x": pairs, "y": lengths, "mode": "lines", "line": {"color": palette.soft, "width": 2}}
    marks = {"x": chosen, "y": lengths[chosen], "marker": {"size": 11, "color": palette.accent}}
    limits = [("2π", 2 * np.pi), (f"{base:g} · 2π", base * 2 * np.pi), (f"{positions} positions shown", positions)]
    rules = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": y,
            "y1": y,
            "line": {"color": palette.line, "width": 1},
        }
        for _, y in limits
    ]
    names = [
        note(text, 1, float(np.log10(y)), palette, xref="paper", xanchor="right", yanchor="bottom")
        for text, y in limits
    ]
    top = np.log10(base * 2 * np.pi)
    return go.Figure(
        {
            "data": [
                line | {"hovertemplate": hover},
                {"type": "scatter", "mode": "markers", "hovertemplate": hover} | marks,
            ],
            "layout": layout(
                palette,
                "Wavelengths: one factor from pair to pair",
                HEIGHT,
                xaxis=axis(palette, "pair of dimensions i", showgrid=False),
                yaxis=axis(palette, "wavelength, positions", type="log", range=[0.5, top + 0.35], dtick=1),
                shapes=rules,
                annotations=names,
            ),
        }
    )
