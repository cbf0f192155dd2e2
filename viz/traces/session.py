"""Opening a saved trace on Explore, saying that one is looked at, and going back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.untrusted_trace import MEGABYTES, Opened, OpenError, clean, read
from viz.ui.captions import caption, plain

from ..explore.trace.pictures import pictures
from . import verdict

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

STYLE = Path(__file__).parent / "opened.css"
SAID = 300
"""Characters of what a trace says of its own making."""


def current() -> Opened | None:
    """The trace that this visitor has opened."""
    found = st.session_state.get("opened")
    return found if isinstance(found, Opened) else None


def offer() -> None:
    """A folded-away place for a file."""
    with st.popover("Open a trace", type="tertiary", key="open"):
        st.markdown("A trace that `capture.trace.save(…)` or *Save* has written. It stays in your session alone.")
        _uploader()
    complaint = st.session_state.pop("open-error", None)
    if complaint:
        st.error(plain(complaint))


def show(opened: Opened) -> None:
    """The page of an opened trace."""
    with st.container(key="openedbar", horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(opened.name)}** · an opened trace of {plain(opened.shown.model)}", width="content")
        st.button("Back to the model", key="close", on_click=_close)
        offer()
    texts(opened)
    looking = opened.trace.settings.get("looking")
    for note in (*opened.notes, *([clean(looking, SAID)] if isinstance(looking, str) else [])):
        caption(note)
    with st.container(key="verdict"):
        said = st.empty()
    pictures(opened)
    with said.container():
        verdict.show(opened)


def texts(opened: Opened) -> None:
    """What was read and written, where the trace knows."""
    st.html(STYLE)
    for side in ("source", "target"):
        if text := getattr(opened.shown, side):
            with st.container(key=f"opened-{side}"):
                st.markdown(plain(text))


def _uploader() -> None:
    """Emptied after every file: what is kept is the trace, not the bytes."""
    key = f"trace-file-{st.session_state.get('files-opened', 0)}"

    def brought() -> None:
        file: UploadedFile | None = st.session_state[key]
        if file is None:
            return
        st.session_state["files-opened"] = st.session_state.get("files-opened", 0) + 1
        try:
            st.session_state["opened"] = read(file.name, file.getbuffer())
        except OpenError as error:
            st.session_state["open-error"] = str(error)

    st.file_uploader(
        "Trace", key=key, label_visibility="collapsed", max_upload_size=MEGABYTES, on_change=brought, type=None
    )


def _close() -> None:
    for key in ("opened", "opened-kept"):
        st.session_state.pop(key, None)
