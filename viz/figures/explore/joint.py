"""All three attentions of a layer as one matrix over source and target, after Tensor2Tensor's visualization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..heatmap import Grid, weight_grid
from ..labels import KIND_NAMES, quoted
from ..palette import Look
from ..speech import listed, say, sentences
from ..words import strongest

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.analysis.joint import Joint

    from ..heatmap import Rows


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
    grid = joint_grid(joint, layer, head, rows)
    return weight_grid(grid, look or Look(), model=model, pinned=pinned[0], pinned_key=pinned[1])


def joint_grid(joint: Joint, layer: int, head: int | None, rows: Rows) -> Grid:
    """What a picture of all three attentions draws."""
    title = (
        say("All three attentions · layer {layer}, mean of all heads", layer=layer + 1)
        if head is None
        else say("All three attentions · layer {layer}, head {head}", layer=layer + 1, head=head + 1)
    )
    return Grid(
        joint.weights,
        joint.mask,
        joint.predicted_tokens if rows == "predicted" else joint.row_tokens,
        joint.column_tokens,
        title,
        (joint.source_length,),
    )


def joint_in_words(joint: Joint, rows: Rows) -> str:
    """The strongest link of each of the three attentions."""
    split, names = joint.source_length, joint.predicted_tokens if rows == "predicted" else joint.row_tokens
    found: dict[str, str | float] = {}
    ties: list[str] = []
    for kind, first_row, first_column, block in (
        ("encoder", 0, 0, joint.weights[:split, :split]),
        ("cross", split, 0, joint.weights[split:, :split]),
        ("decoder", split, split, joint.weights[split:, split:]),
    ):
        best = strongest(block)
        link = f"{quoted(names[first_row + best.query])} → {quoted(joint.column_tokens[first_column + best.key])}"
        found |= {kind: link, f"{kind}_weight": best.weight}
        if best.ties > 1:
            ties.append(say("{kind}: {count}", kind=say(KIND_NAMES[kind]), count=best.ties))
    links = say(
        "The strongest link of each: encoder {encoder} {encoder_weight:.2f}, cross {cross} {cross_weight:.2f}, decoder "
        "{decoder} {decoder_weight:.2f}.",
        **found,
    )
    if not ties:
        return links
    return sentences(
        links, say("Links that tie as the strongest, of which the first is named: {ties}.", ties=listed(ties))
    )
