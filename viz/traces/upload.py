"""The part of the settings in which a visitor opens a saved trace."""

from __future__ import annotations

import streamlit as st

from attenscope.language import say
from attenscope.untrusted_trace import MAX_FILE_MEGABYTES, OpenError
from attenscope.viz.fair_queue import BusyError
from attenscope.viz.traces.session import OPEN_ERROR_KEY, open_uploaded_trace
from attenscope.viz.traces.upload_store import UploadStoreError
from attenscope.viz.ui import controls

_UPLOAD_COUNT_KEY = "files-opened"


def draw_open_settings() -> None:
    """Draw the uploader, folded away; the page says why a file cannot be opened."""
    with st.expander(say("Open a trace"), key="open"):
        st.markdown(say("A trace that `capture.trace.save(…)` or *Share* has written. It stays in your session alone."))
        _draw_uploader()


def _draw_uploader() -> None:
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

    controls.file_uploader(say("Trace"), MAX_FILE_MEGABYTES, key=key, label_visibility="collapsed", on_change=open_file)
