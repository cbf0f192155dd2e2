"""What is left of many heads: means, attention rolled out through the layers, and attention flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ..heatmap import Grid, weight_grid
from ..labels import KIND_NAMES, quoted
from ..palette import Look

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.trace import AttentionMap

    from ..heatmap import Rows

Flow = Literal["rollout", "attention flow", "mean of heads", "mean of layers", "mean of all"]
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
        "attention flow": f"attention flow through layer {layer + 1}",
        "mean of heads": f"layer {layer + 1}, mean of heads",
        "mean of layers": f"head {head + 1}, mean of layers",
        "mean of all": "mean of all layers and heads",
    }[which]
    weights = flow_weights(flow, layer, head)
    grid = Grid(
        weights,
        flow.mask,
        flow.rows(rows),
        flow.key_tokens,
        f"{KIND_NAMES[flow.kind]} · {place}{', times value norms' if weighted else ''}",
        top=float(np.ceil(weights.max(initial=0.1) * 10) / 10),  # many heads as one: no weight comes near 1
    )
    return weight_grid(grid, look or Look(), model=model, pinned=pinned[0], pinned_key=pinned[1])


def flow_weights(flow: AttentionMap, layer: int, head: int) -> np.ndarray:
    """(Q, K) of a map whose averaged axes have length 1; layer and head (from 0) are of the map it was made from."""
    return flow.weights[min(layer, flow.layers - 1), min(head, flow.heads - 1)]


def flow_in_words(flow: AttentionMap, layer: int, head: int, rows: Rows) -> str:
    """The strongest link of the picture."""
    weights = flow_weights(flow, layer, head)
    query, key = np.unravel_index(int(weights.argmax()), weights.shape)
    return (
        f"The strongest link is {quoted(flow.rows(rows)[query])} → {quoted(flow.key_tokens[key])}, "
        f"{weights[query, key]:.2f}."
    )
