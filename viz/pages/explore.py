"""Explore: type a sentence, see every head of the model that translates it."""

import streamlit as st

from viz.explore import head_views, page
from viz.explore.trace import page as trace_page
from viz.explore.trace import user_model
from viz.traces.session import current
from viz.ui import theme

theme.apply()
st.html(head_views.STYLE)
if trace := current():
    trace_page.show(trace)
elif own := user_model.current():
    user_model.show(own)
else:
    page.show()
