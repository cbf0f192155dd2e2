"""Masks: bring a mask or the weights it led to, and read what is wrong and how to mend it."""

import streamlit as st

from viz import theme
from viz.controls import SHARED
from viz.masks import converter, gallery, judge, tried

theme.apply()

PARTS = {"judge": judge.show, "try on the model": tried.show, "gallery": gallery.show, "convert": converter.show}

part = st.segmented_control(
    "Part", PARTS, default="judge", required=True, key="part", label_visibility="collapsed", **SHARED
)
PARTS[part]()
