"""A translation before and after, the changed words marked."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from ..decode.compare import Mark


def versions(before: str, words: Sequence[tuple[str, Mark]]) -> None:
    """`before` in small type, the new translation in large, its new words in the accent colour."""
    st.html(markup(before, words))


def markup(before: str, words: Sequence[tuple[str, Mark]]) -> str:
    shown = [
        f'<span class="{mark}">{html.escape(word)}</span>' if mark == "new" else html.escape(word)
        for word, mark in words
        if mark != "gone"
    ]
    after = "".join(shown) or "(nothing)"
    return (
        f'<div class="versions"><p class="before" dir="auto">{html.escape(before)}</p>'
        f'<p class="after" dir="auto">{after}</p></div>'
    )
