"""The frame that every page starts with: a checked address, the style, presenter mode, and the header."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from attenscope.hugging_face.media import MediaModel
from attenscope.language import join_sentences, say
from attenscope.viz import visitor_language
from attenscope.viz.export.share_menu import draw_save_controls, unregister_savable_view
from attenscope.viz.talk import attachments, editor, session
from attenscope.viz.traces.session import (
    PASTED_MASK_KEY,
    UPLOADED_MASKS_KEY,
    UploadedFile,
    get_open_trace,
    get_open_training_run,
    get_uploaded_file,
    open_scene_file_and_check_if_lost,
)
from attenscope.viz.traces.upload_store import UploadStoreError
from attenscope.viz.ui import style
from attenscope.viz.ui.address import Parameter, clean_address, record_page_without_address, release_former_sentence
from attenscope.viz.ui.addresses.explore import EXPLORE_FILE
from attenscope.viz.ui.addresses.masks import MASKS_PART
from attenscope.viz.ui.addresses.page_registry import PAGES
from attenscope.viz.ui.addresses.shared import CARRIED_PARAMETERS, HELD_PARAMETERS, SENTENCE
from attenscope.viz.ui.captions import draw_caption, draw_glossary, draw_keyboard_shortcuts
from attenscope.viz.ui.controls import draw_model_list, get_encoder_only_model
from attenscope.viz.web.page_components import (
    draw_copy_and_present_buttons,
    get_scene_file_key,
    get_scene_turn,
    hide_until_ready,
    is_on_stage,
    is_presenting,
    mount_page_presenter,
    track_history,
)

PRESENTED_STYLE = Path(__file__).parent / "talk" / "presented.css"
"""The style of a page that is a scene on the whole screen."""


DrawMenu = Callable[[], None]
"""Draws what a page puts into a menu of the header, once that is open."""
SHARE_MENU = "share"
"""The session key of whether the menu Share is open."""


def _draw_nothing() -> None:
    """Draw nothing into a menu."""


def draw_page_frame(page: str, explain: DrawMenu = _draw_nothing, settings: DrawMenu = _draw_nothing) -> None:
    """Draw the frame of a page; call it before anything else on the page.

    The page may `explain` in a menu of the header how it is read, and have `settings` of its own in another.
    """
    if not st.session_state.get(SHARE_MENU):  # While it is open it keeps what it shows.
        unregister_savable_view()
    too_long: list[Parameter[Any]] = []
    if page in PAGES:
        too_long = clean_address(PAGES[page], CARRIED_PARAMETERS, HELD_PARAMETERS)
        release_former_sentence(PAGES[page], SENTENCE)
    else:
        record_page_without_address(page)
    st.html(style.build_style_element())
    hide_until_ready(page)
    for one in too_long:
        draw_caption(
            say(
                "The link's {name} has more than {longest:,} characters, so it was left out.",
                name=one.name,
                longest=one.longest,
            )
        )
    if is_presenting():
        st.html(PRESENTED_STYLE)
        # A frame shows one scene after another: by its turn the stage knows whose page stands there (studio/frame.js).
        st.html(f"<style>:root {{ --presenting: {get_scene_turn()}; }}</style>")
        if open_scene_file_and_check_if_lost(get_scene_file_key()):
            st.info(say("The file that this scene shows is no longer kept: open the talk with its files again."))
            st.stop()
    else:
        _draw_page_header(page, explain, settings)
    known = PAGES.get(page)
    track_history(
        scrubbed=known.history_ignored_parameter_names if known else (),
        of_sentence=known.sentence_parameter_names if known else (),
    )
    style.watch()


def _draw_page_header(page: str, explain: DrawMenu, settings: DrawMenu) -> None:
    """Draw what a page has besides its view while nobody presents it."""
    session.sync_talk_draft_with_browser(page)
    editor.show_add_view_message()
    shown = page in PAGES and not editor.is_opened_training_shown(page)
    if shown:
        _mount_presenter_with_visitor_file(page)
    with st.container(key="header-actions", horizontal=True, vertical_alignment="center"):
        _draw_explanation_menu(explain)
        if page in PAGES:
            _draw_share_menu(page, presents=shown)
        sign = ":material/settings:"
        gear = st.popover(say("Settings"), icon=sign, type="tertiary", key="settings", on_change="rerun")
        if gear.open:
            with gear:
                settings()
                if shown:
                    draw_model_list()
                visitor_language.draw_visitor_preferences()
    if "present" in st.query_params:
        st.html("<style>:root:not(.presented) [data-testid=stHeader] { visibility: hidden; }</style>")


# The menus of the header. What a closed one holds is not drawn.


@st.fragment
def _draw_explanation_menu(explain: DrawMenu) -> None:
    """Draw the menu that says how the page is read: what the page itself explains, the keys and the glossary."""
    menu = st.popover(say("How to read this"), type="tertiary", key="page-help", on_change="rerun")
    if menu.open:
        with menu:
            explain()
            draw_keyboard_shortcuts()
            draw_glossary()


@st.fragment
def _draw_share_menu(page: str, *, presents: bool) -> None:
    """Draw the menu with all ways to hand the view on: its link, the whole screen, the visitor's talk and files."""
    menu = st.popover(say("Share"), type="tertiary", key=SHARE_MENU, on_change="rerun")
    if menu.open:
        with menu:
            if presents:
                draw_copy_and_present_buttons(key="page-actions")
            if _is_visitor_file_shown(page):
                draw_caption(say("The link opens this page without what you pasted or uploaded: save it as a page."))
            editor.draw_add_view_button(PAGES[page])
            draw_save_controls()


def _is_visitor_file_shown(page: str) -> bool:
    """Whether the page shows what the visitor has handed over, which no address can hold."""
    if page == "masks":
        judged = st.session_state.get(PASTED_MASK_KEY) or st.session_state.get(UPLOADED_MASKS_KEY)
        return MASKS_PART.get() == "judge" and bool(judged)
    if page == "explore":
        return get_open_trace() is not None or _get_shown_upload() is not None
    return page == "training" and get_open_training_run() is not None


def _get_shown_upload() -> UploadedFile | None:
    """The sound or picture that was uploaded, where the model reads it."""
    uploaded = get_uploaded_file()
    shown = uploaded is not None and uploaded.address == EXPLORE_FILE.get()
    return uploaded if shown and isinstance(get_encoder_only_model(), MediaModel) else None


def _mount_presenter_with_visitor_file(page: str) -> None:
    """Let the page be shown alone on the stage, another session, with the visitor's own trace or mask."""
    if page == "masks" and MASKS_PART.get() == "judge":
        mount_page_presenter(attachments.get_stage_key())  # The page hands over what is judged once it has read it.
        return
    opened = get_open_trace() if page == "explore" and not is_on_stage() else None
    uploaded = _get_shown_upload() if page == "explore" and not is_on_stage() else None
    try:
        if opened:
            mount_page_presenter(attachments.share_trace_with_stage(opened))
        else:
            mount_page_presenter(attachments.share_upload_with_stage(uploaded) if uploaded else "")
    except UploadStoreError as error:
        draw_caption(join_sentences(say("It cannot be shown full screen."), str(error)))
