"""Source words for a user's own model: what can be computed where its modules are not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from model.attribution.foreign import COMPUTED, NOT_COMPUTED
from model.attribution.target import AttributionError
from model.user_model import LocalError, LocalModel
from viz.components.chart import chart
from viz.components.signed_text import packed, signed_text
from viz.export.parts import Chart, Component, Part, Words
from viz.export.save import SavedView, facts_of, save
from viz.figures.labels import readable
from viz.ui import cache as shared
from viz.ui import controls, theme, widgets
from viz.ui.addresses.pins import PIN, pin, pin_of
from viz.ui.addresses.why import ATTRIBUTION
from viz.ui.captions import caption, plain

from .. import cache
from ..texts import word as texts
from .source_words import method_matrix, numbers, shaded_texts

if TYPE_CHECKING:
    from model.trace import AttentionTrace
    from viz.figures.palette import Palette

TITLE = "Every method for this piece"


def show(own: LocalModel) -> None:
    """Draw the page: the sentence, the piece that is explained, and its scores."""
    text = controls.plain_sentence(lambda: None)
    PIN.hold(of=text)
    if not text.strip():
        st.info("Type a sentence for the model to read.")
        return
    try:
        trace = shared.local_trace(own.name, text).trace
        with st.container(key="bar", horizontal=True, vertical_alignment="center"):
            position = _piece(trace, text)
            method = _method()
            menu = st.container(key="saving", width="content")
        every = cache.user_attributions(own.name, text, position)
    except (AttributionError, LocalError) as error:
        st.info(plain(str(error)))
        return
    found = every[method]
    says = [f"{texts.value(found.target, found.target_value)} {texts.strongest(found)}"]
    says += [f"{COMPUTED[method].capitalize()}. {texts.COLOURS}", texts.trust(every), NOT_COMPUTED]
    with st.container(key="picture"):
        signed_text(shaded_texts(found), theme.palette(), says[0], key="shaded")
        chart(method_matrix(every, method, theme.palette()), TITLE, key="methods", on_cell=lambda _, __: None)
    caption(" ".join(says))

    def parts(of: Palette) -> list[Part]:
        shaded = Component("signed_text", packed(shaded_texts(found), of, says[0]))
        return [
            Words(text, "sentence", "large"),
            shaded,
            Chart(method_matrix(every, method, of), TITLE),
            *map(Words, says),
        ]

    facts = facts_of(trace, word=found.target.word, method=method)
    with menu:
        save(SavedView("why-source-words", parts, lambda: numbers(every), TITLE, facts, width=1280))


def _piece(trace: AttentionTrace, text: str) -> int:
    """Draw the choice among the pieces that the model predicts, the first until one is chosen."""
    pieces = next((one.rows("predicted") for kind, one in trace.maps.items() if kind != "encoder"), ())
    if not pieces:
        raise AttributionError("This model has no decoder whose words could be explained.")
    pinned = pin_of(text, "target")
    st.session_state["own-piece"] = pinned if pinned is not None and pinned < len(pieces) else 0
    choose = lambda: pin(text, {"target": st.session_state["own-piece"]})  # noqa: E731
    name = lambda at: f"{at + 1} · {readable(pieces[at])}"  # noqa: E731
    return st.selectbox("Piece", range(len(pieces)), format_func=name, key="own-piece", on_change=choose, width=240)


def _method() -> str:
    if st.session_state.get(ATTRIBUTION.key) not in (None, *COMPUTED):
        del st.session_state[ATTRIBUTION.key]
    return widgets.selectbox("Method", ATTRIBUTION, tuple(COMPUTED), width=270)
