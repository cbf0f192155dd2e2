"""The chosen view of Heads, and the sentence that stands in its place where it has no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from model.atlas.files import AtlasError
from model.atlas.pruning import PruningError
from model.atlas.query import Atlas, QuestionError
from model.atlas.timeline import TimelineError
from model.runnable_model import RunnableModel
from model.translate import Translator
from model.word_alignment.measure import AlignmentError
from viz.export.save import SavedView
from viz.heads import cache, kept, map, one_head, projection
from viz.ui.addresses.heads import HeadsView
from viz.ui.controls import require_own_model
from viz.ui.words import escape_markdown

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

ATLAS_VIEWS: dict[HeadsView, Callable[[RunnableModel, Atlas, DeltaGenerator], SavedView | None]] = {
    "map": map.draw_head_map_view,
    "head": one_head.draw_one_head_view,
    "search": map.draw_search_view,
    "projection": projection.draw_projection_view,
}
MODEL_VIEWS: dict[HeadsView, Callable[[Translator, DeltaGenerator], SavedView | None]] = {
    "alignment": kept.draw_alignment_view,
    "over training": kept.draw_over_training_view,
}
"""Views that need no atlas: what they show is kept beside the model."""
SENTENCE_VIEWS: dict[HeadsView, Callable[[Translator, str, DeltaGenerator], SavedView | None]] = {
    "pruning": kept.draw_pruning_view,
}
"""The same, with a sentence."""


def draw_heads_page_view(view: HeadsView, model: RunnableModel, text: str, bar: DeltaGenerator) -> SavedView | None:
    """Draw a view, what it offers in `bar`; returns what can be saved of it."""
    try:
        if view in SENTENCE_VIEWS:
            return SENTENCE_VIEWS[view](require_own_model(model, "kept measures"), text, bar)
        if view in MODEL_VIEWS:
            return MODEL_VIEWS[view](require_own_model(model, "kept measures"), bar)
        atlas = cache.load_atlas_or_explain(model)
        return ATLAS_VIEWS[view](model, atlas, bar) if atlas else None
    except (AtlasError, QuestionError, AlignmentError, PruningError, TimelineError) as error:
        st.info(escape_markdown(str(error)))
        return None
