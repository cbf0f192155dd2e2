"""Explore: type a sentence, see every head of the model that translates it."""

import streamlit as st

from viz.components.overview import overview
from viz.explore import choices, head_views, interventions
from viz.explore.captions import arranged_in_words, head_captions
from viz.explore.run import read
from viz.explore.scene import Scene
from viz.explore.token_display import arrange
from viz.explore.trace import user_model
from viz.traces import session as opened
from viz.ui import controls, theme
from viz.ui.captions import badge

theme.apply()
st.html(head_views.STYLE)
if trace := opened.current():
    opened.show(trace)
    st.stop()
if own := user_model.chosen():
    user_model.show(own)
    st.stop()
model, text = controls.sentence(opened.offer)
result, check = controls.translated(model, text)
badge(model, result, check)


@st.fragment
def pictures() -> None:
    """The translation, all heads and the chosen one. A fragment: a click here leaves the sentence's controls alone."""
    controls.pins_in_address(text)
    reading, shown = read(model, text)
    left, right = st.columns([0.42, 0.58], gap="large")
    with right, st.container(key="viewbar", horizontal=True, vertical_alignment="center"):
        view = choices.view()
        head_views.question_mark(view)
        display = choices.display()
        menu = st.container(width="content")
    with left:
        with st.container(key="kindbar", horizontal=True, vertical_alignment="center"):
            captured = shown.trace.maps[controls.kind()]
            order, measure = choices.order(captured)
            choices.find_aligning(shown.trace.maps["cross"])
        arranged = arrange(captured, display.rows, merge=display.merge, hide=display.hide)
        tiles = st.container()
        with st.container(key="placebar", horizontal=True, vertical_alignment="center"):
            layer, head = controls.place(captured)
            interventions.switch(captured, layer, head)
        scene = Scene(model, reading, shown, arranged, layer, head, display)
        with tiles:
            overview(
                arranged.attention,
                layer,
                head,
                display.look,
                order,
                interventions.changed_heads(captured),
                key="overview",
                on_pick=controls.choose,
            )
        head_captions(scene, measure)
    with right:
        head_views.show(view, scene, menu)
        arranged_in_words(arranged)


pictures()
