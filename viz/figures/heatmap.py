"""One head as a heatmap: queries down, keys across."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import plotly.graph_objects as go

from .frame import heading, surface
from .labels import KIND_NAMES, LONGEST_WITH_LABELS, escaped, named
from .palette import Look, Palette, Scale
from .speech import number, say, to_say

if TYPE_CHECKING:
    from model.trace import AttentionMap

HEIGHT = 544
FEWEST = 12  # A short sentence leaves room free rather than being blown up to huge cells.
LONGEST_PATH = 32
"""Letters of a module's path for which a title has room."""
SMALL_CELLS = 32
MASKED_HOVER = "%{{y}} → %{{x}}<br>{}<extra></extra>"
NUMBERED_CELLS = 20
"""Longest side of a map whose cells have room for their weight in figures."""
Rows = Literal["predicted", "fed"]
ROWS: tuple[Rows, ...] = get_args(Rows)
ROW_NAMES: dict[Rows, str] = {"predicted": to_say("predicted"), "fed": to_say("fed in")}


def heatmap(
    attention: AttentionMap,
    layer: int,
    head: int,
    *,
    model: str = "",
    look: Look | None = None,
    rows: Rows = "predicted",
    pinned: int | None = None,
    pinned_key: int | None = None,
    numbers: bool = False,
) -> go.Figure:
    """The weights (Q, K) of one head; layer, head, the pinned row and the pinned column count from 0.

    With `numbers`, each weight stands in its cell, where there is room.

    Axes are integer positions with tokens as tick labels: token strings as categories would drop repeated tokens.
    A masked cell is no weight at all: it is grey and hatched, and says so on hover.
    """
    grid = head_grid(attention, layer, head, rows)
    return weight_grid(grid, look or Look(), model=model, pinned=pinned, pinned_key=pinned_key, numbers=numbers)


def head_grid(attention: AttentionMap, layer: int, head: int, rows: Rows) -> Grid:
    """What a heatmap of one head (from 0) draws."""
    return Grid(
        attention.weights[layer, head],
        attention.mask_of(layer, head),
        attention.rows(rows),
        attention.key_tokens,
        " · ".join([head_title(attention.kind, layer, head), *_module(attention, layer)]),
    )


def head_title(kind: str, layer: int, head: int) -> str:
    """A head, counted from 0, as titles name it."""
    return say("{kind} · layer {layer}, head {head}", kind=say(KIND_NAMES[kind]), layer=layer + 1, head=head + 1)


def _module(attention: AttentionMap, layer: int) -> list[str]:
    """The end of the layer's path, where the map knows it."""
    paths = attention.layer_paths[layer : layer + 1]
    return [path if len(path) <= LONGEST_PATH else f"…{path[-LONGEST_PATH:]}" for path in paths]


@dataclass(frozen=True, eq=False)
class Grid:
    """Any weights of R queries over C keys."""

    weights: np.ndarray
    """(R, C), 0 to 1"""
    mask: np.ndarray
    """(R, C) bool, True = may attend"""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    title: str
    breaks: tuple[int, ...] = ()
    """Rows and columns before which a line is drawn."""
    top: float = 1.0
    """The weight that the ramp ends with."""


def weight_grid(
    grid: Grid,
    look: Look,
    *,
    model: str = "",
    pinned: int | None = None,
    pinned_key: int | None = None,
    numbers: bool = False,
) -> go.Figure:
    """A heatmap of any weights, in the look of :func:`heatmap`."""
    # One dict in one call: updating a figure piece by piece costs several times as much.
    return go.Figure(drawn_grid(grid, look, model=model, pinned=pinned, pinned_key=pinned_key, numbers=numbers))


def drawn_grid(
    grid: Grid,
    look: Look,
    *,
    model: str = "",
    pinned: int | None = None,
    pinned_key: int | None = None,
    numbers: bool = False,
) -> dict[str, Any]:
    """The data and the layout of :func:`weight_grid`, for a figure that this is a part of."""
    palette = look.palette
    weights = np.where(grid.mask, grid.weights, np.nan).astype(np.float32)
    y_axis = _axis(grid.rows, palette, pinned)
    outlines = _outlines(pinned, pinned_key, weights.shape, palette)
    layout = _layout(palette, grid.title, model) | {
        "xaxis": _axis(grid.columns, palette, pinned_key) | {"side": "top", "tickangle": -45},
        "yaxis": y_axis | {"range": y_axis["range"][::-1]},
        "shapes": [*outlines, *_breaks(grid.breaks, weights.shape, palette)],
    }
    return {"data": [*_masked(grid.mask, palette), _weights(weights, look, numbers, grid.top)], "layout": layout}


