"""Heatmaps of attention weights, their pooled tiles, and colours for signed numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import plotly.graph_objects as go

from .figure_style import (
    DARK,
    KIND_NAMES,
    LONGEST_WITH_LABELS,
    RAMP_STOPS,
    Look,
    Palette,
    Scale,
    base_layout,
    blend_colours,
    choose_contrasting_text_colours,
    escape_markup,
    format_number,
    say,
    title_layout,
    to_say,
    token_ticks,
)

if TYPE_CHECKING:
    from attenscope.trace import AttentionMap

# Heatmaps: queries down, keys across.


HEATMAP_HEIGHT = 544
FEWEST_CELLS = 12  # A short sentence leaves room free rather than being blown up to huge cells.
LONGEST_PATH = 32
"""Letters of a module's path for which a title has room."""
SMALL_CELLS = 32
MASKED_HOVER = "%{{y}} → %{{x}}<br>{}<extra></extra>"
NUMBERED_CELLS = 20
"""Longest side of a map whose cells have room for their weight in figures."""
RowLabel = Literal["predicted", "fed"]
ROW_LABELS: tuple[RowLabel, ...] = get_args(RowLabel)
ROW_LABEL_NAMES: dict[RowLabel, str] = {"predicted": to_say("predicted"), "fed": to_say("fed in")}


def heatmap(
    attention: AttentionMap,
    layer: int,
    head: int,
    *,
    model: str = "",
    look: Look | None = None,
    rows: RowLabel = "predicted",
    pinned: int | None = None,
    pinned_key: int | None = None,
    numbers: bool = False,
) -> go.Figure:
    """Return the weights (Q, K) of one head as a figure of the size that its cells need.

    Args:
        attention: A map of a trace, such as ``trace.encoder``.
        layer: Counted from 0; the title, which people read, counts from 1.
        head: Counted from 0, as well.
        model: A name to stand beside the title.
        look: The colours and the scale; light, by the square root of the weight, where None.
        rows: What rows of a decoder are named by: the token ``predicted``, or the one ``fed`` in.
        pinned: The row, from 0, that is outlined.
        pinned_key: The column, from 0, that is outlined.
        numbers: Whether each weight stands in its cell, where there is room.

    Axes are integer positions with tokens as tick labels: token strings as categories would drop repeated tokens.
    A masked cell is no weight at all: it is grey and hatched, and says so on hover.
    """
    grid = make_head_grid(attention, layer, head, rows)
    figure = plot_weight_grid(grid, look or Look(), model=model, pinned=pinned, pinned_key=pinned_key, numbers=numbers)
    figure.update_traces(colorbar={"lenmode": "pixels", "len": COLOUR_BAR_HEIGHT}, selector={"name": "weights"})
    return figure.update_layout(_layout_of_own_size(*grid.weights.shape))


LONGEST_SIDE, LARGEST_CELL, SMALLEST_CELL = 640, 44, 3
"""Pixels of a map's longer side, and of a cell at most and at least, in a figure that stands alone."""
LEAST_WIDTH, COLOUR_BAR_HEIGHT = 620, 200
"""Pixels that a title, and beside the cells a colour bar, need."""


def _layout_of_own_size(queries: int, keys: int) -> dict[str, Any]:
    """Return what a figure's layout is in no column of a page: no wider and no higher than its cells need."""
    cell = float(np.clip(LONGEST_SIDE / max(queries, keys, 1), SMALLEST_CELL, LARGEST_CELL))
    across, down = keys * cell, queries * cell
    margin = {"l": 112, "r": max(72, LEAST_WIDTH - 112 - across), "t": 100, "b": max(16, COLOUR_BAR_HEIGHT + 24 - down)}
    return {
        "width": margin["l"] + across + margin["r"],
        "height": margin["t"] + down + margin["b"],
        "margin": margin,
        "xaxis": {"range": [-0.5, keys - 0.5]},
        "yaxis": {"range": [queries - 0.5, -0.5]},
    }


def make_head_grid(attention: AttentionMap, layer: int, head: int, rows: RowLabel) -> WeightGrid:
    """The grid of weights that a heatmap of one head (from 0) draws."""
    return WeightGrid(
        attention.weights[layer, head],
        attention.mask_of(layer, head),
        attention.rows(rows),
        attention.key_tokens,
        " · ".join([head_title(attention.kind, layer, head), *_short_module_path(attention, layer)]),
    )


def head_title(kind: str, layer: int, head: int) -> str:
    """A head, counted from 0, as titles name it."""
    return say("{kind} · layer {layer}, head {head}", kind=say(KIND_NAMES[kind]), layer=layer + 1, head=head + 1)


