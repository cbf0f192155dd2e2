"""The views of the chosen head: one function each, from a scene to what stands on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.analysis.attention_steps import pipeline
from model.trace import TraceError
from viz.components.heatmap import heatmap
from viz.components.heatmap import packed as packed_heatmap
from viz.components.links import Lines, links
from viz.components.links import packed as packed_links
from viz.components.pipeline import STEPS, pipeline_steps
from viz.components.pipeline import packed as packed_pipeline
from viz.components.text import packed as packed_text
from viz.components.text import text
from viz.export.parts import Component, Part, Words
from viz.figures.heatmap import head_grid, room_for_numbers
from viz.figures.labels import KIND_NAMES
from viz.figures.words import heatmap_in_words, row_of_weights
from viz.ui.captions import caption, plain

from . import choices, comparison, multi_head_views
from .captions import alt
from .saving import Shown, offer
from .scene import Scene
from .token_display import special_places
from .view_texts import ABOUT, VIEWS, View

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from viz.figures.palette import Look

STYLE = Path(__file__).parent / "explore.css"
"""What this page looks like beyond the style of all pages."""


READY: tuple[View, ...] = ("heatmap", "links", "text")
"""Views that stand on the page together, one of them seen: to change between them nobody has to be asked."""
READY_UP_TO = 128 * 128
"""Cells of a head: of larger ones only the chosen view is sent."""


def show(view: View, scene: Scene, menu: DeltaGenerator) -> None:
    """Draw a view, say in a line what it is, and put what can be saved of it into `menu`."""
    ready = READY if view in READY and scene.attention.mask.size <= READY_UP_TO else (view,)
    if len(ready) > 1:
        st.html(f"<style>{_seen(view, ready)}</style>")
    for name in ready:
        with st.container(key=f"view-{name}"):
            shown = DRAW[name](scene)
        if shown and name == view:
            with menu:
                offer(shown, scene, name)


def _seen(view: View, ready: Sequence[View]) -> str:
    """CSS: of the views on the page the chosen one is seen, from the click on; until another one is there, the last."""
    rules = []
    for name in ready:
        switch = f".st-key-view button:nth-of-type({VIEWS.index(name) + 1})[data-selected]"
        chosen = f'[data-testid="stColumn"]:has({switch})'
        own, *others = (f":has(> .st-key-view-{one})" for one in (name, *(one for one in ready if one != name)))
        unseen = f'[data-testid="stLayoutWrapper"]:is({", ".join(others)}) {{ display: none; }}'
        rules += [unseen] if name == view else []
        rules += [f"{chosen} {unseen}", f'{chosen} [data-testid="stLayoutWrapper"]{own} {{ display: flex; }}']
    return " ".join(rules)


def question_mark(view: View) -> None:
    """The longer explanation of a view, folded away."""
    with st.popover("?", type="tertiary", key="about"):
        st.markdown(ABOUT[view].more)


def _heatmap(scene: Scene) -> Shown | None:
    grid = head_grid(scene.attention, scene.layer, scene.head, scene.rows)
    told = alt(scene)
    drawn: dict[str, Any] = {
        "model": scene.model.name,
        "pinned": (scene.query, scene.key),
        "numbers": scene.display.numbers,
        "follows": KIND_NAMES[scene.kind],
        "special": special_places(scene.attention, scene.rows),
    }
    heatmap(grid, scene.look, told, **drawn, key="heatmap", on_cell=lambda query, key: scene.pin(query=query, key=key))
    says = heatmap_in_words(scene.attention, scene.rows, scene.look.scale)
    caption(says)
    if scene.display.numbers and not room_for_numbers(scene.attention.weights):
        caption("There is no room for numbers in so many cells: hover over one to read it.")

    def parts(look: Look) -> list[Part]:
        data = packed_heatmap(grid, look, told, **drawn, pins=True)
        return [Component("heatmap", data, follows=True), Words(says)]

    return Shown(parts, follows=True)


def _links(scene: Scene) -> Shown | None:
    with st.container(key="linksbar", horizontal=True, vertical_alignment="center"):
        layout = choices.layout()
        least = choices.threshold()
    beside = choices.beside(scene.attention.heads, scene.head)
    lines = Lines(scene.layer, scene.head, beside, least, layout == "horizontal")
    drawn = scene.rows, (scene.query, scene.key), alt(scene)
    links(scene.attention, lines, scene.look, *drawn, key="links", on_pin=_pin(scene), on_beside=choices.draw_beside)
    caption(ABOUT["links"].line)
    return _component("links", lambda look: packed_links(scene.attention, lines, look, *drawn), follows=True)


def _text(scene: Scene) -> Shown | None:
    head, drawn = (scene.attention, scene.layer, scene.head), (scene.rows, (scene.query, scene.key), alt(scene))
    text(*head, scene.look, *drawn, key="text", on_pin=_pin(scene))
    caption(ABOUT["text"].line)
    return _component("text", lambda look: packed_text(*head, look, *drawn), follows=True)


def _pipeline(scene: Scene) -> Shown | None:
    query = choices.query(scene)
    captured = scene.whole_trace.maps[scene.kind]
    try:
        steps = pipeline(captured, scene.layer, scene.head, query)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    token = captured.rows(scene.rows)[query]
    step = choices.step(STEPS)
    told = f"{scene.title}. {row_of_weights(token, steps.key_tokens, steps.weights)}"
    pipeline_steps(steps, token, scene.look, step, told, key="pipeline", on_step=choices.go_to_step)
    caption(f"{ABOUT['pipeline'].line} Computed again here, they differ by at most {steps.difference:.1g}.")
    return _component("pipeline", lambda look: packed_pipeline(steps, token, look, step, told), follows=False)


def _component(name: View, packed: Callable[[Look], bytes], *, follows: bool) -> Shown:
    return Shown(
        lambda look: [Component(name, packed(look), follows=follows), Words(ABOUT[name].line)], follows=follows
    )


def _pin(scene: Scene) -> Callable[[str, int], None]:
    return lambda side, index: scene.pin(query=index) if side == "query" else scene.pin(key=index)


DRAW: dict[View, Callable[[Scene], Shown | None]] = {
    "heatmap": _heatmap,
    "links": _links,
    "text": _text,
    "pipeline": _pipeline,
    "joint": multi_head_views.joint,
    "flow": multi_head_views.flow,
    "layers": multi_head_views.layers,
    "compare": comparison.draw,
}
