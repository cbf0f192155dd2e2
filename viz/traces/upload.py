"""The folded-away place where a visitor opens a saved trace."""

from __future__ import annotations

import streamlit as st

from model.language.say import say
from model.untrusted_trace import MEGABYTES, OpenError
from viz.ui import widgets
from viz.ui.captions import plain

from ..turns import BusyError
from .kept import KeptError
from .session import ERROR, open_uploaded

_COUNT = "files-opened"


def offer() -> None:
    """Draw the menu with the uploader and, after a file that cannot be opened, the sentence that says why."""
    with st.popover(say("Open a trace"), type="tertiary", key="open"):
        st.markdown(say("A trace that `capture.trace.save(…)` or *Save* has written. It stays in your session alone."))
        _uploader()
    error = st.session_state.pop(ERROR, None)
    if error:
        st.error(plain(error))


def _uploader() -> None:
    """Draw an uploader that is empty again after every file: the trace is kept in the session, not the bytes."""
    key = f"trace-file-{st.session_state.get(_COUNT, 0)}"

    def open_file() -> None:
        file = st.session_state[key]
        if file is None:
            return
        st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1
        try:
            open_uploaded(file.name, file.getbuffer())
        except (OpenError, KeptError, BusyError) as error:
            st.session_state[ERROR] = str(error)

    widgets.file_uploader(say("Trace"), MEGABYTES, key=key, label_visibility="collapsed", on_change=open_file)
