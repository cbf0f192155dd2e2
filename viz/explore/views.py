"""The views of the chosen head: one function each, from a scene to what stands on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from model.joint import joint
from model.pipeline import pipeline
from model.rollout import EXPLAINED as ROLLOUT
from model.statistics import summary
from model.trace import TraceError
from viz import cache
from viz.components.chart import chart
from viz.components.heatmap import heatmap
from viz.components.links import Lines, links
from viz.components.links import packed as packed_links
from viz.components.pipeline import STEPS, pipeline_steps
from viz.components.pipeline import packed as packed_pipeline
from viz.components.standalone import page
from viz.components.text import packed as packed_text
from viz.components.text import text
from viz.figures.flow import flow_heatmap
from viz.figures.heatmap import head_grid, room_for_numbers, weight_grid
from viz.figures.joint import joint_heatmap
from viz.figures.labels import KIND_NAMES
from viz.figures.lens import lens_grid, lens_ranks
from viz.figures.words import head_in_words, heatmap_in_words, lens_in_words
from viz.remarks import caption, plain

from . import choices, comparison
from .about import ABOUT, View
from .arranged import arrange
from .flow import flow_of
from .saving import Shown, save
from .scene import Scene

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from streamlit.delta_generator import DeltaGenerator


def show(view: View, scene: Scene, menu: DeltaGenerator) -> None:
    """Draw a view, say in a line what it is, and put what can be saved of it into `menu`."""
    shown = DRAW[view](scene)
    if shown:
        with menu:
            save(shown, scene, view)


def question_mark(view: View) -> None:
    """The longer explanation of a view, folded away."""
    with st.popover("?", type="tertiary", key="about"):
        st.markdown(ABOUT[view].more)


def _heatmap(scene: Scene) -> Shown | None:
    grid = head_grid(scene.attention, scene.layer, scene.head, scene.rows)
    strongest = head_in_words(scene.attention, scene.layer, scene.head, scene.rows)
    alt = f"{summary(scene.arranged.captured, scene.layer, scene.head)} {strongest}"
    heatmap(
        grid,
        scene.look,
        alt,
        model=scene.model.name,
        pinned=(scene.query, scene.key),
        numbers=scene.display.numbers,
        follows=KIND_NAMES[scene.kind],
        key="heatmap",
        on_cell=lambda query, key: scene.pin(query=query, key=key),
    )
    caption(heatmap_in_words(scene.attention, scene.rows, scene.look.scale))
    if scene.display.numbers and not room_for_numbers(scene.attention.weights):
        caption("There is no room for numbers in so many cells: hover over one to read it.")

    def saved() -> str:
        figure = weight_grid(
            grid,
            scene.look,
            model=scene.model.name,
            pinned=scene.query,
            pinned_key=scene.key,
            numbers=scene.display.numbers,
        )
        return figure.to_html(include_plotlyjs=True)

    return Shown("heatmap", saved)


def _links(scene: Scene) -> Shown | None:
    with st.container(key="linksbar", horizontal=True, vertical_alignment="center"):
        layout = choices.layout()
        least = choices.threshold()
    beside = choices.beside(scene.attention.heads, scene.head)
    lines = Lines(scene.layer, scene.head, beside, least, layout == "horizontal")
    drawn = scene.attention, lines, scene.look, scene.rows, (scene.query, scene.key)
    links(*drawn, key="links", on_pin=_pin(scene), on_beside=choices.draw_beside)
    caption(ABOUT["links"].line)
    return Shown("links", lambda: page("links", packed_links(*drawn), scene.title, scene.look.palette))


def _text(scene: Scene) -> Shown | None:
    drawn = scene.attention, scene.layer, scene.head, scene.look, scene.rows, (scene.query, scene.key)
    text(*drawn, key="text", on_pin=_pin(scene))
    caption(ABOUT["text"].line)
    return Shown("text", lambda: page("text", packed_text(*drawn), scene.title, scene.look.palette))


def _pipeline(scene: Scene) -> Shown | None:
    query = choices.query(scene)
    trace = cache.whole_trace(*scene.reading)
    captured = trace.maps[scene.kind]
    try:
        steps = pipeline(captured, scene.layer, scene.head, query)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    token = captured.rows(scene.rows)[query]
    step = choices.step(STEPS)
    pipeline_steps(steps, token, scene.look, step, key="pipeline", on_step=choices.go_to_step)
    caption(f"{ABOUT['pipeline'].line} Computed again here, they differ by at most {steps.difference:.1g}.")
    data = packed_pipeline(steps, token, scene.look, step)
    return Shown("pipeline", lambda: page("pipeline", data, scene.title, scene.look.palette))


def _joint(scene: Scene) -> Shown | None:
    head = None if choices.mean_of_heads() else scene.head
    try:
        found = joint(scene.result.trace, scene.layer, head)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    figure = joint_heatmap(found, scene.layer, head, model=scene.model.name, look=scene.look, rows=scene.rows)
    chart(figure, ABOUT["joint"].line, key="joint", on_cell=lambda row, column: None)
    caption(ABOUT["joint"].line)
    return _chart("joint", figure)


def _flow(scene: Scene) -> Shown | None:
    which, weighted = choices.flow()
    trace = cache.whole_trace(*scene.reading) if weighted else scene.result.trace
    try:
        found = flow_of(trace, scene.kind, which, weighted=weighted)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    shown = arrange(found, scene.rows, merge=scene.display.merge, hide=scene.display.hide).attention
    figure = flow_heatmap(
        shown,
        which,
        scene.layer,
        scene.head,
        weighted=weighted,
        model=scene.model.name,
        look=scene.look,
        rows=scene.rows,
        pinned=(scene.query, scene.key),
    )
    chart(figure, ABOUT["flow"].line, key="flow-map", on_cell=lambda query, key: scene.pin(query=query, key=key))
    caption(ROLLOUT if which == "rollout" else ABOUT["flow"].line)
    return _chart("flow-map", figure)


def _layers(scene: Scene) -> Shown | None:
    lens = cache.lens(*scene.reading)
    position = scene.position
    figure = lens_grid(lens, look=scene.look, pinned=position)
    chart(figure, ABOUT["layers"].line, key="lens", on_cell=lambda _, column: scene.pin_position(column))
    caption(ABOUT["layers"].line)
    followed = position or 0
    st.plotly_chart(
        lens_ranks(lens, followed, look=scene.look), theme=None, key="ranks", config={"displayModeBar": False}
    )
    caption(lens_in_words(lens, followed) + ("" if position is not None else " Click a column to follow another."))
    return _chart("lens", figure)


def _chart(key: str, figure: go.Figure) -> Shown:
    return Shown(f"{key}-frame", lambda: figure.to_html(include_plotlyjs=True))


def _pin(scene: Scene) -> Callable[[str, int], None]:
    return lambda side, index: scene.pin(query=index) if side == "query" else scene.pin(key=index)


DRAW: dict[View, Callable[[Scene], Shown | None]] = {
    "heatmap": _heatmap,
    "links": _links,
    "text": _text,
    "pipeline": _pipeline,
    "joint": _joint,
    "flow": _flow,
    "layers": _layers,
    "compare": comparison.draw,
}
