"""Tables as HTML, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

Cell = str | tuple[str, str]
"""A text, or a text and the class that says how it looks."""


def markup(headings: Sequence[str], rows: Sequence[Sequence[Cell]], name: str) -> str:
    """A table; the first column names its row."""
    head = "".join(f'<th scope="col">{html.escape(one)}</th>' for one in headings)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    return (
        f'<div class="table"><table aria-label="{html.escape(name)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[Cell]], name: str) -> None:
    st.html(markup(headings, rows, name))


def _row(row: Sequence[Cell]) -> str:
    cells = []
    for at, cell in enumerate(row):
        text, look = (cell, "") if isinstance(cell, str) else cell
        tag = 'th scope="row"' if at == 0 else "td"
        looks = f' class="{html.escape(look)}"' if look else ""
        cells.append(f"<{tag}{looks}>{html.escape(text)}</{tag[:2]}>")
    return "".join(cells)
