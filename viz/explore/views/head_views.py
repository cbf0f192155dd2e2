"""The views of the chosen head: one function each, which draws a scene on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.analysis.attention_steps import pipeline
from model.analysis.difference import single_head
from model.language.say import say, sentences, to_say
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
from viz.ui import cache
from viz.ui.addresses.explore import SINGLE_VIEWS, SingleView
from viz.ui.addresses.shared import KIND
from viz.ui.addresses.why import Cell
from viz.ui.captions import caption, plain
from viz.ui.links import follow, open_why_here
from viz.ui.theme import fragment_style

from .. import choices
from ..captions import alt, token_captions
from ..saving import DrawnView, offer
from ..scene import Scene
from ..token_display import special_places
from ..view_texts import VIEW_TEXTS
from . import joint_view, multi_head_views

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from viz.figures.palette import Look

READY: tuple[SingleView, ...] = ("heatmap", "links", "text")
"""Views that are sent to the page together, one of them visible: changing between them needs no rerun."""
READY_UP_TO = 128 * 128
"""Cells of a head: of larger ones only the chosen view is sent."""
NO_TENSORS = to_say(
    "This trace holds no queries, keys, values and scores. Capture it with "
    "capture_attention(model, tensors=['q', 'k', 'v', 'scores', 'masked_scores'])."
)


def show(view: SingleView, scene: Scene, menu: DeltaGenerator) -> None:
    """Draw a view, say in a line what it is and how its tokens are displayed, and put what can be saved into `menu`."""
    ready = READY if view in READY and scene.attention.mask.size <= READY_UP_TO else (view,)
    if len(ready) > 1:
        fragment_style("visible-view", _visible(view, ready))
    for name in ready:
        with st.container(key=f"view-{name}"):
            drawn = DRAW[name](scene)
        if drawn and name == view:
            token_captions(drawn.displays)
            with menu:
                offer(drawn, scene, name)


def _visible(view: SingleView, ready: Sequence[SingleView]) -> str:
    """CSS that shows the chosen view of those on the page from the click on; until a click, `view`."""
    rules = []
    for name in ready:
        switch = f".st-key-view button:nth-of-type({SINGLE_VIEWS.index(name) + 1})[data-selected]"
        page = f'[data-testid="stMainBlockContainer"]:has({switch})'
        own, *others = (f":has(> .st-key-view-{one})" for one in (name, *(one for one in ready if one != name)))
        hidden = f'[data-testid="stLayoutWrapper"]:is({", ".join(others)}) {{ display: none; }}'
        rules += [hidden] if name == view else []
        rules += [f"{page} {hidden}", f'{page} [data-testid="stLayoutWrapper"]{own} {{ display: flex; }}']
    return " ".join(rules)


def question_mark(view: SingleView, *, comparing: bool) -> None:
    """Draw the longer explanation of a view, folded away."""
    with st.popover("?", type="tertiary", key="about"):
        st.markdown(VIEW_TEXTS[view].details)
        if comparing:
            st.markdown(VIEW_TEXTS["compare"].details)


def _heatmap(scene: Scene) -> DrawnView | None:
    grid = head_grid(scene.attention, scene.layer, scene.head, scene.rows)
    alternative = alt(scene)
    options: dict[str, Any] = {
        "model": scene.source.model,
        "pinned": (scene.query, scene.key),
        "numbers": scene.display.numbers,
        "follows": say(KIND_NAMES[scene.kind]),
        "special": special_places(scene.attention, scene.rows),
    }

    def pin(query: int | None, key: int | None) -> None:
        scene.pin(query=query, key=key)

    heatmap(grid, scene.look, alternative, **options, key="heatmap", on_cell=pin)
    line = heatmap_in_words(single_head(scene.attention, scene.layer, scene.head), scene.rows, scene.look.scale)
    caption(line)
    if scene.display.numbers and not room_for_numbers(scene.attention.weights):
        caption(say("There is no room for numbers in so many cells: hover over one to read it."))

    _why_here(scene)

    def parts(look: Look) -> list[Part]:
        data = packed_heatmap(grid, look, alternative, **options, pins=True)
        return [Component("heatmap", data, follows=True), Words(line)]

    return DrawnView(parts, follows=True, displays={KIND.label(scene.kind): scene.tokens})


def _why_here(scene: Scene) -> None:
    """Draw the way from a pinned cell of a run to the parts of its score."""
    follow()
    query, key, run = scene.captured_query, scene.captured_key, scene.source.run
    if run and query is not None and key is not None and cache.live(run.model).can("parts"):
        cell = Cell(scene.kind, scene.layer, scene.head, query, key)
        go = lambda: open_why_here(scene.source.identity, cell)  # noqa: E731
        st.button(say("Why here?"), key="why-here", type="tertiary", on_click=go)


def _links(scene: Scene) -> DrawnView | None:
    layout, least = choices.lines(scene)
    beside = choices.beside(scene.attention.heads, scene.head)
    lines = Lines(scene.layer, scene.head, beside, least, layout == "horizontal", not scene.is_first_side)
    options = scene.rows, (scene.query, scene.key), alt(scene)
    heard: dict[str, Any] = {"on_pin": _pin(scene), "on_beside": choices.draw_beside}
    links(scene.attention, lines, scene.look, *options, key=scene.element_key("links"), **heard)
    caption(say(VIEW_TEXTS["links"].line))
    return _component("links", lambda look: packed_links(scene.attention, lines, look, *options), scene)


def _text(scene: Scene) -> DrawnView | None:
    head, options = (scene.attention, scene.layer, scene.head), (scene.rows, (scene.query, scene.key), alt(scene))
    text(*head, scene.look, *options, key=scene.element_key("text"), on_pin=_pin(scene), fixed=not scene.is_first_side)
    caption(say(VIEW_TEXTS["text"].line))
    return _component("text", lambda look: packed_text(*head, look, *options), scene)


def _pipeline(scene: Scene) -> DrawnView | None:
    attention = scene.source.whole_trace.maps[scene.kind]
    if "q" not in attention.tensors:
        st.info(plain(say(NO_TENSORS)))
        return None
    query = choices.query(scene)
    try:
        steps = pipeline(attention, scene.layer, scene.head, query)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    token = attention.rows(scene.rows)[query]
    step = choices.step(STEPS)
    alternative = sentences(say("{title}.", title=scene.title), row_of_weights(token, steps.key_tokens, steps.weights))
    pipeline_steps(
        steps, token, scene.look, step, alternative, key=scene.element_key("pipeline"), on_step=choices.go_to_step
    )
    differ = say("Computed again here, they differ by at most {difference:.1g}.", difference=float(steps.difference))
    caption(sentences(say(VIEW_TEXTS["pipeline"].line), differ))
    return _component("pipeline", lambda look: packed_pipeline(steps, token, look, step, alternative))


def _component(name: SingleView, packed: Callable[[Look], bytes], scene: Scene | None = None) -> DrawnView:
    """A view that is one component; one of the displayed tokens of `scene` follows the heads of an overview."""
    follows = scene is not None

    def parts(look: Look) -> list[Part]:
        return [Component(name, packed(look), follows=follows), Words(say(VIEW_TEXTS[name].line))]

    return DrawnView(parts, follows=follows, displays={KIND.label(scene.kind): scene.tokens} if scene else {})


def _pin(scene: Scene) -> Callable[[str, int], None]:
    return lambda side, index: scene.pin(query=index) if side == "query" else scene.pin(key=index)


DRAW: dict[SingleView, Callable[[Scene], DrawnView | None]] = {
    "heatmap": _heatmap,
    "links": _links,
    "text": _text,
    "pipeline": _pipeline,
    "joint": joint_view.joint,
    "flow": multi_head_views.flow,
    "layers": multi_head_views.layers,
}
