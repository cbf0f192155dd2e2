"""A row of attention over the picture that a model was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from .figure_style import LIGHT, Look, build_titled_layout, readable_token, say
from .heatmap import RowLabel, plotly_colorscale

if TYPE_CHECKING:
    from attenscope.text.patches import Patches
    from attenscope.trace import AttentionMap

FAINTEST, STRONGEST = 0.1, 0.8
"""How much of the picture the smallest and the largest weight cover: where little is looked at, the picture is seen."""
FIGURE_HEIGHT = 430
LUMINANCE = 0.299, 0.587, 0.114
"""Shares of red, green and blue in how bright a colour is (ITU-R BT.601)."""
MARGINS = {"l": 8, "r": 64, "t": 44, "b": 8}


def patch_heatmap(
    attention: AttentionMap,
    patches: Patches,
    layer: int,
    head: int,
    row: int = 0,
    look: Look | None = None,
    *,
    rows: RowLabel = "predicted",
    key: int | None = None,
) -> go.Figure:
    """Draw what one query gives to each patch, over the picture where there is one.

    Args:
        attention: a map whose keys are the tokens of `patches`.
        patches: what was given as the tokens of the capture.
        layer: from 0, as are `head` and `row`; row 0 of an encoder is that of ``[CLS]``, where there is one.
        look: palette and colours.
        rows: whether a row of a decoder is named by the token that was fed in or predicted.
        key: a patch that is framed, by its place among the keys.

    Returns:
        The figure; a cell says its patch and its weight. Raises TraceError where the map has other columns.
    """
    look = look or Look(LIGHT)
    weights = patches.grid_of(attention, layer, head, row)
    height, width = patches.grid
    name = readable_token((patches if attention.kind == "encoder" else attention.rows(rows))[row])
    title = say("Layer {layer}, head {head}: what {query} looks at", layer=layer + 1, head=head + 1, query=name)
    figure = go.Figure(layout=build_titled_layout(look.palette, title, FIGURE_HEIGHT, margin=MARGINS))
    if patches.image is not None:
        figure.add_trace(_make_picture(patches.image, height, width))
    figure.add_trace(
        go.Heatmap(
            z=weights,
            zmin=0,
            colorscale=plotly_colorscale(look.stops) if patches.image is None else _make_transparent_colorscale(look),
            hovertemplate="%{customdata}: %{z:.4f}<extra></extra>",
            customdata=np.array(patches[patches.first : patches.first + height * width]).reshape(height, width),
            colorbar={"thickness": 12, "outlinewidth": 0, "tickformat": ".2~g"},
        )
    )
    for place, dash in ((row if attention.kind == "encoder" else None, "solid"), (key, "dot")):
        if place is not None and 0 <= (at := place - patches.first) < height * width:
            figure.add_shape(_frame_patch(at // width, at % width, look, dash))
    figure.update_xaxes(visible=False, range=[-0.5, width - 0.5], constrain="domain")
    figure.update_yaxes(
        visible=False, range=[height - 0.5, -0.5], scaleanchor="x", scaleratio=_measure_patch_ratio(patches)
    )
    return figure


def _make_transparent_colorscale(look: Look) -> list[tuple[float, str]]:
    """The colours of weights over a picture: the smaller the weight, the more of the picture shows."""
    stops = plotly_colorscale(look.stops)
    return [(at, _make_transparent(colour, FAINTEST + (STRONGEST - FAINTEST) * at)) for at, colour in stops]


def _make_transparent(colour: str, opacity: float) -> str:
    """A colour, written as #rrggbb or rgb(r, g, b), that covers what is below it in part."""
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)] if colour.startswith("#") else colour[4:-1].split(",")
    return f"rgba({', '.join(str(one).strip() for one in parts)}, {opacity:.3f})"


def _frame_patch(row: int, column: int, look: Look, dash: str) -> dict[str, Any]:
    """A frame around a patch."""
    place = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"type": "rect", **place, "line": {"color": look.palette.accent, "width": 3, "dash": dash}}


def _measure_patch_ratio(patches: Patches) -> float:
    """How much higher than wide a patch is in the picture; 1 without a picture."""
    if patches.image is None:
        return 1.0
    height, width = patches.image.shape[:2]
    return float((height / patches.grid[0]) / (width / patches.grid[1]))


def _make_picture(image: np.ndarray, rows: int, columns: int) -> go.Image:
    """The picture in grey, so that every colour is a weight, in the coordinates of the grid: a patch is one unit."""
    values = image.astype(np.float32)
    if np.issubdtype(image.dtype, np.floating) and values.max() <= 1:
        values = values * 255
    grey = values if image.ndim == 2 else values[:, :, :3] @ np.array(LUMINANCE, np.float32)
    height, width = grey.shape
    dx, dy = columns / width, rows / height
    shades = np.repeat(np.clip(np.rint(grey), 0, 255).astype(np.uint8)[:, :, None], 3, 2)
    return go.Image(z=shades, dx=dx, dy=dy, x0=-0.5 + dx / 2, y0=-0.5 + dy / 2, hoverinfo="skip")
