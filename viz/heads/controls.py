"""The atlas that the page Heads shows, or the sentence in its place; which head is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.atlas.folder import AtlasError
from model.language.say import say

from ..ui import widgets
from ..ui.addresses.shared import HEAD, KIND, LAYER
from ..ui.captions import caption, plain
from . import cache, texts

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.atlas import Atlas
    from model.live.live_model import LiveModel
    from model.trace import Head

STYLE = Path(__file__).parent / "heads.css"


def atlas(model: LiveModel) -> Atlas | None:
    """The atlas of the model, with what it was made of said; None, and why, where there is none that can be used."""
    try:
        found = cache.atlas(model.name, model.weights_hash)
    except AtlasError as error:
        st.info(plain(str(error)))
        return None
    caption(texts.corpus(found))
    return found


def chosen_head(atlas: Atlas, bar: DeltaGenerator) -> Head:
    """The head of the address; the first of its map where the model has no such head."""
    with bar:
        kind = widgets.segmented_control(say("Attention"), KIND, atlas.maps)
        own = [head for head in atlas.names if head[0] == kind]
        with st.container(key="place", horizontal=True):
            layers, heads = sorted({one[1] + 1 for one in own}), sorted({one[2] + 1 for one in own})
            layer = widgets.offer(
                st.selectbox, say("Layer"), layers, width=90, label_visibility="collapsed", **LAYER.binding
            )
            head = widgets.offer(
                st.selectbox, say("Head"), heads, width=90, label_visibility="collapsed", **HEAD.binding
            )
    return kind, layer - 1, head - 1
