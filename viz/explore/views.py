"""The views of the chosen head: one function for each, which draws a scene on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import streamlit as st

from attenscope.analysis.attention_steps import compute_attention_steps
from attenscope.language import join_sentences, say, to_say
from attenscope.trace import TraceError, select_head
from attenscope.viz.explore import controls, joint_flow_lens_views
from attenscope.viz.explore.controls import FIRST_VIEWS
from attenscope.viz.explore.picture_view import PICTURE_TEXT, draw_picture_view
from attenscope.viz.explore.saving import DrawnView, offer_view_download
from attenscope.viz.explore.texts import (
    WEIGHTS_TEXT,
    ViewText,
    describe_attention_sink,
    describe_chat_role_bands,
    draw_map_preprocessing_captions,
    head_alt_text,
)
from attenscope.viz.explore.view_data import Scene, find_special_tokens
from attenscope.viz.export.parts import Component, Part, Words
from attenscope.viz.figures.figure_style import KIND_NAMES, Look
from attenscope.viz.figures.heatmap import has_room_for_numbers, make_head_grid
from attenscope.viz.figures.text_alternatives import describe_strongest_row_keys, explain_heatmap_reading
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.explore import SingleView
from attenscope.viz.ui.addresses.shared import KIND
from attenscope.viz.ui.addresses.why import AttentionCell
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message
from attenscope.viz.ui.links import open_why_on_score_cell, switch_to_requested_page
from attenscope.viz.ui.style import add_fragment_style
from attenscope.viz.web.charts import PIPELINE_STEPS, draw_attention_pipeline, encode_attention_pipeline
from attenscope.viz.web.maps import LinkOptions, draw_attention_links, encode_attention_links, encode_heatmap, heatmap
from attenscope.viz.web.text_components import draw_shaded_text, encode_shaded_text

PRELOADED_VIEWS: tuple[SingleView, ...] = ("heatmap", "links")
"""Views that are sent to the page together, one of them visible: changing between them needs no rerun."""
MAX_PRELOADED_CELLS = 128 * 128
"""Cells of a head beyond which only the chosen view is sent."""
NO_TENSORS_TEXT = to_say(
    "This trace holds no queries, keys, values and scores. Capture it with "
    "capture_attention(model, tensors=['q', 'k', 'v', 'scores', 'masked_scores'])."
)


def draw_view(view: SingleView, scene: Scene) -> None:
    """Draw a view, say in a line what it is and how its tokens are displayed, and let it be saved."""
    ready = PRELOADED_VIEWS if view in PRELOADED_VIEWS and scene.attention.mask.size <= MAX_PRELOADED_CELLS else (view,)
    if len(ready) > 1:
        add_fragment_style("visible-view", _visible_view_css(view, ready))
    for name in ready:
        with st.container(key=f"view-{name}"):
            drawn = VIEWS[name].draw(scene)
        if drawn and name == view:
            draw_map_preprocessing_captions(drawn.displays)
            offer_view_download(drawn, scene, name)


def _visible_view_css(view: SingleView, ready: Sequence[SingleView]) -> str:
    """CSS that shows the chosen view of those on the page from the click on; until a click, `view`."""
    rules = []
    for name in ready:
        switch = f".st-key-view button:nth-of-type({FIRST_VIEWS.index(name) + 1})[data-selected]"
        page = f'[data-testid="stMainBlockContainer"]:has({switch})'
        own, *others = (f":has(> .st-key-view-{one})" for one in (name, *(one for one in ready if one != name)))
        hidden = f'[data-testid="stLayoutWrapper"]:is({", ".join(others)}) {{ display: none; }}'
        rules += [hidden] if name == view else []
        rules += [f"{page} {hidden}", f'{page} [data-testid="stLayoutWrapper"]{own} {{ display: flex; }}']
    return " ".join(rules)


HEATMAP_TEXT = ViewText(
    to_say("One head: each row is a query, each column a key, each cell the weight between them."),
    (
        to_say(
            "Read a row from left to right: these are the shares of its attention that one token gives to all "
            "others. Click a cell to pin its pair of tokens in every view; click it again to let go."
        ),
        *WEIGHTS_TEXT,
    ),
)


def _draw_heatmap(scene: Scene) -> DrawnView | None:
    grid = make_head_grid(scene.attention, scene.layer, scene.head, scene.rows)
    alternative = head_alt_text(scene)
    options: dict[str, Any] = {
        "model": scene.source.model,
        "pinned": (scene.query, scene.key),
        "numbers": scene.display.numbers,
        "follows": say(KIND_NAMES[scene.kind]),
        "special": find_special_tokens(scene.attention, scene.rows),
        "roles": scene.roles,
    }

    def pin(query: int | None, key: int | None) -> None:
        scene.pin(query=query, key=key)

    heatmap(grid, scene.look, alternative, **options, key="heatmap", on_cell=pin)
    line = explain_heatmap_reading(
        select_head(scene.attention, scene.layer, scene.head),
        scene.rows,
        scene.look.scale,
        in_words=scene.tokens.merged,
        hides_keys=scene.tokens.hides_keys,
        hides_first=scene.tokens.hides_first,
        whole_sums=scene.tokens.sum_whole_rows(scene.layer, scene.head),
    )
    line = join_sentences(line, describe_chat_role_bands(scene.roles), describe_attention_sink(scene))
    draw_caption(line)
    if scene.display.numbers and not has_room_for_numbers(scene.attention.weights):
        draw_caption(say("There is no room for numbers in so many cells: hover over one to read it."))

    _draw_explain_pinned_score_button(scene)

    def build_parts(look: Look) -> list[Part]:
        data = encode_heatmap(grid, look, alternative, **options, pins=True)
        return [Component("heatmap", data, follows=True), Words(line)]

    return DrawnView(build_parts, follows=True, displays={KIND.label(scene.kind): scene.tokens})


def _draw_explain_pinned_score_button(scene: Scene) -> None:
    """Draw a button that opens Why on the score of the pinned cell of a run."""
    switch_to_requested_page()
    query, key, run = scene.captured_query, scene.captured_key, scene.source.run
    if run and query is not None and key is not None and cache.load_runnable_model(run.model).can("parts"):
        cell = AttentionCell(scene.kind, scene.layer, scene.head, query, key)
        go = lambda: open_why_on_score_cell(scene.source.identity, cell)  # noqa: E731
        st.button(say("Why here?"), key="why-here", type="tertiary", on_click=go)


LINKS_TEXT = ViewText(
    to_say(
        "A line from each query to the keys it attends to: the larger the weight, the stronger and thicker the line."
    ),
    (
        to_say(
            "Hover over a token to see only its own lines, and the weight of each. Click to pin it; pin a token on "
            "both sides to see the one line between them. Until a least weight is chosen, each row has the line "
            "of its strongest key alone; masked pairs never have one. Add heads of the same layer to compare them "
            "by colour."
        ),
        *WEIGHTS_TEXT,
    ),
)


def _draw_attention_links_view(scene: Scene) -> DrawnView | None:
    layout, least = controls.draw_links_controls(scene)
    beside = controls.get_heads_drawn_beside(scene.attention.heads, scene.head)
    lines = LinkOptions(scene.layer, scene.head, beside, least, layout == "horizontal", not scene.is_first_side)
    options = scene.rows, (scene.query, scene.key), head_alt_text(scene)
    heard: dict[str, Any] = {"on_pin": _pin_callback(scene), "on_beside": controls.set_heads_drawn_beside}
    draw_attention_links(scene.attention, lines, scene.look, *options, key=scene.element_key("links"), **heard)
    draw_caption(say(LINKS_TEXT.line))
    return _build_component_view(
        "links", lambda look: encode_attention_links(scene.attention, lines, look, *options), scene
    )


SHADED_TEXT = ViewText(
    to_say(
        "Both texts as one reads them: hover over a token, and the other side is shaded by the weights between them."
    ),
    (
        to_say(
            "Hovering over a token on the attending side shades a **row** of the matrix, which sums to 1 with the "
            "special tokens: what the token attends to. Hovering on the other side shades a **column**, which may "
            "have any sum: which tokens attend to it."
        ),
        *WEIGHTS_TEXT,
    ),
)


def _draw_shaded_text_view(scene: Scene) -> DrawnView | None:
    head, options = (
        (scene.attention, scene.layer, scene.head),
        (scene.rows, (scene.query, scene.key), head_alt_text(scene)),
    )
    alone = scene.trace.cross is None
    draw_shaded_text(
        *head,
        scene.look,
        *options,
        key=scene.element_key("text"),
        on_pin=_pin_callback(scene),
        fixed=not scene.is_first_side,
        alone=alone,
    )
    draw_caption(say(SHADED_TEXT.line))
    return _build_component_view("text", lambda look: encode_shaded_text(*head, look, *options, alone=alone), scene)


PIPELINE_TEXT = ViewText(
    to_say("How one row of this head is computed, a step at a time, with the model's own numbers."),
    (
        to_say(
            "The row is that of the pinned token. Go on with the buttons or the arrow keys; hover over a key to "
            "read its numbers. Colour of a cell is sign and size of one number, within its column. Every step is "
            "computed again from the one before and held against what the model really did."
        ),
        *WEIGHTS_TEXT,
        to_say("The head passes on {passed}, which the output projection then mixes with the other heads."),
    ),
    {
        "passed": r"$\sum_k A_{qk} v_k$",
    },
)


def _draw_attention_computation_steps(scene: Scene) -> DrawnView | None:
    attention = scene.source.whole_trace.maps[scene.kind]
    if "q" not in attention.tensors:
        st.info(escape_markdown(say(NO_TENSORS_TEXT)))
        return None
    query = controls.draw_query_choice(scene)
    try:
        steps = compute_attention_steps(attention, scene.layer, scene.head, query)
    except TraceError as error:
        st.info(escape_message(str(error)))
        return None
    token = attention.rows(scene.rows)[query]
    step = controls.get_pipeline_step(PIPELINE_STEPS)
    alternative = join_sentences(
        say("{title}.", title=scene.title), describe_strongest_row_keys(token, steps.key_tokens, steps.weights)
    )
    draw_attention_pipeline(
        steps,
        token,
        scene.look,
        step,
        alternative,
        key=scene.element_key("pipeline"),
        on_step=controls.set_pipeline_step,
    )
    differ = say("Computed again here, they differ by at most {difference:.1g}.", difference=float(steps.difference))
    draw_caption(join_sentences(say(PIPELINE_TEXT.line), differ))
    return _build_component_view(
        "pipeline", lambda look: encode_attention_pipeline(steps, token, look, step, alternative)
    )


def _build_component_view(name: SingleView, packed: Callable[[Look], bytes], scene: Scene | None = None) -> DrawnView:
    """Build a view that is one component; given `scene`, it shows its displayed tokens and can follow the overview."""
    follows = scene is not None

    def build_parts(look: Look) -> list[Part]:
        return [Component(name, packed(look), follows=follows), Words(say(VIEWS[name].text.line))]

    return DrawnView(build_parts, follows=follows, displays={KIND.label(scene.kind): scene.tokens} if scene else {})


def _pin_callback(scene: Scene) -> Callable[[str, int], None]:
    return lambda side, index: scene.pin(query=index) if side == "query" else scene.pin(key=index)


class View(NamedTuple):
    """A view of the chosen head, or of many."""

    draw: Callable[[Scene], DrawnView | None]
    text: ViewText


VIEWS: dict[SingleView, View] = {
    "heatmap": View(_draw_heatmap, HEATMAP_TEXT),
    "links": View(_draw_attention_links_view, LINKS_TEXT),
    "text": View(_draw_shaded_text_view, SHADED_TEXT),
    "pipeline": View(_draw_attention_computation_steps, PIPELINE_TEXT),
    "joint": View(joint_flow_lens_views.draw_joint_view, joint_flow_lens_views.JOINT_TEXT),
    "flow": View(joint_flow_lens_views.draw_flow_view, joint_flow_lens_views.FLOW_TEXT),
    "layers": View(joint_flow_lens_views.draw_layers_view, joint_flow_lens_views.LAYERS_TEXT),
    "picture": View(draw_picture_view, PICTURE_TEXT),
}
