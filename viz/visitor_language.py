"""The language of a visitor: that of the address (``lang=zh``), else that of their browser."""

from __future__ import annotations

import streamlit as st

from attenscope import language as model_language
from attenscope.language import COMPLETE_LANGUAGES, LANGUAGES, SOURCE_LANGUAGE, find_closest_language
from attenscope.viz.figures.figure_style import set_message_translator
from attenscope.viz.streamlit_internals import is_thread_running_page
from attenscope.viz.ui.addresses.page_registry import PAGES
from attenscope.viz.ui.addresses.shared import LANGUAGE
from attenscope.viz.web.page_components import draw_preferences

LANGUAGE_KEY = "language"
"""Session key of the language."""


def set_visitor_language() -> None:
    """Find out and set the visitor's language; call it before any text is made."""
    st.session_state[LANGUAGE_KEY] = language = LANGUAGE.hold() or find_closest_language(st.context.locale or "")
    model_language.set_language(language)


def get_visitor_language() -> str:
    """Return the language of the visitor for whom this thread runs a page; English outside of a page."""
    if not is_thread_running_page():
        return SOURCE_LANGUAGE
    language: str = st.session_state.get(LANGUAGE_KEY, SOURCE_LANGUAGE)
    # Remembered for the thread, which runs for one visitor: asking the session takes a hundred times as long.
    model_language.set_language(language)
    return language


def draw_visitor_preferences() -> None:
    """Draw the choices of the language and the theme."""
    offered = {code: LANGUAGES[code] for code in COMPLETE_LANGUAGES}
    pages = ("", *PAGES, "talk")
    draw_preferences(offered, model_language.current_language(), pages, LANGUAGE.set, key="preferences")


model_language.set_visitor_language_source(get_visitor_language)
set_message_translator(model_language)
