"""A row of attention over the picture that a model was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from .figure_style import LIGHT, Look, say
from .heatmap import plotly_colorscale

if TYPE_CHECKING:
    from attenscope.text.patches import Patches
    from attenscope.trace import AttentionMap

WEIGHTS_OPACITY = 0.65
"""How much of the picture's colours the weights cover."""


def patch_heatmap(
    attention: AttentionMap,
    patches: Patches,
    layer: int,
    head: int,
    row: int = 0,
    look: Look | None = None,
) -> go.Figure:
    """Draw what one query gives to each patch, over the picture where there is one.

    Args:
        attention: a map whose keys are the tokens of `patches`.
        patches: what was given as the tokens of the capture.
        layer: from 0, as are `head` and `row`; row 0 is that of ``[CLS]``.
        look: palette and colours.

    Returns:
        The figure; a cell says its patch and its weight. Raises TraceError where the map has other columns.
    """
    look = look or Look(LIGHT)
    weights = patches.grid_of(attention, layer, head, row)
    rows, columns = patches.grid
    figure = go.Figure()
    if patches.image is not None:
        figure.add_trace(_make_picture(patches.image, rows, columns))
    figure.add_trace(
        go.Heatmap(
            z=weights,
            colorscale=plotly_colorscale(look.stops),
            opacity=1.0 if patches.image is None else WEIGHTS_OPACITY,
            hovertemplate="%{customdata}: %{z:.4f}<extra></extra>",
            customdata=np.array(patches[patches.first : patches.first + rows * columns]).reshape(rows, columns),
        )
    )
    name = patches[row] if row < len(patches) else str(row)
    title = say("Layer {layer}, head {head}: what {query} looks at", layer=layer + 1, head=head + 1, query=name)
    paper = look.palette.background
    figure.update_layout(title=title, paper_bgcolor=paper, plot_bgcolor=paper, font_color=look.palette.ink)
    figure.update_xaxes(visible=False, range=[-0.5, columns - 0.5])
    figure.update_yaxes(visible=False, range=[rows - 0.5, -0.5], scaleanchor="x")
    return figure


def _make_picture(image: np.ndarray, rows: int, columns: int) -> go.Image:
    """The picture in the coordinates of the grid, each patch one unit wide."""
    values = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, 2)
    if np.issubdtype(values.dtype, np.floating):
        values = np.clip(values if values.max() > 1 else values * 255, 0, 255)
    height, width = values.shape[:2]
    dx, dy = columns / width, rows / height
    model = "rgba256" if values.shape[2] == 4 else "rgb"
    return go.Image(z=values.astype(np.uint8), dx=dx, dy=dy, x0=-0.5 + dx / 2, y0=-0.5 + dy / 2, colormodel=model)
