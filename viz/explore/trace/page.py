"""The page Explore for a trace that a visitor has opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.capture.foreign.observed import of_settings
from model.language.say import say
from model.untrusted_trace import clean
from viz.explore.views.screen import screen
from viz.traces import verdict
from viz.traces.session import close
from viz.traces.upload import offer
from viz.ui.captions import caption, plain

from .static_trace import StaticTrace

if TYPE_CHECKING:
    from model.untrusted_trace import OpenedTrace

STYLE = Path(__file__).parent / "trace.css"
LONGEST_NOTE = 1000
"""Characters of what a trace says of its own making."""


def show(opened: OpenedTrace) -> None:
    """Draw the page of an opened trace."""
    with st.container(key="openedbar", horizontal=True, vertical_alignment="center"):
        opened_trace = say(
            "**{name}** · an opened trace of {model}", name=plain(opened.name), model=plain(opened.model)
        )
        st.markdown(opened_trace, width="content")
        st.button(say("Back to the model"), key="close", on_click=close)
        offer()
    show_trace(opened)


def show_trace(opened: OpenedTrace) -> None:
    """Draw the texts of a trace, the verdict on its masks, and its pictures."""
    st.html(STYLE)
    _texts(opened)
    for note in (*opened.notes, *_observer_effect(opened)):
        caption(note)
    with st.container(key="verdict"):
        place = st.empty()
    st.fragment(screen)(StaticTrace(opened))
    with place.container():  # Drawn last: a verdict on large masks takes a moment.
        verdict.show(opened)


def _texts(opened: OpenedTrace) -> None:
    """Draw the sentence and the translation, where the trace has them."""
    for side, text in (("source", opened.drawable.source), ("target", opened.drawable.target)):
        if text:
            with st.container(key=f"opened-{side}"):
                st.markdown(plain(text))


def _observer_effect(opened: OpenedTrace) -> list[str]:
    """Whether the capture changed which kernel ran, as the trace says."""
    effect = of_settings(opened.trace.settings)
    return [clean(effect, LONGEST_NOTE)] if effect else []
