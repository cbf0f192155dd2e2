"""All heads of a trace and the chosen one: Explore without a model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import streamlit as st

from model.trace import Kind
from viz.components.overview import overview
from viz.explore import choices, head_views
from viz.explore.captions import arranged_in_words, head_captions
from viz.explore.view_texts import View
from viz.ui import controls
from viz.ui.captions import caption, plain

from . import derived
from .scene import TraceScene, scene_of

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.untrusted_trace import Opened
    from viz.explore.choices import Display

LIVE: dict[View, str] = {
    "layers": "What each layer would write needs a running model of this project: a trace holds attention only.",
}
NEEDS = "capture_attention(model, tensors=['q', 'k', 'v', 'scores', 'masked_scores'])"


@st.fragment
def pictures(opened: Opened) -> None:
    """A fragment: a click here leaves what stands above alone."""
    left, right = st.columns([0.42, 0.58], gap="large")
    with right, st.container(key="viewbar", horizontal=True, vertical_alignment="center"):
        view = choices.view()
        head_views.question_mark(view)
        display = choices.display()
        menu = st.container(width="content")
    with left:
        with st.container(key="kindbar", horizontal=True, vertical_alignment="center"):
            kind = _kind(opened)
            display = _named_rows(opened, kind, display)
            order, measure = choices.order(opened.shown.maps[kind], derived.statistics(opened, kind))
        arranged = derived.arranged(opened, kind, display)
        tiles = st.container()
        with st.container(key="placebar", horizontal=True, vertical_alignment="center"):
            layer, head = controls.place(arranged.captured)
        scene = scene_of(opened, arranged, layer, head, display)
        with tiles:
            shown = derived.tiles(opened, arranged.attention)
            overview(shown, layer, head, display.look, order, key="overview", on_pick=controls.choose)
        head_captions(scene, measure)
    with right:
        _view(view, scene, menu)
        arranged_in_words(arranged)


def _named_rows(opened: Opened, kind: Kind, display: Display) -> Display:
    """Rows can only be named by the tokens predicted where the trace knows them."""
    return display if opened.shown.maps[kind].predicted_tokens else dataclasses.replace(display, rows="fed")


def _kind(opened: Opened) -> Kind:
    """Which of the maps that are there."""
    kinds = list(opened.shown.maps)
    if st.session_state.get("opened-kind") not in kinds:
        st.session_state["opened-kind"] = kinds[-1]
    found = st.segmented_control(
        "Attention", kinds, required=True, key="opened-kind", label_visibility="collapsed", persist_state="session"
    )
    return found or kinds[-1]


def _view(view: View, scene: TraceScene, menu: DeltaGenerator) -> None:
    """A view of a trace. Its arrays were written by anybody and need not fit each other as those of a model do."""
    if view in LIVE:
        st.info(LIVE[view])
        return
    if view == "pipeline" and "q" not in scene.whole_trace.maps[scene.kind].tensors:
        st.info(plain(f"This trace holds no queries, keys, values and scores. Capture it with {NEEDS}."))
        return
    try:
        head_views.show(view, scene, menu)
    except (ValueError, IndexError, KeyError) as error:
        caption(f"This view cannot be drawn of this trace: {error}.")
