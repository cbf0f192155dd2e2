"""Saving what a page shows: PNG and SVG as it stands there, a self-contained HTML page, and the numbers as CSV."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from .components.save import save_buttons

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Saved:
    """What can be saved of a view. The two functions run only when somebody saves, and use no Streamlit."""

    name: str
    """Of the file, without its ending."""
    figure: Callable[[], go.Figure]
    numbers: Callable[[], pd.DataFrame]


def save(what: Saved, frame: str) -> None:
    """A folded-away menu; `frame` is the key of the container that holds the pictures."""
    with st.popover("Save", type="tertiary", key="save"):
        save_buttons(frame, what.name, key="save-pictures")
        _download("Interactive page (HTML)", lambda: what.figure().to_html(include_plotlyjs=True), what.name, "html")
        _download("Numbers (CSV)", lambda: what.numbers().to_csv(), what.name, "csv")


def _download(label: str, made: Callable[[], str], name: str, ending: str) -> None:
    st.download_button(
        label, made, f"{name}.{ending}", f"text/{ending}", on_click="ignore", key=f"save-{ending}", width="stretch"
    )
