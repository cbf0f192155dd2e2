"""The chosen view of Heads, and the sentence that stands in its place where it has no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from model.atlas.folder import AtlasError
from model.heads.pruning_curves import PruningError
from model.heads.question import QuestionError
from model.heads.timeline_table import TimelineError
from model.word_alignment.rates import AlignmentError

from ...ui.captions import plain
from ...ui.controls import ours
from .. import controls
from . import alignment, all_heads, one_head, over_training, projection, pruning, searching

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.atlas import Atlas
    from model.live.live_model import LiveModel
    from model.translate import Translator

    from ...export.save import SavedView
    from ...ui.addresses.heads import View

OF_ATLAS: dict[View, Callable[[LiveModel, Atlas, DeltaGenerator], SavedView | None]] = {
    "map": all_heads.show,
    "head": one_head.show,
    "search": searching.show,
    "projection": projection.show,
}
OF_MODEL: dict[View, Callable[[Translator, DeltaGenerator], SavedView | None]] = {
    "alignment": alignment.show,
    "over training": over_training.show,
}
"""Views that need no atlas: what they show is kept beside the model."""
OF_SENTENCE: dict[View, Callable[[Translator, str, DeltaGenerator], SavedView | None]] = {
    "pruning": pruning.show,
}
"""The same, with a sentence."""


def show(view: View, model: LiveModel, text: str, bar: DeltaGenerator) -> SavedView | None:
    """Draw a view, what it offers in `bar`; returns what can be saved of it."""
    try:
        if view in OF_SENTENCE:
            return OF_SENTENCE[view](ours(model, "kept measures"), text, bar)
        if view in OF_MODEL:
            return OF_MODEL[view](ours(model, "kept measures"), bar)
        atlas = controls.atlas(model)
        return OF_ATLAS[view](model, atlas, bar) if atlas else None
    except (AtlasError, QuestionError, AlignmentError, PruningError, TimelineError) as error:
        st.info(plain(str(error)))
        return None
