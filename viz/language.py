"""The language that a visitor reads: the address says it (``lang=zh``), else their browser."""

from __future__ import annotations

import streamlit as st

from model.language import current
from model.language import say as speaker
from model.language.catalogue import COMPLETE, LANGUAGES, SOURCE, closest

from .components.language_menu import language_menu
from .figures.speech import spoken_by
from .streamlit_internals import in_run
from .ui.addresses.shared import LANGUAGE

KEY = "language"
"""Where the session has it."""


def begin() -> None:
    """Find out the visitor's language; comes before anything is said."""
    st.session_state[KEY] = language = LANGUAGE.hold() or closest(st.context.locale or "")
    current.speak(language)


def of_visitor() -> str:
    """The language of the visitor for whom this thread runs a part of a page; English outside of any."""
    if not in_run():
        return SOURCE
    language: str = st.session_state.get(KEY, SOURCE)
    current.speak(language)  # To ask the session costs a hundred times as much, and a thread runs for one visitor.
    return language


def switch() -> None:
    """Draw the choice of the language, if there is one."""
    if len(COMPLETE) > 1:
        offered = {code: LANGUAGES[code] for code in COMPLETE}
        language_menu(offered, current.current_language(), LANGUAGE.set, key="language-menu")


current.ask(of_visitor)
spoken_by(speaker)
