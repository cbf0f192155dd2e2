"""Components that draw charts in the browser: plotly figures, curves, the beam tree, the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from attenscope.analysis.attention_steps import AttentionPipeline
from attenscope.language import say, to_say
from attenscope.viz.figures.curves import Curves, Mark
from attenscope.viz.figures.figure_style import LONGEST_LABEL, Look, readable_token, shorten_token
from attenscope.viz.figures.heatmap import negative_colour
from attenscope.viz.figures.presentation_sizes import enlarge_fonts_for_projection
from attenscope.viz.web.component_scripts import create_mount_function, pack_arrays
from attenscope.viz.web.page_components import is_presenting

if TYPE_CHECKING:
    from attenscope.decoding.beam import BeamNode, BeamTree

# Plotly charts. Streamlit reports no clicks on heatmap cells and mounts a chart anew, so that it blinks, at every
# change; chart.js mends both.


_mount_chart = create_mount_function("chart")
MIN_GROWING_HEIGHT = 200
"""Pixels from which on a figure takes the height that a scene has for it, as in shared/picture.js."""

ChartNode = tuple[int, int, str]
"""Row, column and name of a point that can be chosen."""


def draw_chart(
    figure: go.Figure,
    alt: str,
    *,
    key: str,
    on_cell: Callable[[int, int], None],
    nodes: Sequence[ChartNode] = (),
) -> None:
    """Show `figure`, described to screen readers by `alt`; `on_cell(row, column)` hears of a click on a cell.

    The arrow keys go through the `nodes`, and Enter chooses one as a click does.
    """

    def handle_click() -> None:
        cell = st.session_state[f"{key}-clicks"].cell
        on_cell(round(cell["row"]), round(cell["column"]))

    frame = f"{key}-frame"
    with st.container(key=frame):
        named = [{"row": row, "column": column, "name": name} for row, column, name in nodes]
        _mount_chart(
            key=f"{key}-clicks", data={"frame": frame, "label": alt, "nodes": named}, on_cell_change=handle_click
        )
        draw_plotly_figure(figure, alt, key=key)


def draw_plotly_figure(figure: go.Figure, alt: str, *, key: str) -> None:
    """Show `figure`, described to screen readers by `alt`; on the whole screen as high as there is room."""
    if is_presenting():
        figure = enlarge_fonts_for_projection(figure)
    grows = is_presenting() and (figure.layout.height or MIN_GROWING_HEIGHT) >= MIN_GROWING_HEIGHT
    with st.container(key=f"{key}-grows") if grows else nullcontext():
        height: Literal["stretch", "content"] = "stretch" if grows else "content"
        st.plotly_chart(figure, theme=None, height=height, key=key, alt=alt, config={"displayModeBar": False})


# Lines, areas and dots over two axes: hover or arrow keys read a point, a click chooses it.
#
# A plotly chart is mounted anew at every change and takes 50 to 60 ms for it, two of them twice that; these curves
# follow a control in a few. They have no zoom: a figure that needs one is plotly's.


_mount_curves = create_mount_function("curves")


CurvesBox = tuple[float, float, float, float]
"""Left, right, low and high of a part of the plot, in the coordinates of its axes."""


def draw_curves(
    shown: Curves, *, key: str, on_point: Callable[[int, int], None], on_box: Callable[[CurvesBox], None] | None = None
) -> None:
    """Draw `shown`; `on_point(mark, point)` hears which point of which mark was chosen, both counted from 0.

    With `on_box`, a box can be drawn with the mouse, and `on_box(box)` hears of it.
    """

    def handle_pick() -> None:
        point = st.session_state[key].point
        on_point(int(point["mark"]), int(point["at"]))

    def handle_brush() -> None:
        left, right, low, high = (float(end) for end in st.session_state[key].box)
        if on_box:
            on_box((left, right, low, high))

    data = encode_curves(shown, brush=on_box is not None)
    _mount_curves(key=key, data=data, on_point_change=handle_pick, on_box_change=handle_brush)


def encode_curves(shown: Curves, brush: bool = False) -> bytes:
    """What curves.js reads: the figure without numbers, then points and values of every mark as float32."""
    header = {
        "title": shown.title,
        "legend": list(shown.legend),
        "x": asdict(shown.x),
        "y": asdict(shown.y),
        "notes": [asdict(note) for note in shown.notes],
        "marks": [_build_curve_mark_data(mark) for mark in shown.marks],
        "height": shown.height,
        "left": shown.left,
        "square": shown.square,
        "brush": brush,
        "soft": shown.palette.soft,
        "line": shown.palette.line,
        "background": shown.palette.background,
    }
    arrays = [array for mark in shown.marks for array in (mark.points, mark.values) if array is not None]
    return pack_arrays(header, b"".join(np.ascontiguousarray(array, np.dtype("<f4")).tobytes() for array in arrays))


def _build_curve_mark_data(mark: Mark) -> dict[str, Any]:
    columns = 0 if mark.values is None else mark.values.shape[1]
    look = {"kind": mark.kind, "colour": mark.colour, "size": mark.size, "says": mark.says, "names": mark.names}
    return {**look, "count": len(mark.points), "columns": columns}


# A beam search as a tree: one column for each step, the best candidate on top, lines to its continuations.


_mount_beam_tree = create_mount_function("beam_tree")
FATE_NAMES = {
    "alive": to_say("searched on from"),
    "finished": to_say("finished"),
    "pruned": to_say("pruned: given up here"),
}


def draw_beam_tree(
    tree: BeamTree, chosen: tuple[int, ...] = (), *, key: str, on_node: Callable[[int, int], None]
) -> None:
    """Draw every candidate; `chosen` is the way (token ids) to the node the player shows.

    `on_node(place, position)`, both from 0, hears of a node that is clicked, or reached with the arrow keys and chosen
    with Enter.
    """

    def handle_click() -> None:
        node = st.session_state[key].node
        on_node(int(node["row"]), int(node["column"]))

    _mount_beam_tree(key=key, data=beam_tree_data(tree, chosen), on_node_change=handle_click)


def beam_tree_data(tree: BeamTree, chosen: tuple[int, ...] = ()) -> dict[str, Any]:
    """What beam_tree.js reads."""
    ways = [node.token_ids for node in tree.nodes]
    return {
        "label": say("The beam search as a tree"),
        "fates": {fate: say(name) for fate, name in FATE_NAMES.items()},
        "nodes": [_node_data(node, tree) for node in tree.nodes],
        "chosen": ways.index(chosen) if chosen in ways else -1,
    }


def _node_data(node: BeamNode, tree: BeamTree) -> dict[str, Any]:
    return {
        "row": node.place,
        "column": node.position,
        "parent": node.parent,
        "text": shorten_token(node.token, LONGEST_LABEL),
        "name": describe_node(node),
        "note": say(
            "{token}\nlog-probability so far {score:.2f}\n{fate}",
            token=readable_token(node.token),
            score=node.score,
            fate=say(FATE_NAMES[node.fate]),
        ),
        "fate": node.fate,
        "best": tree.is_on_best_path(node),
    }


def describe_node(node: BeamNode) -> str:
    """What a screen reader says of a node; steps and places count from 1."""
    return say(
        "Step {step}, place {place}: {token}, log-probability so far {score:.2f}, {fate}",
        step=node.position + 1,
        place=node.place + 1,
        token=readable_token(node.token),
        score=node.score,
        fate=say(FATE_NAMES[node.fate]),
    )


# The steps of one query of one head: keys, products, scores, scale, mask, softmax, weighted values.


_mount_pipeline = create_mount_function("pipeline")
PIPELINE_STEPS = 7


def draw_attention_pipeline(
    steps: AttentionPipeline, query: str, look: Look, step: int, alt: str, *, key: str, on_step: Callable[[int], None]
) -> None:
    """Draw the steps of one query, named `query`, up to `step` (from 0); `on_step(step)` hears of another one.

    `alt` describes the row to screen readers.
    """
    _mount_pipeline(
        key=key,
        data=encode_attention_pipeline(steps, query, look, step, alt),
        on_step_change=lambda: on_step(int(st.session_state[key].step["step"])),
    )


def encode_attention_pipeline(steps: AttentionPipeline, query: str, look: Look, step: int, alt: str) -> bytes:
    """What pipeline.js reads: tokens, colours and the mask, then float32 arrays in the order of its ARRAYS."""
    keys, width = steps.k.shape
    palette = look.palette
    header = {
        "alt": alt,
        "query": shorten_token(query),
        "tokens": [shorten_token(token, 14) for token in steps.key_tokens],
        "mask": steps.mask.tolist(),
        "keys": keys,
        "width": width,
        "scale": steps.scale,
        "step": step,
        "colours": [negative_colour(palette), palette.background, palette.full],
        "difference": f"{steps.difference:.1g}",
    }
    arrays = (
        steps.q,
        steps.k,
        steps.product,
        steps.dot,
        steps.scores,
        steps.weights,
        steps.weighted_values,
        steps.context,
    )
    return pack_arrays(header, b"".join(np.ascontiguousarray(array, dtype="<f4").tobytes() for array in arrays))
