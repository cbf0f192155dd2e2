"""The page Explore for a user's own model: it reads a sentence, and its trace is shown."""

from __future__ import annotations

import streamlit as st

from model.language.say import say
from model.user_model import LocalError, LocalModel
from viz.traces.upload import offer
from viz.ui import cache, controls
from viz.ui.captions import plain

from .page import show_trace


def show(local: LocalModel) -> None:
    """Draw the page: the sentence, and what the model attends to."""
    text = controls.plain_sentence(offer)
    if not text.strip():
        st.info(say("Type a sentence for the model to read."))
        return
    try:
        trace = cache.local_trace(local.name, text)
    except LocalError as error:
        st.info(plain(str(error)))
        return
    show_trace(trace)
