"""The screen of Explore: all heads of a trace, and the chosen one large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import say
from viz.components.overview import overview
from viz.ui import controls
from viz.ui.captions import caption

from .. import choices
from ..captions import head_claim, order_captions
from ..saving import SHARES
from ..scene import Scene
from . import head_views, two_sides

if TYPE_CHECKING:
    from model.trace import AttentionTrace, Kind

    from ..token_display import Display
    from ..trace_source import TraceSource

STYLE = Path(__file__).parents[1] / "explore.css"
"""The style of this page beyond that of all pages."""


def screen(source: TraceSource) -> None:
    """Draw the overview of all heads and the chosen view of the chosen head, with their controls."""
    with st.container(key="viewbar", horizontal=True, vertical_alignment="center"):
        kind = controls.kind_of(tuple(source.trace.maps))
        view, comparing = choices.view()
        with st.container(key="menus", horizontal=True, vertical_alignment="center", width="content"):
            head_views.question_mark(view, comparing=comparing)
            display = _with_known_rows(choices.display(), source.trace)
            menu = st.container(width="content")
    left, right = st.columns(SHARES, gap="large")
    with left:
        scene = _heads(source, kind, display, depends=view not in choices.OF_ALL_HEADS)
        card = st.container()
    with right, st.container(key="head-picture"):
        if view not in choices.OF_ALL_HEADS:
            head_claim(scene)
        try:
            draw = two_sides.show if comparing else head_views.show
            draw(view, scene, menu)
        except source.view_errors as error:
            caption(say("This view cannot be drawn of this trace: {error}.", error=error))
    with card:  # after the pictures: it may have to run the model
        source.word_card()


def _heads(source: TraceSource, kind: Kind, display: Display, *, depends: bool) -> Scene:
    """Draw the overview with the controls that choose a head, and return the scene of that head.

    The tiles are faint where what is shown beside them does not depend on the head.
    """
    maps = source.trace.maps
    with st.container(key="orderbar", horizontal=True, vertical_alignment="center"):
        layer, head = choices.head(maps[kind])
        order = choices.order(kind, source)
        if "cross" in maps:
            choices.find_aligning(maps["cross"])
    tiles = st.container(key="tiles" if depends else "tiles-of-another-view")
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
    source.head_controls(maps[kind], layer, head)
    order_captions(scene, order)
    return scene


def _with_known_rows(display: Display, trace: AttentionTrace) -> Display:
    """Name the decoder's rows by the tokens fed in where the trace does not have the tokens predicted."""
    known = all(one.predicted_tokens for kind, one in trace.maps.items() if kind != "encoder")
    return display if known else replace(display, rows="fed")
