"""The screen of Explore: its settings, all heads of a trace, and the chosen one large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st

from attenscope.analysis.heads import HeadPlace, find_most_positional_head
from attenscope.analysis.telling_word import WordReading, WordWeights, pick_telling_word, weigh_words
from attenscope.language import say, to_say
from attenscope.trace import AttentionMap, AttentionTrace
from attenscope.untrusted_trace import MAX_FILE_MEGABYTES, OpenError
from attenscope.viz.explore import comparison, views
from attenscope.viz.explore import controls as explore_controls
from attenscope.viz.explore.saving import COLUMN_SHARES
from attenscope.viz.explore.texts import describe_changed_head, draw_head_alignment_captions, draw_head_summary
from attenscope.viz.explore.view_data import DisplayOptions, Scene, TraceSource
from attenscope.viz.export.share_menu import unregister_savable_view
from attenscope.viz.fair_queue import BusyError
from attenscope.viz.figures.text_alternatives import describe_head_overview
from attenscope.viz.streamlit_internals import is_history_navigation
from attenscope.viz.traces.session import OPEN_ERROR_KEY, open_uploaded_trace
from attenscope.viz.traces.upload_store import UploadStoreError
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui.address import is_in_address
from attenscope.viz.ui.addresses.explore import SingleView
from attenscope.viz.ui.addresses.shared import HEAD, KIND, LAYER, PIN, add_pins
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.ui.controls import AUTO_SELECTED_HEAD, NO_HEAD, remember_auto_selected_head
from attenscope.viz.web.maps import TileSwitches, draw_heads_overview
from attenscope.viz.web.text_components import SentenceSide

EXPLORE_STYLE = Path(__file__).parent / "explore.css"
"""The style of Explore, added to that of all pages."""
_UPLOAD_COUNT_KEY = "files-opened"
SWITCHES_TEXT = to_say(
    "To switch a head off or on, press x on its tile, or click it with Alt; Shift and x switches its whole layer."
)


def draw_settings() -> None:
    """Draw what the page has in the settings: how maps are shown, and opening a trace."""
    ui_controls.draw_prompt_template_choice()
    explore_controls.draw_display_settings()
    _draw_trace_upload_expander()


def _draw_trace_upload_expander() -> None:
    """Draw the uploader, folded away; the page says why a file cannot be opened."""
    with st.expander(say("Open a trace"), key="open"):
        st.markdown(say("A trace that `capture.trace.save(…)` or *Share* has written. It stays in your session alone."))
        _draw_self_clearing_trace_uploader()


def _draw_self_clearing_trace_uploader() -> None:
    """Draw an uploader that is empty again after every file: the trace is kept in the session, not the bytes."""
    key = f"trace-file-{st.session_state.get(_UPLOAD_COUNT_KEY, 0)}"

    def open_file() -> None:
        file = st.session_state[key]
        if file is None:
            return
        st.session_state[_UPLOAD_COUNT_KEY] = st.session_state.get(_UPLOAD_COUNT_KEY, 0) + 1
        try:
            open_uploaded_trace(file.name, file.getbuffer())
        except (OpenError, UploadStoreError, BusyError) as error:
            st.session_state[OPEN_ERROR_KEY] = str(error)

    ui_controls.file_uploader(
        say("Trace"), MAX_FILE_MEGABYTES, key=key, label_visibility="collapsed", on_change=open_file
    )


def draw_screen(source: TraceSource) -> None:
    """Draw the overview of all heads and the chosen view of the chosen head, with their controls.

    A view of all heads has the whole width.
    """
    unregister_savable_view()
    maps = source.trace.maps
    with st.container(key="viewbar", horizontal=True, vertical_alignment="center"):
        # Head 1.1 stands in the address too: without a head the page would pick one.
        kind, layer, head = ui_controls.draw_attention_head_selector(
            source.trace.sizes, heads=False, shows_default=True
        )
        view, comparing = explore_controls.draw_view_choice(
            source.impossible_views, of_picture=source.patches is not None
        )
        _draw_experiments_menu(source, maps[kind], view, comparing=comparing)
    display = _fall_back_to_input_tokens(explore_controls.sync_display_options(), source.trace)
    scene = Scene(source, source.display_tokens(kind, display), layer, head, display)
    if view in explore_controls.ALL_HEADS_VIEWS:
        with st.container(key="all-heads-picture"):
            _draw_view_or_comparison(view, scene, comparing=comparing)
        source.word_card()
        return
    left, right = st.columns(COLUMN_SHARES, gap="large")
    with left:
        _draw_heads_overview(scene)
        card = st.container()
    with right, st.container(key="head-picture"):
        draw_head_summary(scene)
        _draw_view_or_comparison(view, scene, comparing=comparing)
    with card:  # after the pictures: it may have to run the model
        source.word_card()


def _draw_experiments_menu(source: TraceSource, attention: AttentionMap, view: SingleView, *, comparing: bool) -> None:
    """Draw the menu of what can be tried; what it chooses is kept elsewhere, so that it is drawn once it is open."""
    layer, head = explore_controls.sync_chosen_head(attention)
    menu = explore_controls.draw_experiments_menu()
    if menu is None:
        return
    with menu:
        if cross := source.trace.cross:
            explore_controls.draw_aligning_head_button(cross, source.identity)
        if source.run:
            explore_controls.draw_strongest_head_button()
        explore_controls.draw_head_order_choice(attention.kind, source)
        explore_controls.draw_head_field(attention, "typed")
        source.draw_trials(attention, layer, head)
        explore_controls.draw_compare_toggle(view, comparing=comparing)


def _draw_view_or_comparison(view: SingleView, scene: Scene, *, comparing: bool) -> None:
    """Draw the view, or two sides of it."""
    try:
        (comparison.draw_comparison_view if comparing else views.draw_view)(view, scene)
    except scene.source.view_errors as error:
        draw_caption(say("This view cannot be drawn of this trace: {error}.", error=error))


def _draw_heads_overview(scene: Scene) -> None:
    """Draw the overview, which opens a head and switches heads off, and what it shows."""
    source, kind = scene.source, scene.kind
    order, switches = explore_controls.sync_head_order(kind, source), source.tile_switches(kind)
    with st.container(key="tiles"):
        draw_heads_overview(
            source.tiles(scene.attention),
            scene.layer,
            scene.head,
            scene.look,
            order.heads,
            source.changed_heads(kind),
            switches,
            key="overview",
            on_pick=ui_controls.set_layer_and_head,
        )
    _draw_overview_captions(scene, order, switches)


def _draw_overview_captions(scene: Scene, order: explore_controls.HeadOrder, switches: TileSwitches | None) -> None:
    """Draw how the tiles are ordered, what switches them, and what changes or alignment say of the chosen head."""
    if switches and switches.pressing:
        with st.container(key="pressing", horizontal=True, vertical_alignment="center"):
            draw_caption(say("Press a tile to switch its head off and on, or L1 for all heads of a layer."))
            explore_controls.draw_stop_head_switching_button()
    else:
        draw_caption(order.text or describe_head_overview(scene.attention))
        if switches and order.strongest:
            explore_controls.draw_switch_off_button(order.strongest)
        if switches:
            with st.container(key="tile-keys"):  # Not in sight where there are no keys.
                draw_caption(say(SWITCHES_TEXT))
    if remark := describe_changed_head(scene.source.changes, scene.kind, scene.layer, scene.head):
        draw_caption(remark)
    if order.measure == "alignment":
        draw_head_alignment_captions(scene)


def _fall_back_to_input_tokens(display: DisplayOptions, trace: AttentionTrace) -> DisplayOptions:
    """Name the decoder's rows by the tokens fed in where the trace does not have the tokens predicted."""
    known = all(one.predicted_tokens for kind, one in trace.maps.items() if kind != "encoder")
    return display if known else replace(display, rows="fed")


