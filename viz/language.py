"""The language that a visitor reads: the address says it (``lang=zh``), else their browser."""

from __future__ import annotations

import threading
from typing import Any

import streamlit as st

from model.language import current
from model.language import say as speaker
from model.language.catalogue import COMPLETE, LANGUAGES, SOURCE, closest
from model.language.say import say

from .figures.speech import spoken_by
from .streamlit_internals import current_run
from .ui.addresses.shared import LANGUAGE

KEY = "language"
"""Where the session has it."""


class _Heard(threading.local):
    """The run that this thread has last spoken in, and its language: to ask the session costs ten times as much."""

    run: Any = None
    language = SOURCE


_HEARD = _Heard()


def begin() -> None:
    """Find out the visitor's language; comes before anything is said."""
    _HEARD.run = None
    st.session_state[KEY] = LANGUAGE.hold() or closest(st.context.locale or "")


def of_visitor() -> str:
    """The language of the visitor for whom this thread runs a page; English outside of any."""
    run = current_run()
    if run is None:
        return SOURCE
    if run is not _HEARD.run:
        _HEARD.run, _HEARD.language = run, st.session_state.get(KEY, SOURCE)
    return _HEARD.language


def switch() -> None:
    """Draw the choice of the language, if there is one."""
    if len(COMPLETE) == 1:
        return
    with st.container(key="language"), st.popover(":material/translate:", type="tertiary", key="language-menu"):
        st.caption(say("Language"))
        for code in COMPLETE:
            chosen = code == current.current_language()
            st.button(
                LANGUAGES[code],
                type="tertiary",
                key=f"language-{code}",
                disabled=chosen,
                on_click=LANGUAGE.set,
                args=(code,),
            )


current.ask(of_visitor)
spoken_by(speaker)
