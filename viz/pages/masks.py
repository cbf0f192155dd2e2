"""Masks: hand over a mask or the weights it led to, and read what is wrong and how to mend it."""

from model.language.say import say
from viz import frame
from viz.masks.backends import page as backends
from viz.masks.convert import page as convert
from viz.masks.gallery import page as gallery
from viz.masks.judge import page as judge
from viz.masks.trial import page as trial
from viz.ui import widgets
from viz.ui.addresses.masks import PART

frame.begin("masks")

PARTS = {
    "judge": judge.show,
    "try on the model": trial.show,
    "backends": backends.show,
    "gallery": gallery.show,
    "convert": convert.show,
}

PARTS[widgets.segmented_control(say("Part"), PART)]()