def _short_module_path(attention: AttentionMap, layer: int) -> list[str]:
    """The end of the layer's path, where the map knows it."""
    paths = attention.layer_paths[layer : layer + 1]
    return [path if len(path) <= LONGEST_PATH else f"…{path[-LONGEST_PATH:]}" for path in paths]


@dataclass(frozen=True, eq=False)
class WeightGrid:
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


def plot_weight_grid(
    grid: WeightGrid,
    look: Look,
    *,
    model: str = "",
    pinned: int | None = None,
    pinned_key: int | None = None,
    numbers: bool = False,
) -> go.Figure:
    """A heatmap of any weights, in the look of :func:`heatmap`."""
    # One dict in one call: updating a figure piece by piece costs several times as much.
    return go.Figure(
        build_weight_grid_figure_parts(grid, look, model=model, pinned=pinned, pinned_key=pinned_key, numbers=numbers)
    )


def build_weight_grid_figure_parts(
    grid: WeightGrid,
    look: Look,
    *,
    model: str = "",
    pinned: int | None = None,
    pinned_key: int | None = None,
    numbers: bool = False,
) -> dict[str, Any]:
    """The data and the layout of :func:`plot_weight_grid`, for a figure of several parts."""
    palette = look.palette
    weights = np.where(grid.mask, grid.weights, np.nan).astype(np.float32)
    y_axis = _token_axis(grid.rows, palette, pinned)
    outlines = _pin_outlines(pinned, pinned_key, weights.shape, palette)
    layout = _heatmap_layout(palette, grid.title, model) | {
        "xaxis": _token_axis(grid.columns, palette, pinned_key) | {"side": "top", "tickangle": -45},
        "yaxis": y_axis | {"range": y_axis["range"][::-1]},
        "shapes": [*outlines, *_build_separator_lines(grid.breaks, weights.shape, palette)],
    }
    return {
        "data": [*_build_masked_cell_traces(grid.mask, palette), _weight_trace(weights, look, numbers, grid.top)],
        "layout": layout,
    }


