"""A plotly chart that does not blink when it changes and hears which cell is clicked.

Streamlit reports no clicks on heatmap cells and mounts a chart anew at every change; chart.js mends both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Literal

import streamlit as st

from ...figures.stage import staged
from ..bundle import component
from ..presenter import presenting

if TYPE_CHECKING:
    import plotly.graph_objects as go

_mount = component("chart")
GROWS = 200
"""Pixels from which on a figure takes the height that a scene has for it, as in shared/stage_sizes.js."""

Node = tuple[int, int, str]
"""Row and column of a point that can be chosen, and what it is called."""


def chart(
    figure: go.Figure,
    alt: str,
    *,
    key: str,
    on_cell: Callable[[int, int], None],
    nodes: Sequence[Node] = (),
) -> None:
    """Show `figure`, described to screen readers by `alt`; `on_cell(row, column)` hears of a click on a cell.

    The arrow keys go through the `nodes`, and Enter chooses one as a click does.
    """

    def clicked() -> None:
        cell = st.session_state[f"{key}-clicks"].cell
        on_cell(round(cell["row"]), round(cell["column"]))

    frame = f"{key}-frame"
    with st.container(key=frame):
        named = [{"row": row, "column": column, "name": name} for row, column, name in nodes]
        _mount(key=f"{key}-clicks", data={"frame": frame, "label": alt, "nodes": named}, on_cell_change=clicked)
        plot(figure, alt, key=key)


def plot(figure: go.Figure, alt: str, *, key: str) -> None:
    """Show `figure`, described to screen readers by `alt`; on the whole screen as high as there is room."""
    if presenting():
        figure = staged(figure)
    grows = presenting() and (figure.layout.height or GROWS) >= GROWS
    with st.container(key=f"{key}-grows") if grows else nullcontext():
        height: Literal["stretch", "content"] = "stretch" if grows else "content"
        st.plotly_chart(figure, theme=None, height=height, key=key, alt=alt, config={"displayModeBar": False})
