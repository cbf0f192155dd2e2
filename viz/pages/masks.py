"""Masks: hand over a mask or the weights it led to, and read what is wrong and how to mend it."""

from attenscope.language import say
from attenscope.viz import page_setup
from attenscope.viz.masks import backends, convert, gallery, judge, trial
from attenscope.viz.ui import controls
from attenscope.viz.ui.addresses.masks import MASKS_PART

page_setup.draw_page_frame("masks")

DRAW_PART = {
    "judge": judge.draw_judge_view,
    "try on the model": trial.draw_trial_view,
    "backends": backends.draw_backends_view,
    "gallery": gallery.draw_gallery_view,
    "convert": convert.draw_converter_view,
}

DRAW_PART[controls.segmented_control(say("Part"), MASKS_PART)]()
