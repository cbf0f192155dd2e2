"""Loss, BLEU and learning rate over the steps of the training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.checkpoint.history import HistoryError, HistoryRow
from model.checkpoint.load import CheckpointError
from model.language.say import say, say_many, sentences

from ..components.chart import chart
from ..export.parts import Chart, Words
from ..export.save import SavedView, save
from ..figures.training_curves import curves
from ..ui import cache, theme
from ..ui.captions import caption, plain
from . import controls

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.translate import Translator

    from ..figures.palette import Palette


def show(model: Translator, bar: DeltaGenerator) -> None:
    with bar:
        log_steps = controls.log_steps()
        menu = st.container(key="saving", width="content")
    try:
        history, marked = cache.history(model.name), cache.snapshot_steps(model.name)
    except (HistoryError, CheckpointError) as error:
        st.error(plain(str(error)))
        return
    if not history:
        st.info(plain(say("{model} has no history.csv, so there is nothing to draw.", model=model.name)))
        return
    title = say("Training of {model}", model=model.name)
    said = summary(history, bool(marked))

    def drawn(palette: Palette) -> Chart:
        figure = curves({model.name: history}, palette, title, log_steps=log_steps, marked=marked)
        return Chart(figure, say("{title}: loss, BLEU and learning rate", title=title))

    with st.container(key="picture"):
        shown = drawn(theme.palette())
        chart(shown.figure, shown.alt, key="curves", on_cell=lambda _, __: None)
    caption(said)
    facts = {"model": model.name, "hash": model.checkpoint.hash}
    with menu:
        save(
            SavedView(
                "training-curves", lambda palette: (drawn(palette), Words(said)), lambda: numbers(history), title, facts
            )
        )


def summary(history: tuple[HistoryRow, ...], marked: bool) -> str:
    """What was measured, and how the training went."""
    last = history[-1]
    best = max((row for row in history if row.bleu is not None), key=lambda row: row.bleu or 0, default=None)
    return sentences(
        say_many(
            "{steps:,} steps, {count} pass over the data, {hours:.1f} hours.",
            "{steps:,} steps, {count} passes over the data, {hours:.1f} hours.",
            last.epoch + 1,
            steps=last.step,
            hours=last.seconds / 3600,
        ),
        say("Loss: smoothed cross-entropy of a target token on the training text, mean since the point before."),
        say(
            "BLEU: greedy, on a part of the dev text; best {bleu:.1f} at step {step:,}.", bleu=best.bleu, step=best.step
        )
        if best
        else "",
        say("Dotted: steps with a snapshot.") if marked else "",
    )


def numbers(history: tuple[HistoryRow, ...]) -> pd.DataFrame:
    return pd.DataFrame(history).set_index("step")
