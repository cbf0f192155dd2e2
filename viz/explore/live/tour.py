"""The tour of Explore: a few steps on the live page, each with something to look at and something to try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import say, sentences
from viz.tour.steps import TourStep, tour_steps
from viz.ui.addresses.explore import PAGE, TOUR
from viz.ui.addresses.pins import PIN
from viz.ui.addresses.shared import SENTENCE
from viz.ui.captions import plain
from viz.ui.links import open_in_decode

from .examples import LANGUAGES, languages

if TYPE_CHECKING:
    from model.live.live_model import LiveModel


def offer(model: LiveModel, *, first_look: bool) -> None:
    """Draw the button that begins the tour, once in the accent colour; nothing for a model of other languages."""
    if model.can("examples") and languages(model) == LANGUAGES:
        kind = "primary" if first_look else "tertiary"
        st.button(say("Start here"), type=kind, key="tour-begins", on_click=_go_to, args=(1,))  # type: ignore[arg-type]


def panel(model: LiveModel) -> None:
    """Draw the step that the visitor is at, in place of the examples; nothing outside the tour."""
    steps, at = tour_steps(), TOUR.hold()
    if not 1 <= at <= len(steps):
        return
    step = steps[at - 1]
    with st.container(key="tour", horizontal=True, vertical_alignment="center"):
        st.markdown(f"{at}/{len(steps)} {sentences(f'**{plain(step.title)}**', plain(step.text))}")
        with st.container(key="tour-buttons", horizontal=True, vertical_alignment="center", width="content"):
            st.button(step.button, key="tour-try", on_click=_attempt, args=(model, step))
            if at > 1:
                st.button(say("Back"), key="tour-back", type="tertiary", on_click=_go_to, args=(at - 1,))
            if at < len(steps):
                st.button(say("Next"), key="tour-next", type="primary", on_click=_go_to, args=(at + 1,))
            st.button(say("Leave"), key="tour-leave", type="tertiary", on_click=TOUR.reset)


def _attempt(model: LiveModel, step: TourStep) -> None:
    if step.attempt:
        show(step.attempt)
    else:
        open_in_decode(model.name, SENTENCE.get(), 0)


def _go_to(at: int) -> None:
    """Begin a step, from 1."""
    TOUR.set(at)
    first, step = tour_steps()[0], tour_steps()[at - 1]
    show({"sentence": first.address["sentence"], **step.address})


def show(address: Mapping[str, str]) -> None:
    """Show what an address of this page says, where it says anything; for callbacks."""
    for name, text in address.items():
        parameter = PAGE.parameters[name]
        if parameter is PIN:
            PIN.set(PIN.value_of(text), of=address.get("sentence", SENTENCE.get()))
        else:
            st.session_state[parameter.key] = parameter.value_of(text)
