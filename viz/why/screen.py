"""The chosen view of Why, and the sentence that stands in its place where a question has no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from model.attribution.target import AttributionError
from model.translate import InputError

from ..ui import theme
from ..ui.captions import plain
from . import deletion, heads, score, shares, source_words

if TYPE_CHECKING:
    from ..export.save import SavedView
    from ..ui.addresses.why import View
    from .controls import Question

VIEWS = {
    "source words": source_words.show,
    "deletion": deletion.show,
    "heads": heads.show,
    "score": score.show,
    "source or prefix": shares.show,
}


def show(view: View, question: Question) -> SavedView | None:
    """Draw a view of the question; returns what can be saved of it."""
    try:
        return VIEWS[view](question, theme.palette())
    except (AttributionError, InputError) as error:
        st.info(plain(str(error)))
        return None
