"""A text kept in the visitor's browser, so that a reload, a crash or a restart of the server loses nothing of it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from ..bundle import component

_mount = component("draft")


def draft(name: str, text: str, *, on_found: Callable[[str], None]) -> None:
    """Keep `text` under `name`; `on_found(text)` hears, once, of what is kept while `text` is empty."""
    key = f"draft-{name}"
    found = lambda: on_found(str(st.session_state[key].found["text"]))  # noqa: E731
    _mount(key=key, data={"name": name, "text": text}, on_found_change=found)
