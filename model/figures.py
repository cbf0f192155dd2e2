"""The figures as notebooks import them: ``attenscope.figures.heatmap(trace.decoder, layer=0, head=3)``.

They are drawn in ``viz/figures``; nothing of the model side uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .viz.figures import DARK, LIGHT, Look
from .viz.figures import heatmap as draw_heatmap
from .viz.figures.heatmap import RowLabel

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .trace import AttentionMap

__all__ = ["DARK", "LIGHT", "Look", "heatmap"]
LONGEST_SIDE, LARGEST_CELL, SMALLEST_CELL = 640, 44, 3
"""Pixels of a map's longer side, and of a cell at most and at least."""
LEAST_WIDTH, LEAST_HEIGHT = 620, 240
"""Pixels that a title and a colour bar need."""
LEFT, RIGHT, TOP, BOTTOM = 112, 72, 100, 16


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
    """Return the weights of one head as a figure of plotly, of the size that its cells need.

    Args:
        attention: a map of a trace, such as ``trace.encoder``.
        layer: counted from 0; the title, which people read, counts from 1.
        head: counted from 0, as well.
        model: a name to stand beside the title.
        look: the colours and the scale; light, with the square root of the weight, where None.
        rows: what rows of a decoder are named by, the token ``predicted`` or the one ``fed`` in.
        pinned: the row, from 0, that is outlined.
        pinned_key: the column, from 0, that is outlined.
        numbers: whether each weight stands in its cell, where there is room.
    """
    figure = draw_heatmap(
        attention,
        layer,
        head,
        model=model,
        look=look,
        rows=rows,
        pinned=pinned,
        pinned_key=pinned_key,
        numbers=numbers,
    )
    queries, keys = attention.weights.shape[2:]
    cell = float(np.clip(LONGEST_SIDE / max(queries, keys, 1), SMALLEST_CELL, LARGEST_CELL))
    return figure.update_layout(
        width=max(LEFT + keys * cell + RIGHT, LEAST_WIDTH),
        height=max(TOP + queries * cell + BOTTOM, TOP + LEAST_HEIGHT),
        margin={"l": LEFT, "r": RIGHT, "t": TOP, "b": BOTTOM},
        xaxis={"range": [-0.5, keys - 0.5]},
        yaxis={"range": [queries - 0.5, -0.5]},
    )
