"""The look of every page: which palette is on, and the one style sheet."""

from __future__ import annotations

import json
from pathlib import Path

import streamlit as st

from model.language.say import say

from ..components.theme_watch import theme_watch
from ..figures.palette import DARK, LIGHT, Palette

STYLE = Path(__file__).parent / "style.css"


def words() -> str:
    """The words that the style sheet writes."""
    said = {"try": say("Try"), "add": say("Add")}
    return "".join(f"--{name}: {json.dumps(text, ensure_ascii=False)};" for name, text in said.items())


def palette() -> Palette:
    """The colours of the theme this visitor sees."""
    return DARK if _scheme() == "dark" else LIGHT


def watch() -> None:
    """Run the page again when its visitor switches between light and dark."""
    theme_watch(_scheme())


def _scheme() -> str:
    return st.context.theme.type or "light"
