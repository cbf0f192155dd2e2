"""The language that a visitor reads: the address says it (``lang=zh``), else their browser."""

from __future__ import annotations

import streamlit as st

from attenscope import language as model_language
from attenscope.language import COMPLETE_LANGUAGES, LANGUAGES, SOURCE_LANGUAGE, find_closest_language
from attenscope.viz.figures.look import set_speaker
from attenscope.viz.streamlit_internals import is_in_run
from attenscope.viz.ui.addresses.shared import LANGUAGE
from attenscope.viz.web.shell import draw_language_menu

LANGUAGE_KEY = "language"
"""Where the session has it."""


def set_visitor_language() -> None:
    """Find out the visitor's language; comes before anything is said."""
    st.session_state[LANGUAGE_KEY] = language = LANGUAGE.hold() or find_closest_language(st.context.locale or "")
    model_language.set_language(language)


def get_visitor_language() -> str:
    """The language of the visitor for whom this thread runs a part of a page; English outside of any."""
    if not is_in_run():
        return SOURCE_LANGUAGE
    language: str = st.session_state.get(LANGUAGE_KEY, SOURCE_LANGUAGE)
    # To ask the session costs a hundred times as much, and a thread runs for one visitor.
    model_language.set_language(language)
    return language


def draw_language_choice() -> None:
    """Draw the choice of the language, if there is one."""
    if len(COMPLETE_LANGUAGES) > 1:
        offered = {code: LANGUAGES[code] for code in COMPLETE_LANGUAGES}
        draw_language_menu(offered, model_language.current_language(), LANGUAGE.set, key="language-menu")


model_language.set_visitor_language_source(get_visitor_language)
set_speaker(model_language)
