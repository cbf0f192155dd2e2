"""Why: what made the model write this word, and what makes a head look there."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from attenscope.attribution.target import AttributionError
from attenscope.runnable_model import InputError
from attenscope.viz import page_setup
from attenscope.viz.export.share_menu import SavedView, register_savable_view
from attenscope.viz.figures.figure_style import Palette
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.shared import PIN
from attenscope.viz.ui.addresses.why import FIRST_VIEWS, WHY_VIEW, WhyView
from attenscope.viz.ui.captions import draw_model_run_badge, escape_message
from attenscope.viz.ui.links import draw_next_page_link
from attenscope.viz.why import controls as why_controls
from attenscope.viz.why import heads, layers, source_words
from attenscope.viz.why.controls import Question

VIEWS: dict[WhyView, Callable[[Question, Palette], SavedView | None]] = {
    "source words": source_words.draw_source_words_view,
    "deletion": source_words.draw_deletion_view,
    "heads": heads.draw_heads_view,
    "score": heads.draw_attention_score_view,
    "source or prefix": layers.draw_source_shares_view,
    "two sentences": layers.draw_activation_patching_view,
    "layers": layers.draw_layers_view,
}


def draw_why_page_view(view: WhyView, question: Question) -> SavedView | None:
    """Draw a view of the question; returns what can be saved of it."""
    try:
        return VIEWS[view](question, style.get_palette())
    except (AttributionError, InputError) as error:
        st.info(escape_message(str(error)))
        return None


page_setup.draw_page_frame("why")
st.html(why_controls.WHY_STYLE)
if own := ui_controls.get_encoder_only_model():
    source_words.draw_user_model_page(own)
    st.stop()
chosen, text = ui_controls.draw_sentence_and_model_controls()
model = ui_controls.require_ability(chosen, "attribution")
pair = why_controls.find_sentence_pair(model, text)
if pair.first != text:
    ui_controls.hide_sentence_box()
translation = ui_controls.require_translation(model, pair.first)
draw_model_run_badge(model, translation, ui_cache.compute_observer_check(model.name, pair.first))
PIN.hold(of=pair.first)
above = st.container()
with st.container(key="views", horizontal=True, vertical_alignment="center"):
    asked = st.container(key="question", horizontal=True, vertical_alignment="center", width="content")
    view, more = ui_controls.view_control(WHY_VIEW, FIRST_VIEWS)
    with more:
        is_given = ui_controls.draw_given_translation_toggle(pair.first)
question = why_controls.draw_question_controls(model, pair, above, asked, is_given)
if saved := draw_why_page_view(view, question):
    register_savable_view(saved)
draw_next_page_link("why")
