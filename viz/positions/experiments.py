"""Experiments on the running model: move its positions and see what becomes of translation and attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from model.language.say import say, sentences
from model.live.live_model import LiveModel
from model.live.translation import Translation
from model.positions.experiments import ExperimentError, ExperimentResult, Move, PositionExperiment
from model.trace import AttentionMap, Kind

from ..components.chart import chart
from ..components.overview import overview, packed
from ..export.parts import Chart, Columns, Component, Part, Words
from ..export.save import SavedView, facts_of
from ..figures.labels import readable
from ..figures.palette import Palette
from ..figures.positions.effects import belief, compared
from ..ui import cache, widgets
from ..ui import controls as shared
from ..ui.addresses.positions import (
    BY,
    DRAW,
    FACTOR,
    MOVE,
    ONE,
    OTHER,
    SIDE_LABELS,
    SIDES_MOVED,
    START,
)
from ..ui.captions import caption, plain
from ..ui.translation_changes import Mark, word_changes
from . import experiment_texts
from .controls import forget_unless, number

SIZES: dict[Move, tuple[float, ...]] = {
    "shift": (0, 1, 2, 4, 8, 16, 32, 64, 128, 256),
    "stretch": (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4),
    "beyond": (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
}
"""Sizes tried for the curve of an experiment that has one."""


def show(model: LiveModel, before: Translation) -> SavedView | None:
    with st.container(key="experiment-bar", horizontal=True, vertical_alignment="center"):
        experiment = _chosen(model, before)
    try:
        result = cache.position_experiment(model.name, before.source, experiment)
    except ExperimentError as error:
        st.info(plain(str(error)))
        return None
    marked = word_changes(before.text, result.after.text)
    st.html(experiment_texts.before_and_after(before.text, marked))
    length = len(before.trace.maps["encoder" if model.can("translate") else "decoder"].query_tokens)
    does = experiment_texts.experiment(experiment, length, _positions(model), alone=not model.can("translate"))
    says = sentences(does, experiment_texts.effect(result, model.writes))
    caption(says)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        kind: Kind = shared.kind() if model.can("translate") else "decoder"
        look, rows = shared.look()
    old, new = before.trace.maps[kind], result.forced_trace.maps[kind]
    with st.container(key="picture"):
        left, right = st.columns([0.27, 0.73], gap="large")
        with left:
            tiles = st.container()
            layer, head = shared.place(old)
            with tiles:
                overview(_change(old, new), layer, head, look, key="changes", on_pick=shared.choose)
            caption(say("How much each head's attention changed. Click one to open it."))
        with right:

            def drawn(palette: Palette) -> Chart:
                maps = [(say("before"), old), (say("after"), new)]
                figure = compared(maps, layer, head, replace(look, palette=palette), rows, difference=True)
                return Chart(figure, say("Attention before, after, and the difference"))

            shown = drawn(look.palette)
            chart(shown.figure, shown.alt, key="compared", on_cell=lambda _, __: None)
    caption(say(experiment_texts.FED[model.writes]))
    if experiment.move in SIZES:
        _curve(model, before, experiment, look.palette)

    written: list[tuple[str, Mark]] = [(word, mark) for word, mark in marked if mark != "gone"]

    def parts(palette: Palette) -> list[Part]:
        tiles = packed(_change(old, new), layer, head, replace(look, palette=palette))
        return [
            Words(before.source, "sentence", "large"),
            Words(before.text, "before"),
            Words(result.after.text, "translation", "large", written),
            Words(says),
            Columns(([Component("overview", tiles, "heads")], [drawn(palette)]), (0.27, 0.73)),
        ]

    facts = facts_of(before.trace, experiment=f"{experiment.move}, {SIDE_LABELS[experiment.sides]}")
    return SavedView(
        "positions-experiment", parts, lambda: numbers(result), say("Positions changed"), facts, width=1280
    )


def numbers(result: ExperimentResult) -> pd.DataFrame:
    """Every piece of the old translation with its log-probability before and after."""
    steps = result.before.steps
    pieces = [readable(step.token) for step in steps]
    columns = {"piece": pieces, "before": [step.log_prob for step in steps], "after": result.log_probs}
    return pd.DataFrame(columns).rename_axis("step")


def _chosen(model: LiveModel, before: Translation) -> PositionExperiment:
    """The experiment that the controls stand at."""
    move = widgets.segmented_control(say("Experiment"), MOVE)
    sides = widgets.selectbox(say("Of"), SIDES_MOVED, width=190) if model.can("translate") else "both"
    experiment = PositionExperiment(move, sides=sides)
    if move == "shift":
        return replace(experiment, amount=number(say("By"), BY))
    if move == "stretch":
        return replace(experiment, amount=number(say("Factor"), FACTOR, step=0.25))
    if move == "beyond":
        return replace(experiment, amount=number(say("Begin at"), START, default=_positions(model)))
    if move == "shuffle":
        return replace(experiment, amount=number(say("Draw"), DRAW))
    if move == "swap":
        return replace(experiment, pair=_pair(before))
    return experiment


def _positions(model: LiveModel) -> int:
    """The positions of the model's table."""
    added = model.model.added_positions("target")
    assert added is not None
    return len(added.rows)


def _pair(before: Translation) -> tuple[int, int]:
    """The two pieces of the sentence whose positions are exchanged, counted from 1 on the page."""
    last = min(len(before.source_ids), len(before.target_ids))
    places = range(1, last + 1)
    for of in (ONE, OTHER):
        forget_unless(of, places)
    names = [f"{place} {readable(before.source_tokens[place - 1])}" for place in places]
    name = lambda at: names[at - 1]  # noqa: E731
    one = widgets.offer(st.selectbox, say("Position"), places, format_func=name, width=190, **ONE.binding)
    other = widgets.offer(
        st.selectbox, say("with"), places, min(2, last - 1), format_func=name, width=170, **OTHER.binding
    )
    return one - 1, other - 1


def _change(old: AttentionMap, new: AttentionMap) -> AttentionMap:
    """The size of the difference, in the shape of a map, so that it can be drawn as one."""
    return replace(old, weights=np.abs(new.weights - old.weights))


def _curve(model: LiveModel, before: Translation, experiment: PositionExperiment, palette: Palette) -> None:
    sizes = tuple(sorted({*SIZES[experiment.move], experiment.amount}))
    try:
        curve = cache.position_belief(model.name, before.source, replace(experiment, amount=0.0), sizes)
    except ExperimentError:
        return  # A learned table ends before the largest size; the picture above stands on its own.
    title = say(experiment_texts.BELIEF[model.writes])
    chart(belief(sizes, curve, experiment.amount, title, palette), title, key="belief", on_cell=lambda _, __: None)
