"""Figures of the page Explore: two heads compared, attention flow, and the joint matrix of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import plotly.graph_objects as go

from .figure_style import (
    KIND_NAMES,
    Look,
    Palette,
    base_layout,
    escape_markup,
    format_signed,
    join_items,
    join_sentences,
    quote_token,
    say,
    to_say,
    token_labels,
    token_ticks,
)
from .heatmap import (
    RowLabel,
    WeightGrid,
    build_weight_grid_figure_parts,
    diverging_colours,
    negative_colour,
    plot_weight_grid,
    plotly_colorscale,
)
from .text_alternatives import find_strongest_weight

if TYPE_CHECKING:
    from attenscope.analysis.attention_steps import MapDifference
    from attenscope.analysis.flow import JointAttention
    from attenscope.trace import AttentionMap

# A comparison: two heads side by side, their difference, and one row of both, in a single picture.


PANEL_OFFSET = 10_000
"""Rows of panel p count from p * OFFSET, so that the place of a click says which panel it was in."""
FIRST_PANEL, SECOND_PANEL, CHANGE_PANEL, ROW_PANEL = range(4)
PANEL_HEIGHT, CELL_HEIGHT = 284, 23.5
"""How high a panel is, and how high its cells are where there are few, in pixels."""
ROOM_ABOVE, ROOM_BETWEEN, ROOM_BELOW = 104, 122, 52
"""Room for titles and names, and for the scale, in pixels."""
LEFT_COLUMN, RIGHT_COLUMN = (0.0, 0.42), (0.58, 1.0)
"""Where the panels of a column lie across; between them stand the names of rows."""
STAGE_COLUMNS = ((0.0, 0.265), (0.3675, 0.6325), (0.735, 1.0))
"""The same of the three maps beside each other on a stage, where the one row has no room of its own."""
LONGEST_NAMED = 40
"""Rows or columns beyond which there is no room for their names."""
PinnedCell = tuple[int | None, int | None]


@dataclass(frozen=True, eq=False)
class ComparedMap:
    """One of two maps that are compared."""

    attention: AttentionMap
    """One head: weights (1, 1, Q, K)."""
    name: str
    pinned: PinnedCell = (None, None)
    """Row and column, from 0."""


@dataclass(frozen=True)
class PanelPlace:
    """Where a panel lies: its part of the picture across and up, from 0 to 1, and how many pixels it is high."""

    across: tuple[float, float]
    down: tuple[float, float]
    height: float

    def range(self, first: int, rows: int) -> list[float]:
        """The range of an axis of `rows`, counted downwards from `first`; where there are few, room is left below."""
        return [first + max(rows, self.height / CELL_HEIGHT) - 0.5, first - 0.5]


def plot_comparison(
    first: ComparedMap,
    second: ComparedMap,
    difference: MapDifference | None,
    pinned: PinnedCell = (None, None),
    *,
    look: Look | None = None,
    rows: RowLabel = "predicted",
    on_stage: bool = False,
) -> go.Figure:
    """Both maps above; below, the second minus the first on what both share, and one row of both.

    `pinned` are row and column of the difference; without a pinned row, the row of the greatest change is shown.
    Without a difference, the maps stand alone. `on_stage` the maps stand in a row, the difference last.
    """
    look = look or Look()
    if on_stage and difference is not None:
        return _plot_maps_side_by_side(first, second, difference, pinned, look, rows)
    high = _panel_height(first.attention, second.attention)
    low = 0 if difference is None else _panel_height(difference.first)
    total = high + (ROOM_BETWEEN + low if low else 0)
    panels = [
        _build_compared_map_panel(panel, side, look, rows, PanelPlace(across, (1 - high / total, 1.0), high))
        for panel, side, across in ((FIRST_PANEL, first, LEFT_COLUMN), (SECOND_PANEL, second, RIGHT_COLUMN))
    ]
    if difference is not None:
        row = pinned[0] if pinned[0] is not None else difference.largest[2]
        panels += [
            _difference_panel(difference, pinned, look, rows, PanelPlace(LEFT_COLUMN, (0.0, low / total), low)),
            _build_row_comparison_panel(
                difference, row, look.palette, rows, PanelPlace(RIGHT_COLUMN, (0.0, low / total), low)
            ),
        ]
    return _combine_panels(panels, _comparison_layout(look.palette, total, ROOM_BELOW if low else 8))


def _plot_maps_side_by_side(
    first: ComparedMap, second: ComparedMap, difference: MapDifference, pinned: PinnedCell, look: Look, rows: RowLabel
) -> go.Figure:
    """Both maps and their difference beside each other, each as high as the figure."""
    one, two, three = (PanelPlace(across, (0.0, 1.0), 0.0) for across in STAGE_COLUMNS)
    panels = [
        _build_compared_map_panel(FIRST_PANEL, first, look, rows, one),
        _build_compared_map_panel(SECOND_PANEL, second, look, rows, two),
        _difference_panel(difference, pinned, look, rows, three),
    ]
    return _combine_panels(panels, _comparison_layout(look.palette, PANEL_HEIGHT, ROOM_BELOW))


def _combine_panels(panels: Sequence[dict[str, Any]], layout: dict[str, Any]) -> go.Figure:
    for panel in panels:
        layout |= panel["axes"]
        layout["shapes"] += panel["shapes"]
        layout["annotations"] += panel["annotations"]
    return go.Figure({"data": [trace for panel in panels for trace in panel["data"]], "layout": layout})


def _panel_height(*maps: AttentionMap) -> float:
    """The height in pixels of the panels of these maps: no more than the longer side of the largest map needs."""
    return min(PANEL_HEIGHT, CELL_HEIGHT * max(3, *(max(one.mask.shape) for one in maps)))


def locate_clicked_panel_cell(row: int, column: int) -> tuple[int, int, int]:
    """What a click on the picture was on: the panel, and there the row and the column."""
    return row // PANEL_OFFSET, row % PANEL_OFFSET, column


def describe_map_difference(difference: MapDifference, pinned: PinnedCell, rows: RowLabel) -> str:
    """How much of a row lies elsewhere in the second map, and the greatest change or that of the pinned pair."""
    if not difference.weights.any():
        return say("No weight differs between the two.")
    _, _, row, column = difference.largest
    found = say(
        "On average {share:.0%} of a row's attention lies elsewhere in the second.",
        share=difference.mean_moved_weight_share,
    )
    if pinned[0] is not None and pinned[1] is not None:
        return join_sentences(
            found, say("Pinned: {pair}.", pair=_describe_cell_difference(difference, pinned[0], pinned[1], rows))
        )
    return join_sentences(
        found, say("The greatest change: {pair}.", pair=_describe_cell_difference(difference, row, column, rows))
    )


def _describe_cell_difference(difference: MapDifference, row: int, column: int, rows: RowLabel) -> str:
    first, second = difference.first, difference.second
    link = {"query": quote_token(first.rows(rows)[row]), "key": quote_token(first.key_tokens[column])}
    if not difference.mask[row, column]:
        return say("{query} → {key} is masked", **link)
    one, two = (float(one.weights[0, 0, row, column]) for one in (first, second))
    return say(
        "{query} → {key} {first:.2f} in the first, {second:.2f} in the second ({change})",
        first=one,
        second=two,
        change=format_signed(two - one, plus=True),
        **link,
    )


def _build_compared_map_panel(
    panel: int, side: ComparedMap, look: Look, rows: RowLabel, place: PanelPlace
) -> dict[str, Any]:
    attention = side.attention
    grid = WeightGrid(attention.weights[0, 0], attention.mask, attention.rows(rows), attention.key_tokens, "")
    return _heatmap_panel(panel, grid, escape_markup(side.name), look, side.pinned, place)


def _difference_panel(
    difference: MapDifference, pinned: PinnedCell, look: Look, rows: RowLabel, place: PanelPlace
) -> dict[str, Any]:
    first = difference.first
    weights = difference.weights[0, 0]
    grid = WeightGrid(weights, difference.mask, first.rows(rows), first.key_tokens, "")
    panel = _heatmap_panel(CHANGE_PANEL, grid, escape_markup(say("Second minus first")), look, pinned, place)
    shown = np.abs(np.where(difference.mask, weights, 0))
    most = float(np.ceil(shown.max(initial=0.1) * 10) / 10)  # the same on both sides, so that zero is the middle
    for trace in panel["data"]:
        if trace.get("name") == "weights":
            trace |= {"zmin": -most, "zmax": most, "colorscale": plotly_colorscale(diverging_colours(look.palette))}
            trace |= {"name": "difference", "hovertemplate": "%{y} → %{x}<br><b>%{z:+.3f}</b><extra></extra>"}
            trace |= {"showscale": True, "colorbar": _difference_colorbar(look.palette, most, place)}
    return panel


def _heatmap_panel(
    panel: int, grid: WeightGrid, title: str, look: Look, pinned: PinnedCell, place: PanelPlace
) -> dict[str, Any]:
    """A heatmap of its own, moved to its place: its axes named by the panel, its rows counted from its offset."""
    figure = build_weight_grid_figure_parts(grid, look, pinned=pinned[0], pinned_key=pinned[1])
    first, number = panel * PANEL_OFFSET, "" if panel == 0 else str(panel + 1)
    own = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    for trace in figure["data"]:
        trace |= own
        if trace["type"] == "heatmap":
            trace |= {"y0": first, "dy": 1, "showscale": False}
        else:
            trace["y"] = trace["y"] + first
    layout = figure["layout"]
    across, down = layout["xaxis"], layout["yaxis"]
    across |= {"domain": place.across, "anchor": own["yaxis"]} | _token_axis_ticks(
        grid.columns, look.palette, pinned[1]
    )
    down |= {"domain": place.down, "anchor": own["xaxis"]} | _token_axis_ticks(
        grid.rows, look.palette, pinned[0], first
    )
    down |= {"range": place.range(first, len(grid.rows))}
    shapes = [
        shape | {"xref": own["xaxis"], "yref": own["yaxis"], "y0": shape["y0"] + first, "y1": shape["y1"] + first}
        for shape in layout.get("shapes", ())
    ]
    axes = {f"xaxis{number}": across, f"yaxis{number}": down}
    return {
        "data": figure["data"],
        "axes": axes,
        "shapes": shapes,
        "annotations": [_panel_title(title, place, look.palette)],
    }


def _build_row_comparison_panel(
    difference: MapDifference, row: int, palette: Palette, rows: RowLabel, place: PanelPlace
) -> dict[str, Any]:
    """One row of both maps: for each key a line from its weight in the first to its weight in the second."""
    names = difference.first.key_tokens
    one, two = (side.weights[0, 0, row] for side in (difference.first, difference.second))
    at = ROW_PANEL * PANEL_OFFSET + np.arange(len(names))
    gap = np.full(len(names), np.nan)
    size = 9 if len(names) <= LONGEST_NAMED else 5
    lines = {
        "type": "scatter",
        "x": np.column_stack([one, two, gap]).ravel(),
        "y": np.repeat(at, 3),
        "mode": "lines",
        "line": {"color": palette.line, "width": 3},
        "hoverinfo": "skip",
    }
    dots = [
        {
            "type": "scatter",
            "name": name,
            "x": weights,
            "y": at,
            "mode": "markers",
            "marker": {
                "size": size,
                "color": colour,
                "symbol": symbol,
                "line": {"width": 1.5, "color": line},
            },
            "hovertemplate": f"%{{y}}<br>{read}<extra></extra>",
        }
        for name, read, weights, colour, symbol, line in (
            ("first", say("first <b>%{x:.3f}</b>"), one, palette.background, "circle", negative_colour(palette)),
            ("second", say("second <b>%{x:.3f}</b>"), two, palette.full, "circle", palette.full),
        )
    ]
    own = {"xaxis": "x4", "yaxis": "y4"}
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": ""}
    across = plain | {"domain": place.across, "anchor": "y4", "side": "top", "range": [-0.04, 1.04], "showgrid": True}
    across |= {"tickvals": [0, 0.5, 1], "gridcolor": palette.line, "tickfont": {"size": 12, "color": palette.soft}}
    down = plain | {"domain": place.down, "anchor": "x4", "ticklabelstandoff": 4}
    down |= {"range": place.range(ROW_PANEL * PANEL_OFFSET, len(names))} | _token_axis_ticks(
        names, palette, first=ROW_PANEL * PANEL_OFFSET
    )
    token = token_labels([difference.first.rows(rows)[row]])[0]
    first, second = (
        f'<span style="color:{colour}">{text}</span>'
        for colour, text in ((negative_colour(palette), say("○ first")), (palette.full, say("● second")))
    )
    title = say("Row “{token}”: {first}  {second}", token=token, first=first, second=second)
    return {
        "data": [trace | own for trace in (lines, *dots)],
        "axes": {"xaxis4": across, "yaxis4": down},
        "shapes": [],
        "annotations": [_panel_title(title, place, palette)],
    }


def _token_axis_ticks(
    names: tuple[str, ...], palette: Palette, pinned: int | None = None, first: int = 0
) -> dict[str, Any]:
    """The ticks of an axis whose first token stands at `first`."""
    ticks = token_ticks(names, pinned, LONGEST_NAMED)
    font = {"size": float(np.clip(300 / max(len(ticks["tickvals"]), 1), 8, 13)), "color": palette.ink}
    return {"tickvals": [first + at for at in ticks["tickvals"]], "ticktext": ticks["ticktext"], "tickfont": font}


def _panel_title(text: str, place: Any, palette: Palette) -> dict[str, Any]:
    return {
        "text": f"<b>{text}</b>",
        "xref": "paper",
        "yref": "paper",
        "x": place.across[0],
        "y": place.down[1],
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 76,
        "showarrow": False,
        "font": {"size": 14, "color": palette.ink},
    }


def _difference_colorbar(palette: Palette, most: float, place: PanelPlace) -> dict[str, Any]:
    return {
        "orientation": "h",
        "thickness": 8,
        "outlinewidth": 0,
        "len": place.across[1] - place.across[0],
        "x": place.across[0],
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "ypad": 12,
        "tickvals": [-most, 0, most],
        "ticktext": [
            say("{weight} first more", weight=format_signed(-most, 1)),
            "0",
            say("second more {weight}", weight=format_signed(most, 1, plus=True)),
        ],
        "tickfont": {"size": 12, "color": palette.soft},
    }


def _comparison_layout(palette: Palette, panels: float, below: int) -> dict[str, Any]:
    return base_layout(palette, panels + ROOM_ABOVE + below, l=96, r=16, t=ROOM_ABOVE, b=below) | {
        "shapes": [],
        "annotations": [],
    }


# Flow: many heads as one map, by means, rollout or attention flow.


FlowKind = Literal["rollout", "attention flow", "mean of heads", "mean of layers", "mean of all"]
FLOW_KINDS: tuple[FlowKind, ...] = get_args(FlowKind)
FLOW_TITLES: dict[FlowKind, tuple[str, str]] = {
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
"""Titles for plain weights, and for weights multiplied by the norms of the values."""


def plot_attention_flow(
    flow: AttentionMap,
    which: FlowKind,
    layer: int,
    head: int,
    *,
    weighted: bool = False,
    model: str = "",
    look: Look | None = None,
    rows: RowLabel = "predicted",
    pinned: tuple[int | None, int | None] = (None, None),
    top: float | None = None,
) -> go.Figure:
    """A map whose averaged axes have length 1; layer and head (from 0) are of the map it was made from.

    `weighted` says in the title that weights were multiplied by the norms of the values; `pinned` is (query, key).
    The scale of the colours ends at `top`, or where the weights do.
    """
    weights = select_flow_weights(flow, layer, head)
    grid = WeightGrid(
        weights,
        flow.mask,
        flow.rows(rows),
        flow.key_tokens,
        say(FLOW_TITLES[which][weighted], kind=say(KIND_NAMES[flow.kind]), layer=layer + 1, head=head + 1),
        top=top or _compute_colour_scale_maximum(weights),  # many heads as one: no weight comes near 1
    )
    return plot_weight_grid(grid, look or Look(), model=model, pinned=pinned[0], pinned_key=pinned[1])


def plot_cumulative_flow_by_layer(
    flows: Sequence[AttentionMap], which: FlowKind, head: int, **options: Any
) -> tuple[go.Figure, ...]:
    """The pictures of :func:`plot_attention_flow` through layer 1, layer 2 and on, one a flow, on one scale."""
    top = max(_compute_colour_scale_maximum(select_flow_weights(flow, layer, head)) for layer, flow in enumerate(flows))
    return tuple(plot_attention_flow(flow, which, layer, head, top=top, **options) for layer, flow in enumerate(flows))


def _compute_colour_scale_maximum(weights: np.ndarray) -> float:
    """The tenth at or above the largest weight."""
    return float(np.ceil(weights.max(initial=0.1) * 10) / 10)


def select_flow_weights(flow: AttentionMap, layer: int, head: int) -> np.ndarray:
    """(Q, K) of a map whose averaged axes have length 1; layer and head (from 0) are of the map it was made from."""
    return flow.weights[min(layer, flow.layers - 1), min(head, flow.heads - 1)]


def describe_strongest_flow_link(flow: AttentionMap, layer: int, head: int, rows: RowLabel) -> str:
    """The strongest link of the picture."""
    weights = select_flow_weights(flow, layer, head)
    found = find_strongest_weight(weights)
    link = {"query": quote_token(flow.rows(rows)[found.query]), "key": quote_token(flow.key_tokens[found.key])}
    if found.ties > 1:
        return say(
            "{count} of {cells} cells tie at the greatest value, {weight:.2f}; the first is {query} → {key}.",
            count=found.ties,
            cells=int(flow.mask.sum()),
            weight=found.weight,
            **link,
        )
    return say("The strongest link is {query} → {key}, {weight:.2f}.", weight=found.weight, **link)


# All three attentions of a layer as one matrix over source and target, after Tensor2Tensor's visualization.


def plot_joint_attention(
    joint: JointAttention,
    layer: int,
    head: int | None,
    *,
    model: str = "",
    look: Look | None = None,
    rows: RowLabel = "predicted",
    pinned: tuple[int | None, int | None] = (None, None),
) -> go.Figure:
    """One head of a layer (from 0), or the mean over its heads; lines stand where source and target meet.

    `pinned` is (row, column) of the matrix.
    """
    grid = make_joint_grid(joint, layer, head, rows)
    return plot_weight_grid(grid, look or Look(), model=model, pinned=pinned[0], pinned_key=pinned[1])


def make_joint_grid(joint: JointAttention, layer: int, head: int | None, rows: RowLabel) -> WeightGrid:
    """The grid of weights that a picture of all three attentions draws."""
    title = (
        say("All three attentions · layer {layer}, mean of all heads", layer=layer + 1)
        if head is None
        else say("All three attentions · layer {layer}, head {head}", layer=layer + 1, head=head + 1)
    )
    return WeightGrid(
        joint.weights,
        joint.mask,
        joint.predicted_tokens if rows == "predicted" else joint.row_tokens,
        joint.column_tokens,
        title,
        (joint.source_length,),
    )


def describe_joint_strongest_links(joint: JointAttention, rows: RowLabel) -> str:
    """The strongest link of each of the three attentions."""
    split, names = joint.source_length, joint.predicted_tokens if rows == "predicted" else joint.row_tokens
    found: dict[str, str | float] = {}
    ties: list[str] = []
    for kind, first_row, first_column, block in (
        ("encoder", 0, 0, joint.weights[:split, :split]),
        ("cross", split, 0, joint.weights[split:, :split]),
        ("decoder", split, split, joint.weights[split:, split:]),
    ):
        best = find_strongest_weight(block)
        key = joint.column_tokens[first_column + best.key]
        link = f"{quote_token(names[first_row + best.query])} → {quote_token(key)}"
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
    return join_sentences(
        links, say("Links that tie as the strongest, of which the first is named: {ties}.", ties=join_items(ties))
    )
