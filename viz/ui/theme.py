"""The look of every page: which palette is on, and the one style sheet."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ..components.presenter import presenter, presenting
from ..components.theme_watch import theme_watch
from ..figures.palette import DARK, LIGHT, Palette
from ..talk import session

STYLE = Path(__file__).parent / "style.css"
PRESENTED = Path(__file__).parents[1] / "talk" / "presented.css"


def apply(*, presents: bool = True) -> None:
    """Put the project's style on the page; every page calls it first.

    A page that shows more than itself on the whole screen does that on its own: `presents=False`.
    """
    st.html(STYLE)
    if presenting():
        st.html(PRESENTED)
    else:
        session.add_view_button()
        if presents and not session.shows_opened():
            presenter()
        if "present" in st.query_params:
            st.html("<style>:root:not(.presented) [data-testid=stHeader] { visibility: hidden; }</style>")
    theme_watch(_scheme())


def palette() -> Palette:
    """The colours of the theme this visitor sees."""
    return DARK if _scheme() == "dark" else LIGHT


def _scheme() -> str:
    return st.context.theme.type or "light"
