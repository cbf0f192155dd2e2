"""Masks: hand over a mask or the weights it led to, and read what is wrong and how to mend it."""

import streamlit as st

from attenscope.viz import page_setup
from attenscope.viz.masks import backends, convert, gallery, judge, masks_from_config, trial
from attenscope.viz.masks.cache import can_compare_backends
from attenscope.viz.ui import controls
from attenscope.viz.ui.addresses.masks import FIRST_PARTS, MASKS_PART, MasksPart
from attenscope.viz.ui.links import draw_next_page_link

page_setup.draw_page_frame("masks")

DRAW_PART = {
    "judge": judge.draw_judge_view,
    "try on the model": trial.draw_trial_view,
    "backends": backends.draw_backends_view,
    "gallery": gallery.draw_gallery_view,
    "convert": convert.draw_converter_view,
    "from a configuration": masks_from_config.draw_architecture_view,
}

impossible: list[MasksPart] = [] if can_compare_backends() else ["backends"]
with st.container(key="views", horizontal=True, vertical_alignment="center"):
    part, _ = controls.view_control(MASKS_PART, FIRST_PARTS, impossible)
DRAW_PART[part]()
draw_next_page_link("masks")
