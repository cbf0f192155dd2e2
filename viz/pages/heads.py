"""Heads: what each head does over a whole corpus, and where it does what one asks for."""

import streamlit as st

from model.language.say import say
from viz import frame
from viz.export.save import save
from viz.heads import controls
from viz.heads.views import screen
from viz.ui import controls as shared
from viz.ui import links, widgets
from viz.ui.addresses.heads import HEADS
from viz.ui.addresses.shared import MODEL

frame.begin("heads")
st.html(controls.STYLE)
chosen, text = shared.sentence()
model = shared.able(chosen, "atlas")
named = MODEL.get()


@st.fragment
def pictures() -> None:
    """One view at a time. A fragment: its controls leave the sentence's alone."""
    links.follow()
    if MODEL.get() != named:  # A head of the second model was opened.
        st.rerun()
    with st.container(key="views", horizontal=True, vertical_alignment="center"):
        view = widgets.segmented_control(say("View"), HEADS)
        bar = st.container(key="of-view", horizontal=True, vertical_alignment="center")
        menu = st.container(key="saving", width="content")
    if view not in screen.OF_SENTENCE:
        shared.hide_sentence_box()
    if saved := screen.show(view, model, text, bar):
        with menu:
            save(saved)


pictures()
