"""The table as a picture, and one of its values worked out."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.language.say import say, sentences
from model.positions.forms import FORMS
from model.positions.table import Cell, cell, dimension_order

from ..components.matrix import Matrix, matrix, packed
from ..export.parts import Columns, Component, Formula, Part, Words
from ..export.save import SavedView
from ..figures.diverging import diverging
from ..figures.palette import LIGHT, Palette
from ..ui import theme
from ..ui.captions import caption
from . import controls, equation, texts
from .controls import TableChoice

PICTURE_AND_FORMULA = (2 / 3, 1 / 3)
"""Their widths, as on the stage (talk/presented.css)."""


def show(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    with bar:
        order = dimension_order(choice.table.width, controls.order())
    shown = picture(choice, order, theme.palette())
    left, right = st.columns([0.74, 0.26], gap="large")
    with right:
        row, dimension = controls.cell(choice)
    with left, st.container(key="picture"):
        at = int(np.flatnonzero(order == dimension)[0])
        matrix(shown, (row, at), key="table-picture", on_cell=lambda y, x: controls.choose_cell(y, int(order[x])))
    worked, said = explained(choice, row, dimension)
    with right:
        if worked:
            st.latex(equation.latex(worked, choice.table.width, choice.table.base))
        caption(said)
    caption(texts.table(choice))

    def parts(palette: Palette) -> list[Part]:
        drawn = Component("matrix", packed(picture(choice, order, palette), (row, at)))
        beside = [Formula(equation.mathml(worked, choice.table))] if worked else []
        return [
            *([Words(choice.text, "sentence", "large")] if choice.text else []),
            Columns(([drawn], [*beside, Words(said)]), PICTURE_AND_FORMULA),
            Words(texts.table(choice)),
        ]

    return SavedView("positions-table", parts, partial(numbers, choice), shown.title, width=1100)


def picture(choice: TableChoice, order: np.ndarray, palette: Palette = LIGHT) -> Matrix:
    """The table as it is drawn: its columns in the order of dimensions that was chosen."""
    values = choice.table.values[:, order]
    high = max(1.0, float(np.abs(values).max())) if choice.sinusoidal else float(np.abs(values).max()) or 1.0
    first = choice.table.first
    ends = [] if choice.sentence is None else [choice.sentence - 1 + first]
    return Matrix(
        values,
        say("Positional encoding · {table}", table=choice.name),
        row_names(choice),
        order.tolist(),
        say("position"),
        say("dimension"),
        -high,
        high,
        diverging(palette),
        marks=[end for end in ends if end < len(values) - 1],
    )


def row_names(choice: TableChoice) -> list[str | int]:
    return ["PAD" if row < choice.table.first else row for row in range(len(choice.table.values))]


def numbers(choice: TableChoice) -> pd.DataFrame:
    """The table with a row a position and a column a dimension, all digits."""
    return pd.DataFrame(choice.table.values, index=pd.Index(row_names(choice), name="position"))


def explained(choice: TableChoice, row: int, dimension: int) -> tuple[Cell | None, str]:
    """One value by the formula, None where there is none, and what is said of it."""
    stored = float(choice.table.values[row, dimension])
    position = row - choice.table.first
    if position < 0:
        return None, say("PAD's row is all zero: nothing is added to padding.")
    if not choice.sinusoidal:
        said = say("This table was learned, so there is no formula: its value here is {value:.6f}.", value=stored)
        return None, said
    if choice.form == "inclusive":
        return None, sentences(say(FORMS[choice.form].note), say("Its value here is {value:.6f}.", value=stored))
    worked = cell(position, dimension, choice.table.width, choice.table.base)
    return worked, texts.stored_value(worked, stored, choice.table.first)
