"""The screen of Explore: all heads of a trace, and the chosen one large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st

from attenscope.analysis.heads import HeadPlace, find_clearest_head
from attenscope.analysis.telling import pick_telling_word, weigh_words
from attenscope.language import say
from attenscope.trace import AttentionTrace, Kind
from attenscope.viz.explore import comparison, views
from attenscope.viz.explore import controls as explore_controls
from attenscope.viz.explore.saving import COLUMN_SHARES
from attenscope.viz.explore.scene import DisplayOptions, Scene, TraceSource
from attenscope.viz.explore.texts import draw_head_claim, draw_order_captions
from attenscope.viz.streamlit_internals import is_history_navigation
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui.address import is_in_address
from attenscope.viz.ui.addresses.pins import PIN, add_pins
from attenscope.viz.ui.addresses.shared import HEAD, KIND, LAYER
from attenscope.viz.ui.words import draw_caption
from attenscope.viz.web.maps import draw_overview

EXPLORE_STYLE = Path(__file__).parent / "explore.css"
"""The style of Explore, added to that of all pages."""


def draw_screen(source: TraceSource) -> None:
    """Draw the overview of all heads and the chosen view of the chosen head, with their controls."""
    with st.container(key="viewbar", horizontal=True, vertical_alignment="center"):
        kind = ui_controls.draw_trace_kind_choice(tuple(source.trace.maps))
        view, comparing = explore_controls.draw_view_choice()
        with st.container(key="menus", horizontal=True, vertical_alignment="center", width="content"):
            views.draw_view_help(view, comparing=comparing)
            display = _choose_known_rows(explore_controls.draw_display_menu(), source.trace)
            menu = st.container(width="content")
    left, right = st.columns(COLUMN_SHARES, gap="large")
    with left:
        scene = _draw_heads(source, kind, display, depends=view not in explore_controls.ALL_HEADS_VIEWS)
        card = st.container()
    with right, st.container(key="head-picture"):
        if view not in explore_controls.ALL_HEADS_VIEWS:
            draw_head_claim(scene)
        try:
            draw = comparison.draw_comparison_view if comparing else views.draw_view
            draw(view, scene, menu)
        except source.view_errors as error:
            draw_caption(say("This view cannot be drawn of this trace: {error}.", error=error))
    with card:  # after the pictures: it may have to run the model
        source.word_card()


def _draw_heads(source: TraceSource, kind: Kind, display: DisplayOptions, *, depends: bool) -> Scene:
    """Draw the overview with the controls that choose a head, and return the scene of that head.

    The tiles are faint where what is shown beside them does not depend on the head.
    """
    maps = source.trace.maps
    with st.container(key="orderbar", horizontal=True, vertical_alignment="center"):
        layer, head = explore_controls.draw_head_field(maps[kind])
        order = explore_controls.draw_order_menu(kind, source)
        if "cross" in maps:
            explore_controls.draw_aligning_head_button(maps["cross"])
    tiles = st.container(key="tiles" if depends else "tiles-of-another-view")
    scene = Scene(source, source.display_tokens(kind, display), layer, head, display)
    with tiles:
        draw_overview(
            source.tiles(scene.attention),
            layer,
            head,
            display.look,
            order.heads,
            source.changed_heads(kind),
            key="overview",
            on_pick=ui_controls.set_layer_and_head,
        )
    source.head_controls(maps[kind], layer, head)
    draw_order_captions(scene, order)
    return scene


def _choose_known_rows(display: DisplayOptions, trace: AttentionTrace) -> DisplayOptions:
    """Name the decoder's rows by the tokens fed in where the trace does not have the tokens predicted."""
    known = all(one.predicted_tokens for kind, one in trace.maps.items() if kind != "encoder")
    return display if known else replace(display, rows="fed")


# The first view of a sentence of which nothing was chosen: its telling word, at the head that shows it.


PICKED_HEAD = "head picked"
"""The session key of the model, the sentence and the head that the page itself has picked last."""

NO_HEAD: HeadPlace = (-1, -1)
"""In its place where the visitor has chosen the head."""


def remember_picked_head(model: str, identity: str, place: HeadPlace) -> None:
    """Remember that the page, and not the visitor, has chosen a head of a sentence."""
    st.session_state[PICKED_HEAD] = model, identity, place


def pick_view(model: str, identity: str, trace: AttentionTrace) -> None:
    """Choose the head and the pin of a sentence where the visitor has chosen none; once for each.

    `identity` is what pins belong to. A head that the visitor has chosen stays with another sentence of the same model,
    and so does all that an address shows.
    """
    before = st.session_state.get(PICKED_HEAD)
    if before and before[:2] == (model, identity):
        return
    in_address = any(is_in_address(one) for one in (LAYER, HEAD))
    if is_history_navigation() and in_address:
        remember_picked_head(model, identity, NO_HEAD)
        return
    place = LAYER.get() - 1, HEAD.get() - 1
    if before is None:
        chosen = in_address or any(one.key in st.session_state for one in (LAYER, HEAD))
    else:
        chosen = before[0] == model and before[2] != place
    remember_picked_head(model, identity, NO_HEAD if chosen else place)
    kind = KIND.get() if KIND.get() in trace.maps else tuple(trace.maps)[-1]
    if kind != "cross":
        if not chosen and (before is None or before[0] != model):
            _put_picked_head(model, identity, find_clearest_head(trace.maps[kind]))
        return
    if PIN.get(of=identity) or (before is None and chosen):
        return
    cross = trace.maps[kind]
    others = set(np.ndindex(*cross.weights.shape[:2])) - {place} if chosen else ()
    telling, words = pick_telling_word(cross, others), weigh_words(cross)
    if telling is None or words is None:
        return
    _put_picked_head(model, identity, (telling.layer, telling.head), chosen=chosen)
    if telling.row is not None:
        add_pins(identity, {"target": words.rows[telling.row].start})
    elif telling.key is not None:
        add_pins(identity, {"source": words.keys[telling.key].start})


def _put_picked_head(model: str, identity: str, place: HeadPlace, *, chosen: bool = False) -> None:
    """Choose a head for the visitor; one that they have `chosen` themselves is not remembered as picked."""
    LAYER.put(place[0] + 1)
    HEAD.put(place[1] + 1)
    remember_picked_head(model, identity, NO_HEAD if chosen else place)
