"""Training: the heads of a model forming, its curves, its architecture, and what it was trained on."""

import streamlit as st

from attenscope.viz import page_setup
from attenscope.viz.export.share_menu import view_fragment
from attenscope.viz.traces.session import get_open_training_run
from attenscope.viz.training import architecture_and_card_views, curves, texts
from attenscope.viz.ui import controls
from attenscope.viz.ui.links import draw_next_page_link

page_setup.draw_page_frame("training", settings=controls.draw_look_settings)
st.html(texts.TRAINING_STYLE)
if run := get_open_training_run():
    curves.draw_opened_run_snapshots(run)
    st.stop()
chosen, text = controls.draw_sentence_and_model_controls()
model = controls.require_project_translator(chosen, "training")


@view_fragment
def draw_chosen_training_view() -> None:
    """One view at a time. A fragment: its controls leave the sentence's alone."""
    with st.container(key="views", horizontal=True, vertical_alignment="center"):
        view = texts.draw_training_view_control()
        bar = st.container(key="of-view", horizontal=True, vertical_alignment="center")
    if view != "snapshots":
        controls.hide_sentence_box()
    if view == "snapshots":
        curves.draw_snapshots_view(model, text, bar)
    elif view == "curves":
        curves.draw_curves_view(model, bar)
    elif view == "architecture":
        architecture_and_card_views.draw_architecture_view(model)
    elif view == "parameters":
        architecture_and_card_views.draw_parameters_view(model)
    elif view == "card":
        architecture_and_card_views.draw_card_view(model)
    else:
        architecture_and_card_views.draw_preset_comparison(bar)
    draw_next_page_link("training")


draw_chosen_training_view()
