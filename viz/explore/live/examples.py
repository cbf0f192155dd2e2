"""Sentences that each show one phenomenon, with the head and the row at which it is seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.language.current import current_language
from model.language.say import say
from model.language.texts import texts_in
from viz.ui import cache
from viz.ui.addresses.explore import VIEW
from viz.ui.addresses.pins import pin
from viz.ui.addresses.shared import KIND, SENTENCE
from viz.ui.captions import plain
from viz.ui.controls import choose

if TYPE_CHECKING:
    from model.live.live_model import LiveModel
    from model.trace import AttentionMap

FILE = Path(__file__).parent / "examples.toml"
LANGUAGES = ("en", "de")
"""What a model reads and writes that the examples are for."""
MOST = 0.5
"""The weight above which a row looks at one token more than at all others together."""


@dataclass(frozen=True)
class Example:
    """A sentence, what it shows, and the row and the column of cross-attention at which it is seen."""

    phenomenon: str
    sentence: str
    query: str
    """The piece of the translation whose row shows it."""
    key: str
    """The piece of the sentence that this row looks at."""
    written: str
    """What stands in the translation."""
    see: str
    """What to see, in one sentence."""
    jumps: bool = False
    """Whether the row looks left of where the row before it looks."""


@dataclass(frozen=True)
class Place:
    """Where an example is seen in a map, all from 0."""

    layer: int
    head: int
    row: int
    column: int


def examples() -> tuple[Example, ...]:
    """Return the examples that ship with the project, in the current language."""
    return _examples(current_language())


@once
def _examples(language: str) -> tuple[Example, ...]:
    return tuple(Example(**one) for one in texts_in(FILE, language)["example"])


def place_of(example: Example, cross: AttentionMap) -> Place | None:
    """Return the head that links the example's row most to its column; None where no head links them by `MOST`."""
    rows = [token.strip() for token in cross.rows("predicted")]
    columns = [token.strip() for token in cross.key_tokens]
    if example.query not in rows or example.key not in columns:
        return None
    row, column = len(rows) - 1 - rows[::-1].index(example.query), columns.index(example.key)
    weights = cross.weights[:, :, row, column]
    layer, head = np.unravel_index(weights.argmax(), weights.shape)
    return Place(int(layer), int(head), row, column) if weights[layer, head] > MOST else None


def languages(model: LiveModel) -> tuple[str, str]:
    """Return the codes of the languages that a model reads and writes, "" where its card does not say them."""
    return model.card.get("source_language", ""), model.card.get("target_language", "")


def menu(model: LiveModel) -> None:
    """Draw the list of examples, folded away; nothing for a model of other languages."""
    if not model.can("examples") or languages(model) != LANGUAGES:
        return

    def open_example(example: Example) -> None:
        st.session_state[SENTENCE.key] = example.sentence
        st.session_state[KIND.key], st.session_state[VIEW.key] = "cross", "heatmap"
        cross = cache.translation(model.name, example.sentence)[0].trace.cross
        place = place_of(example, cross) if cross else None
        if place:
            choose(place.layer, place.head)
            pin(example.sentence, {"target": place.row})

    # Keyed by the sentence, so that the list closes once one is chosen.
    key = f"examples beside {SENTENCE.get()}"
    with st.popover(say("Examples"), type="tertiary", key=key), st.container(key="example-list"):
        for at, example in enumerate(examples()):
            text = f"**{plain(example.phenomenon)}** {plain(example.sentence)}"
            st.button(text, key=f"phenomenon-{at}", type="tertiary", on_click=open_example, args=(example,))


def what_to_see(text: str, written: str, cross: AttentionMap, layer: int, head: int, row: int | None) -> str:
    """Return the sentence of the example that is looked at: `text`, its translation `written`, and a row of a head.

    "" where the example's row, its head, its link or its words are not what is shown.
    """
    for example in examples():
        if example.sentence == text and example.written in written:
            place = place_of(example, cross)
            if place and (place.layer, place.head, place.row) == (layer, head, row):
                return example.see
    return ""
