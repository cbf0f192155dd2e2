"""Loss, BLEU and learning rate over the steps of the training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.checkpoint.history import HistoryError, HistoryRow
from model.checkpoint.load import CheckpointError

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
        st.info(plain(f"{model.name} has no history.csv, so there is nothing to draw."))
        return
    title = f"Training of {model.name}"
    said = summary(history, bool(marked))

    def drawn(palette: Palette) -> Chart:
        figure = curves({model.name: history}, palette, title, log_steps=log_steps, marked=marked)
        return Chart(figure, f"{title}: loss, BLEU and learning rate")

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
    said = (
        f"{last.step:,} steps, {last.epoch + 1} passes over the data, {last.seconds / 3600:.1f} hours. Loss: smoothed "
        "cross-entropy of a target token on the training text, mean since the point before."
    )
    if best:
        said += f" BLEU: greedy, on a part of the dev text; best {best.bleu:.1f} at step {best.step:,}."
    return said + (" Dotted: steps with a snapshot." if marked else "")


def numbers(history: tuple[HistoryRow, ...]) -> pd.DataFrame:
    return pd.DataFrame(history).set_index("step")
