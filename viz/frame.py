"""The frame that every page begins with: a checked address, the style, presenter mode, the talk's button."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from model.language.say import say, sentences

from . import language
from .components.arrival import arrival
from .components.history import history
from .components.page_menu import page_menu
from .components.presenter import on_stage, presenter, presenting, shown_file
from .talk import adding, beside, session
from .traces.kept import KeptError
from .traces.session import current, open_kept
from .ui import theme
from .ui.addresses.masks import PART
from .ui.addresses.pages import PAGES
from .ui.captions import caption
from .ui.controls import take_back_lent
from .ui.glossary import glossary
from .ui.url_state.page import clean_address

PRESENTED = Path(__file__).parent / "talk" / "presented.css"
"""What a page looks like that is a scene on the whole screen."""


def begin(page: str) -> None:
    """Draw the frame of a page; comes before all else of it."""
    too_long = clean_address(PAGES[page]) if page in PAGES else []
    take_back_lent()
    st.html(theme.style())
    arrival(page)
    for one in too_long:
        caption(
            say(
                "The link's {name} has more than {longest:,} characters, so it was left out.",
                name=one.name,
                longest=one.longest,
            )
        )
    if presenting():
        st.html(PRESENTED)
        if open_kept(shown_file()):
            st.info(say("The file that this scene shows is no longer kept: open the talk with its files again."))
            st.stop()
    else:
        _around(page)
    history(PAGES[page].scrubbed if page in PAGES else ())
    theme.watch()


def _around(page: str) -> None:
    """What a page has besides its view while nobody presents it."""
    session.keep_draft(page)
    shown = page in PAGES and not adding.shows_opened(page)
    if shown:
        _presenter(page)
    with st.container(key="header-actions", horizontal=True, vertical_alignment="center"):
        language.switch()
        if shown:
            with st.popover("?", type="tertiary", key="page-help"):
                page_menu(key="page-actions")
                glossary()
        if page in PAGES:
            adding.add_view_button(PAGES[page])
    if "present" in st.query_params:
        st.html("<style>:root:not(.presented) [data-testid=stHeader] { visibility: hidden; }</style>")


def _presenter(page: str) -> None:
    """Let the page be shown alone; what it shows of the visitor's own the stage finds, which is another session."""
    if page == "masks" and PART.get() == "judge":
        presenter(beside.stage_key())  # The page hands over what is judged once it has read it.
        return
    opened = current() if page == "explore" and not on_stage() else None
    try:
        presenter(beside.shown_key(opened) if opened else "")
    except KeptError as error:
        caption(sentences(say("On the whole screen it cannot be shown."), str(error)))
