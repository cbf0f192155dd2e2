"""All three attentions of a layer as one matrix over source and target, after Tensor2Tensor's visualization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .heatmap import Grid, weight_grid
from .palette import Look

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.joint import Joint

    from .heatmap import Rows


def joint_heatmap(
    joint: Joint,
    layer: int,
    head: int | None,
    *,
    model: str = "",
    look: Look | None = None,
    rows: Rows = "predicted",
    pinned: tuple[int | None, int | None] = (None, None),
) -> go.Figure:
    """One head of a layer (from 0), or the mean over its heads; lines stand where source and target meet.

    `pinned` is (row, column) of the matrix.
    """
    which = "mean of all heads" if head is None else f"head {head + 1}"
    grid = Grid(
        joint.weights,
        joint.mask,
        joint.predicted_tokens if rows == "predicted" else joint.row_tokens,
        joint.column_tokens,
        f"All three attentions · layer {layer + 1}, {which}",
        (joint.source_length,),
    )
    return weight_grid(grid, look or Look(), model=model, pinned=pinned[0], pinned_key=pinned[1])
