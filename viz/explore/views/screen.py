"""The screen of Explore: all heads of a trace, and the chosen one large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from viz.components.overview import overview
from viz.ui import controls
from viz.ui.captions import caption

from .. import choices
from ..captions import head_captions
from ..saving import SHARES
from ..scene import Scene
from . import head_views

if TYPE_CHECKING:
    from model.trace import AttentionTrace

    from ..token_display import Display
    from ..trace_source import TraceSource

STYLE = Path(__file__).parents[1] / "explore.css"
"""The style of this page beyond that of all pages."""


def screen(source: TraceSource) -> None:
    """Draw the overview of all heads and the chosen view of the chosen head, with their controls."""
    left, right = st.columns(SHARES, gap="large")
    with right, st.container(key="viewbar", horizontal=True, vertical_alignment="center"):
        view = choices.view()
        head_views.question_mark(view)
        display = _with_known_rows(choices.display(), source.trace)
        menu = st.container(width="content")
    with left:
        scene = _heads(source, display)
        card = st.container()
    with right:
        try:
            head_views.show(view, scene, menu)
        except source.view_errors as error:
            caption(f"This view cannot be drawn of this trace: {error}.")
    with card:  # after the pictures: it may have to run the model
        source.word_card()


def _heads(source: TraceSource, display: Display) -> Scene:
    """Draw the overview with the controls that choose a head, and return the scene of that head."""
    maps = source.trace.maps
    with st.container(key="kindbar", horizontal=True, vertical_alignment="center"):
        kind = choices.kind(tuple(maps))
        order = choices.order(kind, source)
        if "cross" in maps:
            choices.find_aligning(maps["cross"])
    tiles = st.container()
    with st.container(key="placebar", horizontal=True, vertical_alignment="center"):
        layer, head = controls.place(maps[kind])
        source.head_controls(maps[kind], layer, head)
    scene = Scene(source, source.display_tokens(kind, display), layer, head, display)
    with tiles:
        overview(
            source.tiles(scene.attention),
            layer,
            head,
            display.look,
            order.heads,
            source.changed_heads(kind),
            key="overview",
            on_pick=controls.choose,
        )
    head_captions(scene, order)
    return scene


def _with_known_rows(display: Display, trace: AttentionTrace) -> Display:
    """Name the decoder's rows by the tokens fed in where the trace does not have the tokens predicted."""
    known = all(one.predicted_tokens for kind, one in trace.maps.items() if kind != "encoder")
    return display if known else replace(display, rows="fed")