# The first view of a sentence of which nothing was chosen: its telling word, at the head that shows it.


PICKED_PINS = "pins picked"
"""The session key of the sentence and its pins that the page itself has picked last."""


def is_head_auto_selected(model: str, identity: str) -> bool:
    """Return whether the page, and not the visitor, has chosen the head that is shown of a sentence."""
    return st.session_state.get(AUTO_SELECTED_HEAD) == (model, identity, (LAYER.get() - 1, HEAD.get() - 1))


def is_default_pinned_row(cross: AttentionMap, position: int) -> bool:
    """Return whether a row begins the word that the page itself pins where nothing was chosen."""
    telling, words = pick_telling_word(cross), weigh_words(cross)
    return (
        telling is not None
        and words is not None
        and telling.row is not None
        and (words.rows[telling.row].start == position)
    )


def select_default_head_and_pin(model: str, identity: str, trace: AttentionTrace) -> None:
    """Choose the head and the pin of a sentence where the visitor has chosen none; once for each.

    `identity` is what pins belong to. A head that the visitor has chosen stays with another sentence of the same model,
    pins that they have set stay with another model, and so does all that an address shows.
    """
    before = st.session_state.get(AUTO_SELECTED_HEAD)
    in_address = any(is_in_address(one) for one in (LAYER, HEAD))
    returned = is_history_navigation()
    if before and before[:2] == (model, identity) and (in_address or not returned):
        return
    if returned and in_address:
        remember_auto_selected_head(model, identity, NO_HEAD)
        return
    place = LAYER.get() - 1, HEAD.get() - 1
    if returned:  # To an entry that was left before anything was chosen.
        PIN.hold(of=identity)
        before, chosen = None, False
    elif before is None:
        chosen = in_address or place != (LAYER.default - 1, HEAD.default - 1)  # A page before may have held those.
    else:
        chosen = before[0] == model and before[2] != place
        _forget_picked_pins(identity, before[0], model)
    remember_auto_selected_head(model, identity, NO_HEAD if chosen else place)
    kind = KIND.get() if KIND.get() in trace.maps else tuple(trace.maps)[-1]
    if kind != "cross":
        if not chosen and (before is None or before[0] != model):
            _select_head_for_visitor(model, identity, find_most_positional_head(trace.maps[kind]))
        return
    if PIN.get(of=identity) or (before is None and chosen):
        return
    cross = trace.maps[kind]
    others = frozenset(np.ndindex(*cross.weights.shape[:2])) - {place} if chosen else frozenset()
    telling, words = pick_telling_word(cross, others), weigh_words(cross)
    if telling is None or words is None:
        return
    _select_head_for_visitor(model, identity, (telling.layer, telling.head), chosen=chosen)
    for side, position in locate_word_of_reading(words, telling).items():
        add_pins(identity, {side: position})
    st.session_state[PICKED_PINS] = identity, PIN.get(of=identity)


def _forget_picked_pins(identity: str, before: str, model: str) -> None:
    """Let go of the pins of a sentence that the page itself has picked for another model than the one that is shown."""
    if before != model and st.session_state.get(PICKED_PINS) == (identity, PIN.get(of=identity)):
        PIN.set({}, of=identity)


def locate_word_of_reading(words: WordWeights, reading: WordReading) -> dict[SentenceSide, int]:
    """Return the captured position of the word that a reading is of, by the side on which that stands."""
    if reading.row is not None:
        return {"target": words.rows[reading.row].start}
    return {} if reading.key is None else {"source": words.keys[reading.key].start}


def _select_head_for_visitor(model: str, identity: str, place: HeadPlace, *, chosen: bool = False) -> None:
    """Choose a head for the visitor; one that they have `chosen` themselves is not remembered as picked."""
    LAYER.put(place[0] + 1)
    HEAD.put(place[1] + 1)
    remember_auto_selected_head(model, identity, NO_HEAD if chosen else place)
