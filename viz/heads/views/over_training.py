"""Over training: a measure of every head at each snapshot, and when heads took up what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.heads.atlas import head_name
from model.language.say import say, sentences

from ...components.curves import curves, packed
from ...export.parts import Component, Words
from ...export.save import SavedView
from ...figures.heads.over_training import over_training
from ...ui import theme, widgets
from ...ui.addresses.heads import MEASURE_NAMES, TRACKED
from ...ui.captions import caption, plain
from .. import cache, kept_texts
from .all_heads import open_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.timeline_table import Timeline
    from model.translate import Translator

    from ...figures.curves import Curves
    from ...figures.palette import Palette


def show(model: Translator, bar: DeltaGenerator) -> SavedView:
    found = cache.timeline(model.name, model.checkpoint.hash)
    with bar:
        measure = widgets.selectbox(say("Measure"), TRACKED, found.measures, label_visibility="collapsed", width=240)
    name = say(MEASURE_NAMES[measure])
    courses = found.courses(measure)
    heads = [head for head, values in courses.items() if pd.notna(list(values)).any()]
    title = say("{model} over training: {measure}", model=model.name, measure=name)

    def drawn(palette: Palette) -> Curves:
        lines = {head_name(head): (head[0], courses[head]) for head in heads}
        return over_training(lines, [kept_texts.stop_tick(step) for step in found.steps], name, title, palette)

    said = kept_texts.over_training(found, measure)
    with st.container(key="finding"):
        st.markdown(plain(said))
    with st.container(key="picture"):
        curves(drawn(theme.palette()), key="over-training", on_point=lambda mark, _: open_head(heads[mark // 2]))
    caption(kept_texts.tracked(found, measure))
    return SavedView(
        f"heads-over-training-{model.name}",
        lambda palette: (
            Component("curves", packed(drawn(palette))),
            Words(sentences(said, kept_texts.tracked(found, measure))),
        ),
        lambda: numbers(found),
        title,
        {"model": model.name, "hash": model.checkpoint.hash},
        width=1100,
    )


def numbers(found: Timeline) -> pd.DataFrame:
    """All measures, a row a stop and head; layers and heads from 1, no step for the released weights."""
    steps = ["released" if found.steps[stop] is None else found.steps[stop] for stop in found.heads["stop"]]
    table = found.heads.assign(layer=found.heads["layer"] + 1, head=found.heads["head"] + 1, step=steps)
    return table.drop(columns="stop").set_index(["step", "map", "layer", "head"])
