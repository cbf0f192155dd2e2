"""What is left of many heads: means, attention rolled out through the layers, and attention flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ..heatmap import Grid, weight_grid
from ..labels import KIND_NAMES, quoted
from ..palette import Look
from ..speech import say, to_say
from ..words import strongest

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.trace import AttentionMap

    from ..heatmap import Rows

Flow = Literal["rollout", "attention flow", "mean of heads", "mean of layers", "mean of all"]
FLOWS: tuple[Flow, ...] = get_args(Flow)
TITLES: dict[Flow, tuple[str, str]] = {
    "rollout": (
        to_say("{kind} · rollout through layer {layer}"),
        to_say("{kind} · rollout through layer {layer}, times value norms"),
    ),
    "attention flow": (
        to_say("{kind} · attention flow through layer {layer}"),
        to_say("{kind} · attention flow through layer {layer}, times value norms"),
    ),
    "mean of heads": (
        to_say("{kind} · layer {layer}, mean of heads"),
        to_say("{kind} · layer {layer}, mean of heads, times value norms"),
    ),
    "mean of layers": (
        to_say("{kind} · head {head}, mean of layers"),
        to_say("{kind} · head {head}, mean of layers, times value norms"),
    ),
    "mean of all": (
        to_say("{kind} · mean of all layers and heads"),
        to_say("{kind} · mean of all layers and heads, times value norms"),
    ),
}
"""Of weights as they are, and multiplied by the norms of the values."""


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
    weights = flow_weights(flow, layer, head)
    grid = Grid(
        weights,
        flow.mask,
        flow.rows(rows),
        flow.key_tokens,
        say(TITLES[which][weighted], kind=say(KIND_NAMES[flow.kind]), layer=layer + 1, head=head + 1),
        top=float(np.ceil(weights.max(initial=0.1) * 10) / 10),  # many heads as one: no weight comes near 1
    )
    return weight_grid(grid, look or Look(), model=model, pinned=pinned[0], pinned_key=pinned[1])


def flow_weights(flow: AttentionMap, layer: int, head: int) -> np.ndarray:
    """(Q, K) of a map whose averaged axes have length 1; layer and head (from 0) are of the map it was made from."""
    return flow.weights[min(layer, flow.layers - 1), min(head, flow.heads - 1)]


def flow_in_words(flow: AttentionMap, layer: int, head: int, rows: Rows) -> str:
    """The strongest link of the picture."""
    weights = flow_weights(flow, layer, head)
    found = strongest(weights)
    link = {"query": quoted(flow.rows(rows)[found.query]), "key": quoted(flow.key_tokens[found.key])}
    if found.ties > 1:
        return say(
            "{count} of {cells} cells tie at the greatest value, {weight:.2f}; the first is {query} → {key}.",
            count=found.ties,
            cells=int(flow.mask.sum()),
            weight=found.weight,
            **link,
        )
    return say("The strongest link is {query} → {key}, {weight:.2f}.", weight=found.weight, **link)
