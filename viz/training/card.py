"""The model card, as it stands beside the weights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import say

from ..ui import cache
from ..ui.captions import caption
from ..ui.table import table

if TYPE_CHECKING:
    from model.translate import Translator

LONGEST = 50_000
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
IMAGE = re.compile(r"!\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?")
DIRECTIVE = re.compile(r":(?=[a-z_+-]+(\[|:|/))")


def show(model: Translator) -> None:
    text = cache.card(model.name)
    with st.container(key="card"):
        if text.strip():
            st.markdown(harmless(text))
        else:
            caption(say("{model} has no card yet. Its configuration says:", model=model.name))
            table(["", ""], [[str(name), str(fact)] for name, fact in model.card.items()], say("Facts"))


def harmless(text: str) -> str:
    """A card's Markdown without what is more than text: comments, pictures (which would be fetched from elsewhere),
    formulas, Streamlit's own directives. HTML in it is shown, not run."""
    text = IMAGE.sub(r"\1", COMMENT.sub("", text[:LONGEST]))
    parts = re.split(r"(`[^`\n]*`)", text)
    parts[::2] = [DIRECTIVE.sub(r"\\:", part).replace("$", r"\$") for part in parts[::2]]
    return "".join(parts)
