"""Saving what Explore shows: the picture, a page of its own, the weights as a table, and the whole trace."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from viz.components.save import save_buttons

if TYPE_CHECKING:
    from model.trace import AttentionTrace

    from .scene import Scene


@dataclass(frozen=True)
class Shown:
    """What a view has put on the page."""

    frame: str
    """Key of the container that holds the picture."""
    page: Callable[[], str]
    """Makes a self-contained HTML page of it; runs only when somebody saves."""
    numbers: Callable[[], pd.DataFrame] | None = None
    """The table behind it; that of the chosen head where there is no other."""


def save(shown: Shown, scene: Scene, name: str) -> None:
    """A folded-away menu; `name` is of the view."""
    stem = f"{scene.kind}-layer{scene.layer + 1}-head{scene.head + 1}-{name}"
    trace = scene.result.trace
    with st.popover("Save", type="tertiary", key="save"):
        save_buttons(shown.frame, stem, key="save-pictures")
        _download("Interactive page (HTML)", shown.page, f"{stem}.html", "text/html")
        numbers, label = shown.numbers, "Weights of this head (CSV)" if shown.numbers is None else "Its numbers (CSV)"
        _download(label, lambda: (numbers() if numbers else table(scene)).to_csv(), f"{stem}.csv", "text/csv")
        _download(
            "The whole trace (safetensors)", lambda: file_of(trace), "trace.safetensors", "application/octet-stream"
        )


def table(scene: Scene) -> pd.DataFrame:
    """The weights of the head as shown, a row a query; a masked cell is empty."""
    attention = scene.attention
    weights = pd.DataFrame(
        attention.weights[scene.layer, scene.head],
        index=pd.Index(attention.rows(scene.rows), name="query"),
        columns=list(attention.key_tokens),
    )
    return weights.where(attention.mask)


def file_of(trace: AttentionTrace) -> bytes:
    """What :meth:`AttentionTrace.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.safetensors"
        trace.save(path)
        return path.read_bytes()


def _download(label: str, made: Callable[[], str | bytes], name: str, mime: str) -> None:
    st.download_button(label, made, name, mime, on_click="ignore", key=f"save-{mime}", width="stretch")
