"""Training: the heads of a model forming, its curves, its architecture, and what it was trained on."""

import streamlit as st

from viz import frame
from viz.traces.session import current_run
from viz.training import architecture, card, controls, curves, parameters, preset_comparison, snapshots, watched
from viz.ui import controls as shared

frame.begin("training")
st.html(controls.STYLE)
if run := current_run():
    watched.show(run)
    st.stop()
first = snapshots.first_model()
shared.lend(first)
chosen, text = shared.sentence(first=first)
model = shared.ours(chosen, "training")


@st.fragment
def pictures() -> None:
    """One view at a time. A fragment: its controls leave the sentence's alone."""
    with st.container(key="views", horizontal=True, vertical_alignment="center"):
        view = controls.view()
        bar = st.container(key="of-view", horizontal=True, vertical_alignment="center")
    if view != "snapshots":
        shared.hide_sentence_box()
    if view == "snapshots":
        snapshots.show(model, text, bar)
    elif view == "curves":
        curves.show(model, bar)
    elif view == "architecture":
        architecture.show(model, bar)
    elif view == "parameters":
        parameters.show(model, bar)
    elif view == "card":
        card.show(model, bar)
    else:
        preset_comparison.show(bar)


pictures()
