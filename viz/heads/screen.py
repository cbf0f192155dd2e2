"""The chosen view of Heads, and the sentence that stands in its place where it has no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from model.atlas.folder import AtlasError
from model.heads.question import QuestionError

from ..ui.captions import plain
from . import all_heads, one_head, searching

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.atlas import Atlas
    from model.translate import Translator

    from ..export.save import SavedView
    from ..ui.addresses.heads import View

VIEWS: dict[View, Callable[[Translator, Atlas, DeltaGenerator], SavedView | None]] = {
    "map": all_heads.show,
    "head": one_head.show,
    "search": searching.show,
}


def show(view: View, model: Translator, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    """Draw a view of the atlas, what it offers in `bar`; returns what can be saved of it."""
    try:
        return VIEWS[view](model, atlas, bar)
    except (AtlasError, QuestionError) as error:
        st.info(plain(str(error)))
        return None
