"""Explore: type a sentence, see every head of the model that translates it."""

import streamlit as st

from attenscope.hugging_face.media import MediaModel
from attenscope.viz import page_setup
from attenscope.viz.explore import media_page, model_page, screen, trace_page
from attenscope.viz.explore.comparison import draw_view_explanation
from attenscope.viz.traces.session import get_open_trace, pop_open_error
from attenscope.viz.ui.captions import escape_markdown
from attenscope.viz.ui.controls import get_encoder_only_model

page_setup.draw_page_frame("explore", draw_view_explanation, screen.draw_settings)
st.html(screen.EXPLORE_STYLE)
if error := pop_open_error():
    st.error(escape_markdown(error))
if trace := get_open_trace():
    trace_page.draw_opened_page(trace)
elif isinstance(own := get_encoder_only_model(), MediaModel):
    media_page.draw_media_page(own)
elif own:
    trace_page.draw_encoder_only_page(own)
else:
    model_page.draw_model_page()
