"""The atlas that the page Heads shows, or the sentence in its place; its heads as they are named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.atlas.folder import AtlasError

from ..ui.captions import caption, plain
from . import cache, texts

if TYPE_CHECKING:
    from model.heads.atlas import Atlas
    from model.translate import Translator

STYLE = Path(__file__).parent / "heads.css"


def atlas(model: Translator) -> Atlas | None:
    """The atlas of the model, with what it was made of said; None, and why, where there is none that can be used."""
    try:
        found = cache.atlas(model.name, model.checkpoint.hash)
    except AtlasError as error:
        st.info(plain(str(error)))
        return None
    caption(texts.corpus(found))
    return found
