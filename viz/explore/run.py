"""Which run of the model the pictures are of: its own translation or a given one, as it is or with changes made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from model.translate import InputError
from viz.components.tokens import tokens
from viz.ui import cache, controls
from viz.ui.captions import caption, hints, plain
from viz.ui.controls import SHARED
from viz.ui.teacher_forced import given_in_words, typed

from . import board, interventions

if TYPE_CHECKING:
    from model.translate import Translation, Translator


class Reading(NamedTuple):
    """All that a picture depends on but how it is shown, as :mod:`viz.ui.cache` takes it."""

    model: str
    sentence: str
    given: str = ""
    """The translation that was typed; "" for the model's own."""
    changes: str = ""
    """As :mod:`model.interventions.changes` writes them; "" for the model as it is."""


def read(model: Translator, text: str) -> tuple[Reading, Translation]:
    """The translation that the pictures are of, in large type, and under it what can be changed about it."""
    line = st.container()
    with st.container(key="underline", horizontal=True, vertical_alignment="center"):
        caption("Underlined where the model was less sure. Click a piece to pin its row.")
        own = cache.translation(model.name, text)[0]
        board.board(own.trace.maps)
        wanted = _wanted(text, own.text)
    given = _given(model, text) if wanted else ""
    reading = Reading(model.name, text, given, interventions.translated_again(model, text, given))
    shown = cache.reading(*reading)
    with line:
        pinned = controls.pinned(text, "target")
        tokens(shown.steps, pinned, key="translation", on_pin=lambda at: controls.pin(text, {"target": at}))
    hints(model, shown)
    return reading, shown


def _wanted(text: str, own: str) -> bool:
    """Whether a given translation is read instead of the model's own; with another sentence it no longer is."""
    state = st.session_state
    if state.setdefault("given-of", text) != text:
        state["given-of"], state["forced"] = text, False

    def switched() -> None:
        if state["forced"] and (state.get("given-for") != text or not state.get("given")):
            state["given"], state["given-for"] = own, text  # what the model wrote, for the visitor to change

    return st.toggle("Given translation", key="forced", on_change=switched, **SHARED)


def _given(model: Translator, text: str) -> str:
    """The translation that a visitor types and what the model thinks of it; "" where it cannot be read."""
    given = typed().strip()
    if not given:
        return ""
    try:
        caption(given_in_words(cache.given(model.name, text, given).steps))
    except InputError as error:
        st.info(plain(str(error)))
        return ""
    return given
