"""The look of every page: the style sheet, the palette of the colour scheme, and tables as HTML."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from attenscope.language import current_language, say, to_say, use_language
from attenscope.viz.figures.figure_style import DARK, LIGHT, Palette
from attenscope.viz.web.page_components import watch_colour_scheme

# The style sheet and the palette.


STYLE_SHEET = Path(__file__).parent / "style.css"
STYLE_WORDS = {
    "try": to_say("Try"),
    "more": to_say("More"),
}
"""Words that style sheets write, by the name of the CSS variable."""


def build_style_element() -> str:
    """The style element of every page: the sheet and its words in the current language."""
    return _build_style_element(current_language())


@functools.cache
def _build_style_element(language: str) -> str:
    with use_language(language):
        words = "".join(f"--{name}: {json.dumps(say(text), ensure_ascii=False)};" for name, text in STYLE_WORDS.items())
    return f"<style>{STYLE_SHEET.read_text(encoding='utf-8')} :root {{ {words} }}</style>"


def add_fragment_style(name: str, css: str) -> None:
    """Style the page for as long as this fragment writes it; `name` is unique on the page.

    ``st.html`` puts a style that stands alone outside of the fragment, where Streamlit removes nothing until the whole
    script runs again: a fragment that no longer writes it would leave it on the page.
    """
    with st.container(key=f"style-{name}"):
        st.html(f"<span></span><style>{css}</style>")


def get_palette() -> Palette:
    """The colours of the theme this visitor sees."""
    return DARK if get_colour_scheme() == "dark" else LIGHT


def watch() -> None:
    """Run the page again when its visitor switches between light and dark."""
    watch_colour_scheme(get_colour_scheme())


def get_colour_scheme() -> str:
    """The name of the palette: light or dark."""
    return st.context.theme.type or "light"


# Tables as HTML, every text escaped.


TableCell = str | tuple[str, str]
"""A text, or a text and the class that says how it looks."""


def table_html(headings: Sequence[str], rows: Sequence[Sequence[TableCell]], name: str) -> str:
    """A table; the first column names its row."""
    head = "".join(f'<th scope="col">{html.escape(one)}</th>' for one in headings)
    body = "".join(f"<tr>{_row_html(row)}</tr>" for row in rows)
    return (
        f'<div class="table"><table aria-label="{html.escape(name)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def draw_table(headings: Sequence[str], rows: Sequence[Sequence[TableCell]], name: str) -> None:
    st.html(table_html(headings, rows, name))


def _row_html(row: Sequence[TableCell]) -> str:
    cells = []
    for at, cell in enumerate(row):
        text, look = (cell, "") if isinstance(cell, str) else cell
        tag = 'th scope="row"' if at == 0 else "td"
        looks = f' class="{html.escape(look)}"' if look else ""
        cells.append(f"<{tag}{looks}>{html.escape(text)}</{tag[:2]}>")
    return "".join(cells)
