"""The page Explore for the models of this project: a sentence is translated, and the run is shown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from viz.traces.upload import offer
from viz.ui import controls
from viz.ui.addresses.pins import PIN
from viz.ui.captions import badge

from ..views.screen import screen
from . import examples, start, tour
from .run import live_run

if TYPE_CHECKING:
    from model.live.live_model import LiveModel


def show() -> None:
    """Draw the sentence, its translation and the pictures. The badge says whether looking changed the model."""
    starting = start.nothing_chosen()
    model, text = controls.sentence(partial(_beside, first_look=starting))
    tour.panel(model)
    translation, check = controls.translation(model, text)
    badge(model, translation, check)
    if starting and translation.trace.cross:
        start.choose_head(text, translation.trace.cross)
    _pictures(model, text)


def _beside(model: LiveModel, *, first_look: bool) -> None:
    """What stands beside the choice of the model."""
    tour.offer(model, first_look=first_look)
    examples.menu(model)
    offer()


@st.fragment
def _pictures(model: LiveModel, text: str) -> None:
    """Draw the run. A fragment: a click here leaves the sentence's controls alone."""
    PIN.hold(of=text)
    screen(live_run(model, text))
