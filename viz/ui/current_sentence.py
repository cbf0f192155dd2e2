"""The sentence that a model reads: the one that the address names, the visitor's, or else the model's welcome.

- The welcome is the first of a model's examples (:func:`list_example_sentences`). Every page, a live file and the tour
  begin with it.
- With another model of the same language comes the same sentence; but a welcome belongs to its model, so that of the
  other one takes its place.
- With a model of another language comes what the visitor read last in that language, or else its welcome; a sentence
  that is in that language already stays. What was read in the language before comes back with a model of it.
- A sentence that is chosen together with a model, by a link, a button, Back or Forward, comes before all this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from attenscope.text.words import LANGUAGE_NAMES, detect_foreign_language
from attenscope.viz.streamlit_internals import is_history_navigation
from attenscope.viz.ui.address import is_in_address
from attenscope.viz.ui.addresses.shared import SENTENCE

EXAMPLE_SENTENCES = {
    "en": ("Where did you buy this red bicycle?", "He turned the radio off.", "The bank by the river was closed."),
    "zh": ("我昨天在图书馆读了一本书。", "你想喝茶还是咖啡？", "他每天早上跑步。"),
}
"""By the language that a model reads."""


@dataclass
class SentenceMemory:
    """What a visitor's session knows of the sentences that were read."""

    model: str = ""
    """The model of the page that was drawn last."""
    language: str = ""
    """The language that it reads."""
    welcome: str = ""
    text: str = ""
    last: dict[str, str] = field(default_factory=dict)
    """The sentence that was read last, by its language; none where that was a welcome."""


def list_example_sentences(card: Mapping[str, Any]) -> Sequence[str]:
    """Sentences that a model can read, the welcome first: those its card names, else those of its language."""
    own = card.get("examples", "")
    return own.split(" | ") if own else EXAMPLE_SENTENCES.get(_source_language(card), ("",))


def put_welcome_sentence(card: Mapping[str, Any]) -> str:
    """Put a model's welcome into the sentence box if nothing has been in it, and return it; comes before the box."""
    welcome = list_example_sentences(card)[0]
    if SENTENCE.key not in st.session_state and not is_in_address(SENTENCE):
        SENTENCE.put(welcome)
    return welcome


def put_model_sentence(model: str, card: Mapping[str, Any]) -> None:
    """Put the sentence that comes with a model into the sentence box; comes before the box."""
    read: SentenceMemory = st.session_state.setdefault("sentences read", SentenceMemory())
    welcome, language = put_welcome_sentence(card), _source_language(card)
    text = SENTENCE.get()
    if read.model not in ("", model) and text == read.text and not is_history_navigation():
        is_own = text.strip() not in ("", read.welcome)
        stays = read.language in LANGUAGE_NAMES and detect_foreign_language(text, read.language) == language
        if read.language != language and not stays:
            read.last.pop(read.language, None)
            if is_own:
                read.last[read.language] = text
            text = read.last.get(language, welcome)
        elif not is_own:
            text = welcome
        SENTENCE.put(text)
    read.model, read.language, read.welcome, read.text = model, language, welcome, text


def _source_language(card: Mapping[str, Any]) -> str:
    return card.get("source_language") or "en"
