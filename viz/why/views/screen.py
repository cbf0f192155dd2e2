"""The chosen view of Why, and the sentence that stands in its place where a question has no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from model.attribution.target import AttributionError
from model.translate import InputError
from viz.ui import theme
from viz.ui.captions import plain

from . import deletion, heads, layers, score, shares, source_words, two_sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from viz.export.save import SavedView
    from viz.figures.palette import Palette
    from viz.ui.addresses.why import View

    from ..controls import Question

VIEWS: dict[View, Callable[[Question, Palette], SavedView | None]] = {
    "source words": source_words.show,
    "deletion": deletion.show,
    "heads": heads.show,
    "score": score.show,
    "source or prefix": shares.show,
    "two sentences": two_sentences.show,
    "layers": layers.show,
}


def show(view: View, question: Question) -> SavedView | None:
    """Draw a view of the question; returns what can be saved of it."""
    try:
        return VIEWS[view](question, theme.palette())
    except (AttributionError, InputError) as error:
        st.info(plain(str(error)))
        return None
