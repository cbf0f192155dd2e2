"""Positions: the model's own positional encoding in pictures, and what happens when it is changed."""

import streamlit as st

from attenscope.viz import page_setup
from attenscope.viz.export.share_menu import register_savable_view, view_fragment
from attenscope.viz.positions import controls as positions_controls
from attenscope.viz.positions import distance_views, experiments, precision, sentence_views, views
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui.captions import draw_model_run_badge, draw_translation_warnings
from attenscope.viz.ui.links import draw_next_page_link

page_setup.draw_page_frame("positions", settings=ui_controls.draw_look_settings)
st.html(positions_controls.POSITIONS_STYLE)
chosen, text = ui_controls.draw_sentence_and_model_controls()
if distances := getattr(chosen, "distances", ()):  # of a folder whose attention itself knows them
    distance_views.draw_distances_page(chosen, distances)
    st.stop()
model = ui_controls.require_ability(chosen, "positions")

TABLE_VIEWS = {
    "table": views.draw_table_view,
    "waves": views.draw_waves_view,
    "similarity": views.draw_similarity_view,
    "rotation": views.draw_rotation_view,
    "precision": precision.draw_precision_view,
}


@view_fragment
def draw_chosen_positions_view() -> None:
    """One view at a time. A fragment: its controls leave the sentence's alone."""
    with st.container(key="views", horizontal=True, vertical_alignment="center"):
        view, menu = positions_controls.draw_positions_view_control(model)
    if view in TABLE_VIEWS:
        if view != "table":  # which marks where the sentence ends
            ui_controls.hide_sentence_box()
        bar = st.container(key="of-table", horizontal=True, vertical_alignment="center")
        with bar:
            choice = positions_controls.draw_table_controls(
                ui_controls.require_project_translator(model, "position pictures"), text, view
            )
        found = TABLE_VIEWS[view](choice, bar)
    else:
        result = ui_controls.require_translation(model, text)
        draw_model_run_badge(model, result, ui_cache.compute_observer_check(model.name, text))
        draw_translation_warnings(model, result, result)
        if view == "heads":
            found = sentence_views.draw_positional_heads_view(
                ui_controls.require_project_translator(model, "position pictures"), result
            )
        elif view == "sentence":
            found = sentence_views.draw_embedding_sum_view(model, result)
        else:
            found = experiments.draw_experiment_view(model, result, menu)
    if found:
        register_savable_view(found)
    draw_next_page_link("positions")


draw_chosen_positions_view()
