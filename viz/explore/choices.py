"""The controls of Explore's pictures. Each returns a plain value, which lives in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import streamlit as st

from model.analysis.alignment import rank_alignment
from model.analysis.head_statistics import Measure, between, rank_heads
from viz.components.overview import Ranked
from viz.figures.flow import FLOWS, Flow
from viz.figures.labels import readable
from viz.ui import controls
from viz.ui.controls import SHARED

from .token_display import Display
from .view_texts import VIEWS, View

if TYPE_CHECKING:
    from model.trace import AttentionMap, Kind

    from .scene import Scene

BY_LAYER = "layer"
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
Layout = Literal["vertical", "horizontal"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
SMALLEST_FIRST: tuple[Measure, ...] = ("entropy", "distance")
"""Measures by which the heads with the smallest values come first."""


def view() -> View:
    """Return the chosen view."""
    return st.segmented_control(
        "View", VIEWS, default="heatmap", required=True, key="view", label_visibility="collapsed", **SHARED
    )


def display() -> Display:
    """Return how maps are shown; the controls are folded away, as they are rarely changed."""
    with controls.display():
        merge = st.toggle("Merge pieces into words", key="words", **SHARED)
        hide = st.toggle("Hide special tokens", key="hide", **SHARED)
        numbers = st.toggle("Write the weights into the cells", key="numbers", **SHARED)
        return Display(*controls.look_choices(), merge, hide, numbers)


def kind(kinds: Sequence[Kind]) -> Kind:
    """Return which of the maps is shown; the last until one is chosen."""
    if st.session_state.get("kind") not in (None, *kinds):
        st.session_state["kind"] = kinds[-1]  # chosen where there were more
    return st.segmented_control(
        "Attention", kinds, default=kinds[-1], required=True, key="kind", label_visibility="collapsed", **SHARED
    )


def order(kind: Kind, statistics: Mapping[Measure, np.ndarray]) -> tuple[tuple[Ranked, ...], Measure | None]:
    """Return the heads of a map ordered by a chosen measure, and the measure; () and None for the order by layer.

    Heads outside a chosen range are faint. `statistics` are those of head_statistics, each (L, H).
    """
    measures = (BY_LAYER, *statistics)
    if st.session_state.get("order") not in (None, *measures):
        st.session_state["order"] = BY_LAYER  # a measure that only another kind of attention has
    with st.popover("Sort heads", type="tertiary", key="sort"):
        measure = st.radio("Order of the heads", measures, key="order", **SHARED)
        if measure == BY_LAYER:
            return (), None
        values = statistics[measure]
        top = max(1.0, float(np.ceil(values.max())))
        low, high = st.slider("Show heads between", 0.0, top, (0.0, top), 0.05, key=f"range-{kind}-{measure}")
    inside = between(values, low, high)
    heads = rank_heads(values, largest_first=measure not in SMALLEST_FIRST)
    return tuple(Ranked(*place, float(values[place]), bool(inside[place])) for place in heads), measure


def find_aligning(attention: AttentionMap) -> None:
    """Draw a button that opens the cross-attention head that aligns best, and orders all heads by how well they do."""

    def open_best() -> None:
        best = rank_alignment(attention)[0]
        st.session_state["kind"], st.session_state["order"] = "cross", "alignment"
        controls.choose(best.layer, best.head)

    st.button("Which head aligns?", type="tertiary", key="aligns", on_click=open_best)


def threshold() -> float:
    """Return the least weight that gets a line."""
    return st.selectbox("Lines from a weight of", THRESHOLDS, 2, key="threshold", width=250, **SHARED)


def layout() -> Layout:
    """Return how the two sides of the lines are laid out."""
    return st.segmented_control(
        "Layout", LAYOUTS, default="vertical", required=True, key="layout", label_visibility="collapsed", **SHARED
    )


def flow() -> tuple[Flow, bool]:
    """Return which mean, rollout or flow is shown, and whether weights are multiplied by the norms of their values."""
    with st.container(key="viewchoices", horizontal=True, vertical_alignment="center"):
        which = st.segmented_control(
            "Flow", FLOWS, default="rollout", required=True, key="flow", label_visibility="collapsed", **SHARED
        )
        weighted = st.toggle("Times value norms", key="norms", **SHARED)
    return which, weighted


def mean_of_heads() -> bool:
    """Return whether all heads of the layer are shown as their mean."""
    return st.toggle("Mean of all heads", True, key="mean", **SHARED)


def query(scene: Scene) -> int:
    """Return the row whose steps are shown: the pinned one, as captured, or the first; choosing a row pins it."""
    names = [readable(token) for token in scene.tokens.original.rows(scene.rows)]
    st.session_state["query"] = scene.captured_query or 0

    def pin() -> None:
        scene.pin_captured(st.session_state["query"])

    return st.selectbox(
        "Query",
        range(len(names)),
        format_func=lambda at: f"{at + 1} {names[at]}",
        key="query",
        width=230,
        on_change=pin,
    )


def step(count: int) -> int:
    """Return the current step of the pipeline, from 0; kept in the address from 1."""
    if "step" not in st.session_state:
        text = st.query_params.get("step", "1")
        st.session_state["step"] = int(text) - 1 if text.isdecimal() else 0
    current = min(max(st.session_state["step"], 0), count - 1)
    if current:
        st.query_params["step"] = str(current + 1)
    elif "step" in st.query_params:
        del st.query_params["step"]
    return current


def go_to_step(to: int) -> None:
    """Go to a step of the pipeline, from 0; for callbacks."""
    st.session_state["step"] = to


def beside(heads: int, head: int) -> tuple[int, ...]:
    """Return the other heads drawn beside the chosen one, from 0; kept in the address from 1: ``beside=2,5``."""
    if "beside" not in st.session_state:
        parts = st.query_params.get("beside", "").split(",")
        st.session_state["beside"] = tuple(sorted({int(part) - 1 for part in parts if part.isdecimal()}))
    others = tuple(one for one in st.session_state["beside"] if 0 <= one < heads and one != head)
    if others:
        st.query_params["beside"] = ",".join(str(one + 1) for one in others)
    elif "beside" in st.query_params:
        del st.query_params["beside"]
    return others


def draw_beside(heads: list[int]) -> None:
    """Draw these heads, from 0, beside the chosen one; for callbacks."""
    st.session_state["beside"] = tuple(heads)
