"""Masks: bring a mask or the weights it led to, and read what is wrong and how to mend it."""

import streamlit as st

from viz.masks import converter
from viz.masks.gallery import page as gallery
from viz.masks.judge import page as judge
from viz.masks.trial import page as tried
from viz.ui import theme
from viz.ui.controls import SHARED

theme.apply()

PARTS = {"judge": judge.show, "try on the model": tried.show, "gallery": gallery.show, "convert": converter.show}

part = st.segmented_control(
    "Part", PARTS, default="judge", required=True, key="part", label_visibility="collapsed", **SHARED
)
PARTS[part]()