def hatch_lines(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
        for start, end in find_true_runs(blocked):
            first, last = column[start], column[end - 1]
            xs += [first - 0.5, last + 0.5, np.nan]
            ys += [total - first + 0.5, total - last - 0.5, np.nan]
    return np.array(xs, dtype=np.float32), np.array(ys, dtype=np.float32)


def find_true_runs(cells: np.ndarray) -> list[tuple[int, int]]:
    """The first cell and one past the last of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], cells, [False]))))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def has_room_for_numbers(weights: np.ndarray) -> bool:
    """Whether the cells of a map (..., Q, K) are large enough to be read as figures."""
    return max(weights.shape[-2:]) <= NUMBERED_CELLS


def _weight_trace(weights: np.ndarray, look: Look, numbers: bool, top: float) -> dict:
    return {
        "type": "heatmap",
        "name": "weights",
        "z": weights,
        "zmin": 0,
        "zmax": top,
        "colorscale": look.colorscale,
        "hoverongaps": False,
        "hovertemplate": "%{y} → %{x}<br><b>%{z:.3f}</b><extra></extra>",
        "xgap": _cell_gap(weights.shape[1]),
        "ygap": _cell_gap(weights.shape[0]),
        "colorbar": _colorbar(look.palette, look.scale, top),
        **({"texttemplate": "%{z:.2f}", "textfont": {"size": 11}} if numbers and has_room_for_numbers(weights) else {}),
    }


def _build_masked_cell_traces(mask: np.ndarray, palette: Palette) -> list[dict]:
    """The grey fill and the hatch under the weights; nothing when every cell is allowed."""
    if mask.all():
        return []
    x, y = hatch_lines(mask)
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


def _cell_gap(cells: int) -> int:
    return 1 if cells <= LONGEST_WITH_LABELS else 0


def _font_size(cells: int) -> float:
    return float(np.clip(400 / max(cells, 1), 7, 15))


def _token_axis(tokens: tuple[str, ...], palette: Palette, pinned: int | None = None) -> dict:
    shown = token_ticks(tokens, pinned)
    return {
        "tickmode": "array",
        **shown,
        "tickfont": {"size": _font_size(len(shown["tickvals"])), "color": palette.ink},
        "range": [-0.5, max(len(tokens), FEWEST_CELLS) - 0.5],
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
        "ticktext": [format_number(share * top, ".2g") for share in shares],
        "tickfont": {"size": 12, "color": palette.soft},
    }


def _heatmap_layout(palette: Palette, title: str, model: str) -> dict:
    after = f'  <span style="color:{palette.soft}">{escape_markup(model)}</span>' if model else ""
    return base_layout(palette, HEATMAP_HEIGHT, l=112, r=56, t=100, b=4) | {
        "title": title_layout(palette, f"<b>{escape_markup(title)}</b>{after}"),
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


def _pin_outlines(row: int | None, column: int | None, shape: tuple[int, ...], palette: Palette) -> list[dict]:
    """Outlines around the pinned row, the pinned column, or both."""
    line = {"type": "rect", "line": {"color": palette.accent, "width": 2}}
    across = {"x0": -0.5, "x1": shape[1] - 0.5}
    down = {"y0": -0.5, "y1": shape[0] - 0.5}
    found = [] if row is None else [line | across | {"y0": row - 0.5, "y1": row + 0.5}]
    return found if column is None else [*found, line | down | {"x0": column - 0.5, "x1": column + 0.5}]


def _build_separator_lines(places: tuple[int, ...], shape: tuple[int, ...], palette: Palette) -> list[dict]:
    line = {"type": "line", "line": {"color": palette.ink, "width": 1.5}}
    across = [line | {"x0": -0.5, "x1": shape[1] - 0.5, "y0": at - 0.5, "y1": at - 0.5} for at in places]
    return across + [line | {"y0": -0.5, "y1": shape[0] - 0.5, "x0": at - 0.5, "x1": at - 0.5} for at in places]


# Pooling: large maps made small enough for a tile of the overview.


LONGEST_UNPOOLED = 128
"""Tokens a side up to which a tile has a point for each weight."""
MOST_POINTS = 64
"""Points a side that a tile of a longer map has at most; on the page it is about as many pixels wide."""


def pooling_block_size(queries: int, keys: int) -> int:
    """How many queries, and how many keys, share a point of a tile."""
    longest = max(queries, keys)
    return 1 if longest <= LONGEST_UNPOOLED else -(-longest // MOST_POINTS)


def pool_weights(weights: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (..., Q, K) and a mask that broadcasts, True = may attend -> both with a point for each block of them.

    A point is the largest weight of its block, so that a thin line of strong weights does not fade away, as it would
    in the mean; it is masked where the whole block is.
    """
    size = pooling_block_size(*mask.shape[-2:])
    if size == 1:
        return weights, mask
    rows, columns = (np.arange(0, side, size) for side in mask.shape[-2:])
    allowed = weights if mask.all() else np.where(mask, weights, 0)
    # Rows first: reduceat is quick along an axis whose neighbours lie together in memory.
    largest = np.maximum.reduceat(np.maximum.reduceat(allowed, rows, axis=-2), columns, axis=-1)
    open_ = np.logical_or.reduceat(np.logical_or.reduceat(mask, rows, axis=-2), columns, axis=-1)
    return largest, open_


# Colours for numbers of both signs: orange below zero, the page's own background at zero, indigo above.


NEGATIVE_LIGHT, NEGATIVE_DARK = "#a34a00", "#ffb37a"
"""Distinct from indigo in every common colour vision deficiency, and as dark on paper as indigo."""


def negative_colour(palette: Palette) -> str:
    """The colour of the lowest number, at the end of the ramp below zero."""
    return NEGATIVE_DARK if palette == DARK else NEGATIVE_LIGHT


def diverging_colours(palette: Palette) -> tuple[str, ...]:
    """Evenly spaced colours from the lowest number to the highest, of equal size."""
    below = blend_colours(negative_colour(palette), palette.background, RAMP_STOPS)
    return below[:-1] + blend_colours(palette.background, palette.full, RAMP_STOPS)


def sequential_colours(palette: Palette) -> tuple[str, ...]:
    """Evenly spaced colours from nothing to most."""
    return blend_colours(palette.background, palette.full, RAMP_STOPS)


def plotly_colorscale(stops: tuple[str, ...]) -> list[tuple[float, str]]:
    """Evenly spaced colours as a plotly colour scale."""
    return [(at / (len(stops) - 1), colour) for at, colour in enumerate(stops)]


def build_signed_heatmap_options(values: np.ndarray, palette: Palette, largest: float = 1.0) -> dict[str, Any]:
    """The part that plotly heatmaps of signed numbers (R, C) share, coloured from -`largest` to `largest`."""
    return {
        "type": "heatmap",
        "z": values,
        "zmin": -largest,
        "zmax": largest,
        "colorscale": plotly_colorscale(diverging_colours(palette)),
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hoverongaps": False,
    }


def choose_signed_text_colours(values: np.ndarray, palette: Palette) -> np.ndarray:
    """Ink or background, whichever is read better on the colour of each value of -1..1: strings, in the same shape."""
    return choose_contrasting_text_colours(
        (np.clip(values, -1, 1) + 1) / 2, plotly_colorscale(diverging_colours(palette)), palette
    )
