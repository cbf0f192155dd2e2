"""What is left of many heads: means, and attention rolled out through the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from .heatmap import Grid, weight_grid
from .labels import KIND_NAMES
from .palette import Look

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.trace import AttentionMap

    from .heatmap import Rows

Flow = Literal["rollout", "mean of heads", "mean of layers", "mean of all"]
FLOWS: tuple[Flow, ...] = get_args(Flow)


def flow_heatmap(
    flow: AttentionMap,
    which: Flow,
    layer: int,
    head: int,
    *,
    weighted: bool = False,
    model: str = "",
    look: Look | None = None,
    rows: Rows = "predicted",
    pinned: tuple[int | None, int | None] = (None, None),
) -> go.Figure:
    """A map whose averaged axes have length 1; layer and head (from 0) are of the map it was made from.

    `weighted` says in the title that weights were multiplied by the norms of the values; `pinned` is (query, key).
    """
    place = {
        "rollout": f"rollout through layer {layer + 1}",
        "mean of heads": f"layer {layer + 1}, mean of heads",
        "mean of layers": f"head {head + 1}, mean of layers",
        "mean of all": "mean of all layers and heads",
    }[which]
    weights = flow.weights[min(layer, flow.layers - 1), min(head, flow.heads - 1)]
    grid = Grid(
        weights,
        flow.mask,
        flow.rows(rows),
        flow.key_tokens,
        f"{KIND_NAMES[flow.kind]} · {place}{', times value norms' if weighted else ''}",
        top=float(np.ceil(weights.max(initial=0.1) * 10) / 10),  # many heads as one: no weight comes near 1
    )
    return weight_grid(grid, look or Look(), model=model, pinned=pinned[0], pinned_key=pinned[1])
