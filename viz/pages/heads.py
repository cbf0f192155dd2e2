"""Heads: what each head does over a whole corpus, and where it does what one asks for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.atlas.duckdb_queries import QuestionError
from attenscope.atlas.files import AtlasError
from attenscope.atlas.heads_over_training import TimelineError
from attenscope.atlas.pruning import PruningError
from attenscope.atlas.query import Atlas
from attenscope.runnable_model import RunnableModel
from attenscope.translate import Translator
from attenscope.viz import page_setup
from attenscope.viz.export.share_menu import SavedView, register_savable_view, view_fragment
from attenscope.viz.heads import atlas_free_views, cache, habit_gallery, measure_scatter, one_head, token_projection
from attenscope.viz.ui import controls, links
from attenscope.viz.ui.addresses.heads import FIRST_VIEWS, HEADS_VIEW, HeadsView
from attenscope.viz.ui.addresses.shared import MODEL
from attenscope.viz.ui.captions import escape_message
from attenscope.viz.ui.controls import require_project_translator
from attenscope.viz.ui.links import draw_next_page_link
from attenscope.word_alignment.measure import AlignmentError

ATLAS_VIEWS: dict[HeadsView, Callable[[RunnableModel, Atlas, DeltaGenerator], SavedView | None]] = {
    "habits": habit_gallery.draw_habits_view,
    "map": measure_scatter.draw_measure_scatter_view,
    "head": one_head.draw_one_head_view,
    "search": measure_scatter.draw_link_search_view,
    "projection": token_projection.draw_projection_view,
}
# Views that need no atlas: what they show is saved beside the model.
MODEL_VIEWS: dict[HeadsView, Callable[[Translator, DeltaGenerator], SavedView | None]] = {
    "alignment": atlas_free_views.draw_alignment_view,
    "over training": atlas_free_views.draw_heads_over_training_view,
}
# Views that need no atlas but a sentence.
SENTENCE_VIEWS: dict[HeadsView, Callable[[Translator, str, DeltaGenerator], SavedView | None]] = {
    "pruning": atlas_free_views.draw_pruning_view,
}


def draw_heads_page_view(view: HeadsView, model: RunnableModel, text: str, bar: DeltaGenerator) -> SavedView | None:
    """Draw a view, its controls in `bar`; returns what can be saved of it."""
    try:
        if view in SENTENCE_VIEWS:
            return SENTENCE_VIEWS[view](require_project_translator(model, "kept measures"), text, bar)
        if view in MODEL_VIEWS:
            return MODEL_VIEWS[view](require_project_translator(model, "kept measures"), bar)
        atlas = cache.load_atlas_or_explain(model)
        return ATLAS_VIEWS[view](model, atlas, bar) if atlas else None
    except (AtlasError, QuestionError, AlignmentError, PruningError, TimelineError) as error:
        st.info(escape_message(str(error)))
        return None


page_setup.draw_page_frame("heads")
st.html(cache.HEADS_STYLE)
chosen, text = controls.draw_sentence_and_model_controls()
model = controls.require_ability(chosen, "atlas")
model_name = MODEL.get()


@view_fragment
def draw_chosen_heads_view() -> None:
    """One view at a time. A fragment: its controls leave the sentence's alone."""
    links.switch_to_requested_page()
    if MODEL.get() != model_name:  # A head of the second model was opened.
        st.rerun()
    with st.container(key="views", horizontal=True, vertical_alignment="center"):
        impossible: list[HeadsView] = [] if cache.has_head_measure_timeline(model) else ["over training"]
        impossible += [] if model.can("kept measures") else ["alignment", "pruning"]
        view, _ = controls.view_control(HEADS_VIEW, FIRST_VIEWS, impossible)
        bar = st.container(key="of-view", horizontal=True, vertical_alignment="center")
    if view not in SENTENCE_VIEWS:
        controls.hide_sentence_box()
    if saved := draw_heads_page_view(view, model, text, bar):
        register_savable_view(saved)
    draw_next_page_link("heads")


draw_chosen_heads_view()
