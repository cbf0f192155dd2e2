"""The frame that every page starts with: a checked address, the style, presenter mode, and the header."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from attenscope.language import join_sentences, say
from attenscope.viz import language
from attenscope.viz.talk import attachments, editor, session
from attenscope.viz.traces.session import get_open_trace, open_scene_file
from attenscope.viz.traces.upload_store import UploadStoreError
from attenscope.viz.ui import style
from attenscope.viz.ui.address import clean_address
from attenscope.viz.ui.addresses.masks import MASKS_PART
from attenscope.viz.ui.addresses.pages import PAGES
from attenscope.viz.ui.controls import clear_page_default_model
from attenscope.viz.ui.words import draw_caption, draw_glossary
from attenscope.viz.web.shell import draw_page_menu, hide_until_ready, track_history
from attenscope.viz.web.stage import get_scene_file_key, is_on_stage, is_presenting, mount_page_presenter

PRESENTED_STYLE = Path(__file__).parent / "talk" / "presented.css"
"""The style of a page that is a scene on the whole screen."""


def draw_page_frame(page: str) -> None:
    """Draw the frame of a page; call it before anything else on the page."""
    too_long = clean_address(PAGES[page]) if page in PAGES else []
    clear_page_default_model()
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
        if open_scene_file(get_scene_file_key()):
            st.info(say("The file that this scene shows is no longer kept: open the talk with its files again."))
            st.stop()
    else:
        _draw_page_header(page)
    track_history(PAGES[page].scrubbed_keys if page in PAGES else ())
    style.watch()


def _draw_page_header(page: str) -> None:
    """Draw what a page has besides its view while nobody presents it."""
    session.keep_talk_draft(page)
    shown = page in PAGES and not editor.has_opened_training(page)
    if shown:
        _draw_presenter(page)
    with st.container(key="header-actions", horizontal=True, vertical_alignment="center"):
        language.draw_language_choice()
        if shown:
            with st.popover("?", type="tertiary", key="page-help"):
                draw_page_menu(key="page-actions")
                draw_glossary()
        if page in PAGES:
            editor.draw_add_view_button(PAGES[page])
    if "present" in st.query_params:
        st.html("<style>:root:not(.presented) [data-testid=stHeader] { visibility: hidden; }</style>")


def _draw_presenter(page: str) -> None:
    """Let the page be shown alone on the stage, another session, with the visitor's own trace or mask."""
    if page == "masks" and MASKS_PART.get() == "judge":
        mount_page_presenter(attachments.get_stage_key())  # The page hands over what is judged once it has read it.
        return
    opened = get_open_trace() if page == "explore" and not is_on_stage() else None
    try:
        mount_page_presenter(attachments.share_trace_with_stage(opened) if opened else "")
    except UploadStoreError as error:
        draw_caption(join_sentences(say("On the whole screen it cannot be shown."), str(error)))
