"""The controls of Explore's pictures. Each returns a plain value, which lives in the address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.analysis.alignment import rank_alignment
from model.analysis.head_statistics import EXPLAINED, Measure, between, rank_heads
from model.language.say import number, say, sentences
from viz.components.overview import Ranked
from viz.figures.explore.flow import Flow
from viz.figures.labels import readable, signed
from viz.ui import controls, widgets
from viz.ui.addresses.explore import (
    BESIDE,
    BY_LAYER,
    COMPARED,
    EFFECT,
    FLOW,
    HIDE,
    LAYOUT,
    MEAN,
    NORMS,
    NUMBERS,
    ORDER,
    SINGLE_VIEWS,
    STEP,
    THRESHOLD,
    THROUGH,
    VIEW,
    WORDS,
    Layout,
    LineThreshold,
    SingleView,
)
from viz.ui.addresses.shared import HEAD, KIND, LAYER

from .token_display import Display

if TYPE_CHECKING:
    from model.trace import AttentionMap, Kind

    from .scene import Scene
    from .trace_source import TraceSource

OF_ALL_HEADS: tuple[SingleView, ...] = ("joint", "flow", "layers")
"""Views of all heads of a layer, or of all layers; the others show the chosen head."""
HEAD_TYPED = re.compile(r"\D*(\d{1,3})\D+(\d{1,3})\s*")
"""A layer and a head: ``2.5``, ``2 5``, ``L2 H5``."""
OVER_LAYERS: tuple[Flow, ...] = ("mean of layers", "mean of all")
"""Means that no layer is chosen for."""
SMALLEST_FIRST: tuple[Measure, ...] = ("entropy", "distance")
"""Measures by which the heads with the smallest values come first."""


@dataclass(frozen=True)
class HeadOrder:
    """An order of the heads of a map, and what it is by; without heads it is that of the layers."""

    heads: tuple[Ranked, ...] = ()
    text: str = ""
    measure: Measure | None = None


def view() -> tuple[SingleView, bool]:
    """Return the chosen view, and whether two sides of it are compared."""
    chosen = VIEW.hold()
    st.session_state["comparing"] = chosen == "compare"
    st.session_state["view"] = COMPARED.hold() if chosen == "compare" else chosen

    def choose() -> None:
        picked, comparing = st.session_state["view"], st.session_state["comparing"]
        VIEW.set("compare" if comparing else picked)
        COMPARED.set(picked if comparing else COMPARED.default)

    shown = widgets.offer(
        st.segmented_control,
        say("View"),
        SINGLE_VIEWS,
        key="view",
        format_func=COMPARED.label,
        required=True,
        on_change=choose,
        label_visibility="collapsed",
    )
    comparing = st.toggle(say("Compare"), key="comparing", on_change=choose)
    return shown or COMPARED.default, comparing


def display() -> Display:
    """Return how maps are shown; the controls are folded away, as they are rarely changed."""
    with controls.display():
        merge = widgets.toggle(say("Merge pieces into words"), WORDS)
        hide = widgets.toggle(say("Hide special tokens"), HIDE)
        numbers = widgets.toggle(say("Write the weights into the cells"), NUMBERS)
        return Display(*controls.look_choices(), merge, hide, numbers)


def head(attention: AttentionMap) -> tuple[int, int]:
    """Return the chosen layer and head, from 0: a tile chooses them, or a person types them, from 1."""
    layers, heads = range(1, attention.layers + 1), range(1, attention.heads + 1)
    layer, head = LAYER.hold(layers), HEAD.hold(heads)
    st.session_state["typed"] = f"{layer}.{head}"

    def choose() -> None:
        found = HEAD_TYPED.fullmatch(st.session_state["typed"])
        place = tuple(map(int, found.groups())) if found else (0, 0)
        if 1 <= place[0] <= attention.layers and 1 <= place[1] <= attention.heads:
            controls.choose(place[0] - 1, place[1] - 1)
        else:
            st.toast(
                say(
                    "Type a layer up to {layers} and a head up to {heads}, such as 2.5.",
                    layers=attention.layers,
                    heads=attention.heads,
                )
            )

    st.text_input(say("Head"), key="typed", width=120, max_chars=12, on_change=choose)
    return layer - 1, head - 1


def order(kind: Kind, source: TraceSource) -> HeadOrder:
    """Return the order of the heads of a map that is chosen; heads outside a chosen range are faint."""
    statistics = source.statistics(kind)
    measures = (BY_LAYER, *statistics, *((EFFECT,) if source.run else ()))
    ORDER.hold(measures)  # There are measures that only another kind of attention has.
    with st.popover(say("Sort heads"), type="tertiary", key="sort"):
        measure = widgets.offer(st.radio, say("Order of the heads"), measures, format_func=ORDER.label, **ORDER.storage)
        if measure in statistics:
            return _by_measure(measure, statistics[measure], f"range-{kind}-{measure}")
    effects = source.effects(kind) if measure == EFFECT else None
    return _by_effect(*effects) if effects else HeadOrder()


def _by_measure(measure: Measure, values: np.ndarray, key: str) -> HeadOrder:
    """Draw the range of the measure whose heads are shown, and return the order by it; values (L, H)."""
    top = max(1.0, float(np.ceil(values.max())))
    low, high = st.slider(say("Show heads between"), 0.0, top, (0.0, top), 0.05, key=key)
    inside = between(values, low, high)
    smallest = measure in SMALLEST_FIRST
    heads = rank_heads(values, largest_first=not smallest)
    by = ORDER.label(measure)
    ordered = (
        say("Ordered by {measure}, the smallest first.", measure=by)
        if smallest
        else say("Ordered by {measure}, the largest first.", measure=by)
    )
    ranked = tuple(Ranked(*place, number(float(values[place]), ".2f"), bool(inside[place])) for place in heads)
    return HeadOrder(ranked, sentences(ordered, say(EXPLAINED[measure])), measure)


def _by_effect(values: np.ndarray, of: str) -> HeadOrder:
    """The order by what switching off each head changes (L, H), the largest change in either direction first."""
    heads = rank_heads(np.abs(values), largest_first=True)
    text = say(
        "Ordered by effect: how the log-probability of {what} changes, in nats, when that head alone is switched off; "
        "the largest change first. Below 0, the head speaks for it.",
        what=of,
    )
    return HeadOrder(tuple(Ranked(*place, signed(values[place], plus=True), True) for place in heads), text)


def find_aligning(attention: AttentionMap) -> None:
    """Draw a button that opens the cross-attention head that aligns best, and orders all heads by how well they do."""

    def open_best() -> None:
        best = rank_alignment(attention)[0]
        st.session_state[KIND.key], st.session_state[ORDER.key] = "cross", "alignment"
        controls.choose(best.layer, best.head)

    st.button(say("Which head aligns?"), type="tertiary", key="aligns", on_click=open_best)


def _lines(least: LineThreshold) -> str:
    return say("the strongest of each row") if least == "strongest" else say("from a weight of {least}", least=least)


def lines(scene: Scene) -> tuple[Layout, LineThreshold]:
    """Return how the two sides of the lines are laid out, and the least weight that gets one."""
    if not scene.is_first_side:
        return LAYOUT.get(), THRESHOLD.get()
    with st.container(key="linksbar", horizontal=True, vertical_alignment="center"):
        layout = widgets.segmented_control(say("Layout"), LAYOUT)
        THRESHOLD.hold()
        return layout, widgets.offer(
            st.selectbox, say("Lines"), THRESHOLD.options, width=270, format_func=_lines, **THRESHOLD.storage
        )


def flow(scene: Scene) -> tuple[Flow, int, bool]:
    """Return what is shown of many heads, its last layer, from 0, and whether value norms weigh in.

    Means over the layers have no layer to choose.
    """
    layers = scene.trace.maps[scene.kind].layers
    if not scene.is_first_side:
        return FLOW.get(), min(THROUGH.get() or layers, layers) - 1, NORMS.get()
    with st.container(key="viewchoices", horizontal=True, vertical_alignment="center"):
        which = widgets.segmented_control(say("Flow"), FLOW)
        layer = layers
        if which not in OVER_LAYERS:
            name = say("Layer") if which == "mean of heads" else say("Through layer")
            layer = widgets.following_selectbox(name, THROUGH, range(1, layers + 1), layers, width=175)
        return which, layer - 1, widgets.toggle(say("Times value norms"), NORMS)


def mean_of_heads(scene: Scene) -> bool:
    """Return whether all heads of the layer are shown as their mean."""
    return widgets.toggle(say("Mean of all heads"), MEAN) if scene.is_first_side else MEAN.get()


def query(scene: Scene) -> int:
    """Return the row whose steps are shown: the pinned one, as captured, or the first; choosing a row pins it."""
    if not scene.is_first_side:
        return scene.captured_query or 0
    names = [readable(token) for token in scene.tokens.original.rows(scene.rows)]
    st.session_state["query"] = scene.captured_query or 0

    def pin() -> None:
        scene.pin_captured(st.session_state["query"])

    return widgets.offer(
        st.selectbox,
        say("Query"),
        range(len(names)),
        format_func=lambda at: f"{at + 1} {names[at]}",
        key="query",
        width=230,
        on_change=pin,
    )


def step(count: int) -> int:
    """Return the current step of the pipeline, from 0; kept in the address from 1."""
    current = min(STEP.hold(), count)
    STEP.show_in_address(current)
    return current - 1


def go_to_step(to: int) -> None:
    """Go to a step of the pipeline, from 0; for callbacks."""
    STEP.set(to + 1)


def beside(heads: int, head: int) -> tuple[int, ...]:
    """Return the other heads drawn beside the chosen one, from 0; kept in the address from 1: ``beside=2,5``."""
    others = tuple(other for other in BESIDE.hold() if other < heads and other != head)
    BESIDE.show_in_address(others)
    return others


def draw_beside(heads: list[int]) -> None:
    """Draw these heads, from 0, beside the chosen one; for callbacks."""
    BESIDE.set(tuple(heads))
