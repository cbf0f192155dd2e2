"""Heads: what each head does over a whole corpus, and where it does what one asks for."""

import streamlit as st

from attenscope.viz import page_setup
from attenscope.viz.export.save import offer_view
from attenscope.viz.heads import cache, page
from attenscope.viz.ui import controls, links
from attenscope.viz.ui.addresses.heads import FIRST_VIEWS, HEADS_VIEW, HeadsView
from attenscope.viz.ui.addresses.shared import MODEL
from attenscope.viz.ui.links import draw_next_step

page_setup.draw_page_frame("heads")
st.html(cache.HEADS_STYLE)
chosen, text = controls.draw_sentence_box()
model = controls.require_ability(chosen, "atlas")
model_name = MODEL.get()


@st.fragment
def draw_page_view() -> None:
    """One view at a time. A fragment: its controls leave the sentence's alone."""
    links.follow_link()
    if MODEL.get() != model_name:  # A head of the second model was opened.
        st.rerun()
    with st.container(key="views", horizontal=True, vertical_alignment="center"):
        impossible: list[HeadsView] = [] if cache.has_timeline(model) else ["over training"]
        impossible += [] if model.can("kept measures") else ["alignment", "pruning"]
        view, _ = controls.view_control(HEADS_VIEW, FIRST_VIEWS, impossible)
        bar = st.container(key="of-view", horizontal=True, vertical_alignment="center")
    if view not in page.SENTENCE_VIEWS:
        controls.hide_sentence_box()
    if saved := page.draw_heads_page_view(view, model, text, bar):
        offer_view(saved)


draw_page_view()
draw_next_step("heads")
