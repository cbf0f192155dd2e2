"""Source words and deletion for a user's own model: what can be computed where its modules are not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
import streamlit as st

from model.attribution.foreign import COMPUTED
from model.attribution.target import AttributionError
from model.language.say import say, sentences, to_say
from model.user_model import LocalError, LocalModel
from viz.components.chart import chart
from viz.components.presenter import on_stage
from viz.components.signed_text import packed, signed_text
from viz.export.parts import Chart, Component, Part, Words
from viz.export.save import SavedView, facts_of, save
from viz.figures.labels import readable
from viz.figures.why.deletion import deletion as figure
from viz.ui import cache as shared
from viz.ui import controls, theme, widgets
from viz.ui.addresses.pins import PIN, pin, pin_of
from viz.ui.addresses.why import WHY, View
from viz.ui.captions import caption, plain

from .. import cache
from .. import controls as why
from ..texts import deletion as deletion_texts
from ..texts import word as texts
from . import deletion
from .source_words import HINT, method_matrix, shaded_texts
from .source_words import numbers as scores_table

if TYPE_CHECKING:
    from model.attribution.methods import Attribution
    from model.trace import AttentionTrace
    from viz.figures.palette import Palette

TITLE = to_say("Every method for this piece")
Drawn = tuple[str, Callable[["Palette"], list[Part]], Callable[[], pd.DataFrame]]
"""The title of a view, its parts in the colours of a palette, and its numbers."""


class Asked(NamedTuple):
    """What is looked at."""

    model: str
    sentence: str
    position: int
    """Of the piece, from 0."""
    method: str


def show(own: LocalModel) -> None:
    """Draw the page: the sentence, the piece that is explained, and its scores or what is left without the first."""
    text = controls.plain_sentence(lambda: None)
    PIN.hold(of=text)
    if not text.strip():
        st.info(say("Type a sentence for the model to read."))
        return
    try:
        trace = shared.local_trace(own.name, text).trace
        with st.container(key="bar", horizontal=True, vertical_alignment="center"):
            view = widgets.segmented_control(say("View"), WHY, tuple(VIEWS))
            position = _piece(trace, text)
            every = cache.user_attributions(own.name, text, position)
            asked = Asked(own.name, text, position, why.method(every))
            menu = st.container(key="saving", width="content")
        title, parts, numbers = VIEWS[view](asked, every)
    except (AttributionError, LocalError) as error:
        st.info(plain(str(error)))
        return
    missing = cache.not_computed(own.name, text, position)
    caption(missing)
    facts = facts_of(trace, word=every[asked.method].target.word, method=asked.method)
    name = f"why-{view.replace(' ', '-')}"
    sentence = Words(text, "sentence", "large")
    with menu:
        save(SavedView(name, lambda of: [sentence, *parts(of), Words(missing)], numbers, title, facts, width=1280))


def _scores(asked: Asked, every: Mapping[str, Attribution]) -> Drawn:
    """Shaded text by the chosen method, and the matrix of both."""
    found = every[asked.method]
    meaning = say("{method}: {meaning}.", method=say(asked.method), meaning=say(COMPUTED[asked.method]))
    says = [sentences(texts.value(found.target, found.target_value), texts.strongest(found))]
    says += [sentences(meaning, say(texts.COLOURS)), texts.trust(every)]
    says += [texts.completeness(every["integrated-gradients"])]
    hint, title = "" if on_stage() else say(HINT), say(TITLE)
    with st.container(key="picture"):
        signed_text(shaded_texts(found, hint), theme.palette(), says[0], key="shaded")
        matrix = method_matrix(every, asked.method, theme.palette())
        chart(matrix, title, key="methods", on_cell=lambda _, __: None)
    caption(sentences(*says))

    def parts(of: Palette) -> list[Part]:
        shaded = Component("signed_text", packed(shaded_texts(found, hint), of, says[0]))
        return [shaded, Chart(method_matrix(every, asked.method, of), title), *map(Words, says)]

    return title, parts, lambda: scores_table(every)


def _deletion(asked: Asked, every: Mapping[str, Attribution]) -> Drawn:
    """What is left of the piece's probability, by the order of each method and in random orders."""
    curves = cache.user_deletion_curves(*asked[:3])
    says = [deletion_texts.first_two(curves, every[asked.method]), deletion_texts.best(curves)]
    alt = deletion.draw(curves, asked.method, theme.palette(), *says)
    says.append(deletion_texts.explained(deletion_texts.BY_EMBEDDINGS))
    caption(says[-1])
    word = every[asked.method].target.word

    def parts(of: Palette) -> list[Part]:
        return [Chart(figure(curves, asked.method, of), alt), *map(Words, says)]

    return deletion.title_of(word), parts, lambda: deletion.numbers(curves)


VIEWS: dict[View, Callable[[Asked, Mapping[str, Attribution]], Drawn]] = {
    "source words": _scores,
    "deletion": _deletion,
}


def _piece(trace: AttentionTrace, text: str) -> int:
    """Draw the choice among the pieces that the model predicts, the first until one is chosen."""
    pieces = next((one.rows("predicted") for kind, one in trace.maps.items() if kind != "encoder"), ())
    if not pieces:
        raise AttributionError(say("This model has no decoder whose words could be explained."))
    pinned = pin_of(text, "target")
    st.session_state["own-piece"] = pinned if pinned is not None and pinned < len(pieces) else 0
    choose = lambda: pin(text, {"target": st.session_state["own-piece"]})  # noqa: E731
    name = lambda at: f"{at + 1} · {readable(pieces[at])}"  # noqa: E731
    return widgets.offer(
        st.selectbox, say("Piece"), range(len(pieces)), format_func=name, key="own-piece", on_change=choose, width=240
    )
