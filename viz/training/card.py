"""The model card, as it stands beside the weights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import say

from ..export.parts import Table, Words
from ..export.save import SavedView, save
from ..ui import cache
from ..ui.captions import caption
from ..ui.table import Cell, table
from .card_parts import card_parts

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.translate import Translator

LONGEST = 50_000
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
IMAGE = re.compile(r"!\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?")
DIRECTIVE = re.compile(r":(?=[a-z_+-]+(\[|:|/))")


def show(model: Translator, bar: DeltaGenerator) -> None:
    text, title = cache.card(model.name), say("Card of {model}", model=model.name)
    facts: list[list[Cell]] = [[str(name), str(fact)] for name, fact in model.card.items()]
    missing = say("{model} has no card yet. Its configuration says:", model=model.name)
    with st.container(key="card"):
        if text.strip():
            st.markdown(harmless(text))
        else:
            caption(missing)
            table(["", ""], facts, say("Facts"))
    parts = card_parts(without_pictures(text), title) or [Words(missing), Table(["", ""], facts, say("Facts"))]
    with bar, st.container(key="saving", width="content"):
        save(SavedView(f"card-{model.name}", lambda _: parts, None, title, {"model": model.name}))


def without_pictures(text: str) -> str:
    """A card's Markdown without comments and pictures, which would be fetched from elsewhere."""
    return IMAGE.sub(r"\1", COMMENT.sub("", text[:LONGEST]))


def harmless(text: str) -> str:
    """A card's Markdown without what is more than text: comments, pictures, formulas, Streamlit's own directives. HTML
    in it is shown, not run."""
    parts = re.split(r"(`[^`\n]*`)", without_pictures(text))
    parts[::2] = [DIRECTIVE.sub(r"\\:", part).replace("$", r"\$") for part in parts[::2]]
    return "".join(parts)
