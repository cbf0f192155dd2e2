"""A plotly chart that does not blink when it changes and hears which cell is clicked.

Streamlit reports no clicks on heatmap cells and mounts a chart anew at every change; chart.js mends both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from ..bundle import component
from ..presenter import SCENE, presenting

if TYPE_CHECKING:
    import plotly.graph_objects as go

_mount = component("chart")

Node = tuple[int, int, str]
"""Row and column of a point that can be chosen, and what it is called."""


def chart(
    figure: go.Figure,
    alt: str,
    *,
    key: str,
    on_cell: Callable[[int, int], None],
    nodes: Sequence[Node] = (),
    fixed: bool = False,
) -> None:
    """Show `figure`, described to screen readers by `alt`; `on_cell(row, column)` hears of a click on a cell.

    The arrow keys go through the `nodes`, and Enter chooses one as a click does. A figure that is `fixed` keeps its
    height on the whole screen too: it counts on it to place what it is made of.
    """

    def clicked() -> None:
        cell = st.session_state[f"{key}-clicks"].cell
        on_cell(round(cell["row"]), round(cell["column"]))

    frame = f"{key}-frame"
    if presenting() and not fixed:
        figure = type(figure)(figure).update_layout(height=min(figure.layout.height or SCENE, SCENE))
    with st.container(key=frame):
        named = [{"row": row, "column": column, "name": name} for row, column, name in nodes]
        _mount(key=f"{key}-clicks", data={"frame": frame, "label": alt, "nodes": named}, on_cell_change=clicked)
        st.plotly_chart(figure, theme=None, key=key, alt=alt, config={"displayModeBar": False})