def hatch(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Strokes through every masked cell, as x and y of one line broken by NaN.

    Cells that touch along an anti-diagonal share one stroke, so a causal mask of Q rows costs at most 2Q strokes, not
    Q²/2; where cells are small every other stroke is left out.
    """
    rows, columns = mask.shape
    xs: list[float] = []
    ys: list[float] = []
    for total in range(0, rows + columns - 1, 1 if max(rows, columns) <= SMALL_CELLS else 2):
        column = np.arange(max(0, total - rows + 1), min(columns, total + 1))
        blocked = ~mask[total - column, column]
        edges = np.flatnonzero(np.diff(np.concatenate(([False], blocked, [False]))))
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            first, last = column[start], column[end - 1]
            xs += [first - 0.5, last + 0.5, np.nan]
            ys += [total - first + 0.5, total - last - 0.5, np.nan]
    return np.array(xs, dtype=np.float32), np.array(ys, dtype=np.float32)


def room_for_numbers(weights: np.ndarray) -> bool:
    """Whether the cells of a map (..., Q, K) are large enough to be read as figures."""
    return max(weights.shape[-2:]) <= NUMBERED_CELLS


def _weights(weights: np.ndarray, look: Look, numbers: bool, top: float) -> dict:
    return {
        "type": "heatmap",
        "name": "weights",
        "z": weights,
        "zmin": 0,
        "zmax": top,
        "colorscale": look.colorscale,
        "hoverongaps": False,
        "hovertemplate": "%{y} → %{x}<br><b>%{z:.3f}</b><extra></extra>",
        "xgap": _gap(weights.shape[1]),
        "ygap": _gap(weights.shape[0]),
        "colorbar": _colorbar(look.palette, look.scale, top),
        **({"texttemplate": "%{z:.2f}", "textfont": {"size": 11}} if numbers and room_for_numbers(weights) else {}),
    }


def _masked(mask: np.ndarray, palette: Palette) -> list[dict]:
    """The grey fill and the hatch under the weights; nothing when every cell is allowed."""
    if mask.all():
        return []
    x, y = hatch(mask)
    fill = {
        "type": "heatmap",
        "name": "masked",
        "z": (~mask).astype(np.uint8),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [(0, "rgba(0,0,0,0)"), (1, palette.masked)],
        "showscale": False,
        "hovertemplate": MASKED_HOVER.format(say("masked: may not attend")),
    }
    line = {"color": palette.hatch, "width": 1}
    return [
        fill,
        {"type": "scatter", "name": "hatch", "x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip"},
    ]


def _gap(cells: int) -> int:
    return 1 if cells <= LONGEST_WITH_LABELS else 0


def _font_size(cells: int) -> float:
    return float(np.clip(400 / max(cells, 1), 7, 15))


def _axis(tokens: tuple[str, ...], palette: Palette, pinned: int | None = None) -> dict:
    shown = named(tokens, pinned)
    return {
        "tickmode": "array",
        **shown,
        "tickfont": {"size": _font_size(len(shown["tickvals"])), "color": palette.ink},
        "range": [-0.5, max(len(tokens), FEWEST) - 0.5],
        "showgrid": False,
        "showspikes": True,  # the crosshair
        "spikemode": "across",
        "spikedash": "solid",
        "spikethickness": 1,
        "spikecolor": palette.soft,
        "zeroline": False,
        "fixedrange": True,
        "ticks": "",
        "ticklabeloverflow": "allow",
        "ticklabelstandoff": 4,
    }


def _colorbar(palette: Palette, scale: Scale, top: float) -> dict:
    # A logarithmic bar has its lower two thirds below a tenth, which a bar over weights squeezes into its foot.
    shares = [0.1, 0.5, 1] if scale == "log" else [0, 0.1, 0.25, 0.5, 1]
    return {
        "thickness": 8,
        "outlinewidth": 0,
        "len": 0.5,
        "y": 1,
        "yanchor": "top",
        "x": 1.01,
        "tickvals": [share * top for share in shares],
        "ticktext": [number(share * top, ".2g") for share in shares],
        "tickfont": {"size": 12, "color": palette.soft},
    }


def _layout(palette: Palette, title: str, model: str) -> dict:
    after = f'  <span style="color:{palette.soft}">{escaped(model)}</span>' if model else ""
    return surface(palette, HEIGHT, l=112, r=56, t=100, b=4) | {
        "title": heading(palette, f"<b>{escaped(title)}</b>{after}"),
        "annotations": [
            {
                "text": say("query ↓  key →"),
                "xref": "paper",
                "yref": "paper",
                "x": 0,
                "y": 1,
                "xshift": -8,
                "yshift": 4,
                "xanchor": "right",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 13, "color": palette.soft},
            }
        ],
    }


def _outlines(row: int | None, column: int | None, shape: tuple[int, ...], palette: Palette) -> list[dict]:
    """Around the pinned row, the pinned column, or both."""
    line = {"type": "rect", "line": {"color": palette.accent, "width": 2}}
    across = {"x0": -0.5, "x1": shape[1] - 0.5}
    down = {"y0": -0.5, "y1": shape[0] - 0.5}
    found = [] if row is None else [line | across | {"y0": row - 0.5, "y1": row + 0.5}]
    return found if column is None else [*found, line | down | {"x0": column - 0.5, "x1": column + 0.5}]


def _breaks(places: tuple[int, ...], shape: tuple[int, ...], palette: Palette) -> list[dict]:
    line = {"type": "line", "line": {"color": palette.ink, "width": 1.5}}
    across = [line | {"x0": -0.5, "x1": shape[1] - 0.5, "y0": at - 0.5, "y1": at - 0.5} for at in places]
    return across + [line | {"y0": -0.5, "y1": shape[0] - 0.5, "x0": at - 0.5, "x1": at - 0.5} for at in places]
