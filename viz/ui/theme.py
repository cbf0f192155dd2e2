"""The look of every page: which palette is on, and the one style sheet."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import streamlit as st

from model.language.current import current_language, speaking
from model.language.say import say, to_say

from ..components.theme_watch import theme_watch
from ..figures.palette import DARK, LIGHT, Palette

STYLE = Path(__file__).parent / "style.css"
WORDS = {"try": to_say("Try"), "add": to_say("Add"), "one-head": to_say("One head"), "all-heads": to_say("All heads")}
"""What style sheets write, by the variable that they read it from."""


def style() -> str:
    """The style element of every page: the sheet and its words in the current language."""
    return _style(current_language())


@functools.cache
def _style(language: str) -> str:
    with speaking(language):
        words = "".join(f"--{name}: {json.dumps(say(text), ensure_ascii=False)};" for name, text in WORDS.items())
    return f"<style>{STYLE.read_text(encoding='utf-8')} :root {{ {words} }}</style>"


def fragment_style(name: str, css: str) -> None:
    """Style the page for as long as this fragment writes it; `name` is unique on the page.

    ``st.html`` puts a style that stands alone outside of the fragment, where Streamlit removes nothing until the whole
    script runs again: a fragment that no longer writes it would leave it on the page.
    """
    with st.container(key=f"style-{name}"):
        st.html(f"<span></span><style>{css}</style>")


def palette() -> Palette:
    """The colours of the theme this visitor sees."""
    return DARK if scheme() == "dark" else LIGHT


def watch() -> None:
    """Run the page again when its visitor switches between light and dark."""
    theme_watch(scheme())


def scheme() -> str:
    """What the palette is called, light or dark."""
    return st.context.theme.type or "light"
