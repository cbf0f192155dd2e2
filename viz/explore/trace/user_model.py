"""Explore for a model that is none of this project: a sentence goes in, its trace is shown."""

from __future__ import annotations

import streamlit as st

from model.user_model import LocalError, LocalModel
from viz.ui import cache, controls
from viz.ui.captions import caption, plain

from ...traces import verdict
from ...traces.session import offer, texts
from .pictures import pictures


def chosen() -> LocalModel | None:
    """The model named on the command line, where it is a stranger's and the one that is looked at."""
    local = cache.local()
    if not isinstance(local, LocalModel):
        return None
    name = st.session_state.get("model", st.query_params.get("model", local.name))
    return local if name == local.name else None


def show(local: LocalModel) -> None:
    """The page: the sentence, and what the model attends to."""
    text = controls.plain_sentence(offer)
    if not text.strip():
        st.info("Type a sentence for the model to read.")
        return
    try:
        found = cache.local_trace(local.name, text)
    except LocalError as error:
        st.info(plain(str(error)))
        return
    texts(found)
    caption(str(found.trace.settings.get("looking", "")))
    with st.container(key="verdict"):
        said = st.empty()
    pictures(found)
    with said.container():
        verdict.show(found)
