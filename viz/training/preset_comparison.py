"""The presets that were trained on the same data, in one table: what differs between them, and their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.checkpoint.preset_comparison import PresetModel, differing_fields
from model.language.current import current_language
from model.language.say import listed, number, say, sentences
from model.network.presets import PRESETS

from ..components.chart import chart
from ..components.presenter import on_stage
from ..export.parts import Chart, Part, Table, Words
from ..export.save import SavedView, save
from ..figures.training_curves import curves
from ..ui import cache, theme
from ..ui.captions import caption, plain
from ..ui.table import Cell, table
from . import controls
from .architecture import value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.delta_generator import DeltaGenerator

    from ..figures.palette import Palette


def show(bar: DeltaGenerator) -> None:
    with bar:
        log_steps = controls.log_steps()
    found, faults = cache.preset_models(current_language())
    for fault in faults:
        st.error(plain(fault))
    if not found:
        st.info(
            say(
                "No checkpoint of a preset is here yet. Train one with `python -m model train --config "
                "checkpoints/preset-original/recipe.json --data FOLDER`, then reload this page."
            )
        )
        return
    title, (headings, rows) = say("Architectures trained alike"), cells(found)
    table(headings, rows, title)
    said = sentences(
        say(
            "Built from the presets, small, and trained on the same data with the same number of steps; only "
            "fields in which they differ are listed. Choose one as the model to see its attention on the other "
            "pages."
        ),
        _without_checkpoint(found),
    )
    caption(said)
    histories = {one.name: one.history for one in found if one.history}
    alone = on_stage() or not histories  # There the table has all the room; curves are a view of their own.

    def drawn(palette: Palette) -> Chart:
        figure = curves(histories, palette, say("Trained alike"), log_steps=log_steps)
        return Chart(figure, say("Loss, BLEU and learning rate of each"))

    if not alone:
        shown = drawn(theme.palette())
        with st.container(key="picture"):
            chart(shown.figure, shown.alt, key="alike", on_cell=lambda _, __: None)

    def parts(palette: Palette) -> list[Part]:
        return [Table(headings, rows, title), Words(said), *([] if alone else [drawn(palette)])]

    with bar, st.container(key="saving", width="content"):
        save(SavedView("trained-alike", parts, lambda: numbers(headings, rows), title, width=1280))


def numbers(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> pd.DataFrame:
    """The table, a fact a row, a model a column."""
    texts = [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in rows]
    names = pd.Index([row[0] for row in texts], name="fact")
    return pd.DataFrame([row[1:] for row in texts], names, list(headings[1:]))


def _without_checkpoint(models: Sequence[PresetModel]) -> str:
    """The presets that nothing was trained from, in a sentence."""
    absent = [name for name in PRESETS if name not in {model.config.preset for model in models}]
    return say("Without a checkpoint here: {presets}.", presets=listed(absent)) if absent else ""


def cells(found: Sequence[PresetModel]) -> tuple[list[str], list[list[Cell]]]:
    """A column a model, a row a fact: scores first, then the fields in which they differ."""
    sets = list(dict.fromkeys((score.set, score.beam) for one in found for score in one.released_scores))
    rows: list[list[Cell]] = [
        [say("parameters"), *[number(one.parameters, ",") for one in found]],
        [say("steps"), *[number(one.steps, ",") for one in found]],
        [say("last loss"), *[number(one.history[-1].loss, ".3f") if one.history else "–" for one in found]],
        [say("last dev BLEU"), *[_known(one.dev_bleu) for one in found]],
    ]
    for name, beam in sets:
        bleu = [next((s.bleu for s in one.released_scores if (s.set, s.beam) == (name, beam)), None) for one in found]
        rows.append([say("BLEU, {set}, beam {beam}", set=name, beam=beam), *[(_known(value), "own") for value in bleu]])
    fields = differing_fields(found)
    if fields:
        rows.append([(say("what differs"), "group"), *[("", "group")] * len(found)])
    rows += [[field, *[value_text(getattr(one.config, field)) for one in found]] for field in fields]
    return ["", *[one.name for one in found]], rows


def _known(value: float | None) -> str:
    return "–" if value is None else number(value, ".1f")
