"""Going from one page to another by a click: a callback says where to, and the run that follows goes there."""

from __future__ import annotations

import streamlit as st

_PAGE = "page to open"


def go_to(page: str) -> None:
    """Open a page, by the name of its file; for callbacks, in which Streamlit cannot switch pages itself."""
    st.session_state[_PAGE] = page


def follow() -> None:
    """Go where a callback has asked to go, if it has; comes before what need not be drawn then."""
    if page := st.session_state.pop(_PAGE, None):
        st.switch_page(f"viz/pages/{page}.py")
