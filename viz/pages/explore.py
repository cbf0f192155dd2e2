"""Explore: type a sentence, see every head of the model that translates it."""

import streamlit as st

from viz import frame
from viz.explore.live import page as live
from viz.explore.trace import page as opened
from viz.explore.trace import user_model as own_model
from viz.explore.views import screen
from viz.traces.session import current
from viz.ui.controls import user_model

frame.begin("explore")
st.html(screen.STYLE)
if trace := current():
    opened.show(trace)
elif own := user_model():
    own_model.show(own)
else:
    live.show()
