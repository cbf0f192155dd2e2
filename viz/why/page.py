"""Draw the chosen view of Why, or the sentence that says why the question has no answer."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from attenscope.attribution.target import AttributionError
from attenscope.runnable_model import InputError
from attenscope.viz.export.save import SavedView
from attenscope.viz.figures.look import Palette
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.why import WhyView
from attenscope.viz.ui.words import escape_markdown
from attenscope.viz.why import heads, layers, source_words
from attenscope.viz.why.controls import Question

VIEWS: dict[WhyView, Callable[[Question, Palette], SavedView | None]] = {
    "source words": source_words.draw_source_words_view,
    "deletion": source_words.draw_deletion_view,
    "heads": heads.draw_heads_view,
    "score": heads.draw_score_view,
    "source or prefix": layers.draw_shares_view,
    "two sentences": layers.draw_two_sentences_view,
    "layers": layers.draw_layers_view,
}


def draw_why_page_view(view: WhyView, question: Question) -> SavedView | None:
    """Draw a view of the question; returns what can be saved of it."""
    try:
        return VIEWS[view](question, style.get_palette())
    except (AttributionError, InputError) as error:
        st.info(escape_markdown(str(error)))
        return None
