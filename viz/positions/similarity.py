"""How alike two positions are, whether that depends on their distance alone, and whether all can be told apart."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.language.say import say, to_say
from model.positions.geometry import by_distance
from model.positions.table import formula_table

from ..components.curves import curves
from ..components.curves import packed as packed_curves
from ..components.matrix import Matrix, matrix, packed
from ..export.parts import Columns, Component, Part, Words
from ..export.save import SavedView
from ..figures.curves import Curves
from ..figures.diverging import diverging, ramp
from ..figures.palette import Palette
from ..figures.positions.geometry import profile
from ..ui import cache, theme, widgets
from ..ui.addresses.positions import MEASURE, POS, SHIFT, Measure
from ..ui.captions import caption
from . import texts
from .controls import TableChoice

BY_DISTANCE: dict[Measure, str] = {
    "cosine": to_say("Cosine by distance"),
    "dot product": to_say("Dot product by distance"),
}
OF_TWO: dict[Measure, str] = {
    "cosine": to_say("Cosine of two positions · {table}"),
    "dot product": to_say("Dot product of two positions · {table}"),
}


def show(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    with bar:
        measure = widgets.segmented_control(say("Measure"), MEASURE)
    cosine = measure == "cosine"
    first = choice.table.first
    values = cache.similarities(choice.table.real, cosine)
    own = by_distance(values)
    other = None
    if not choice.sinusoidal:
        formula = formula_table(choice.positions, choice.table.width).values
        other = by_distance(cache.similarities(formula, cosine))
    row, column = _pair(choice)

    def by(palette: Palette) -> Curves:
        return profile(own, other, (say("learned"), say("sinusoidal")), say(BY_DISTANCE[measure]), palette)

    pairs = _picture(values, measure, choice, theme.palette())
    with st.container(key="picture"):
        left, right = st.columns([0.4, 0.6], gap="large")
        with left:
            matrix(pairs, (row, column), key="similarity", on_cell=partial(_take, first))
        with right:
            curves(by(theme.palette()), key="profile", on_point=lambda _, distance: _take_distance(distance))
    names = row + first, column + first
    says = (
        texts.similarity(choice, cosine, names, float(values[row, column]), own),
        texts.uniqueness(cache.uniqueness(choice.whole), len(choice.whole), first),
    )
    for sentence in says:
        caption(sentence)

    def parts(palette: Palette) -> list[Part]:
        return [
            Columns(
                (
                    [Component("matrix", packed(_picture(values, measure, choice, palette), (row, column)))],
                    [Component("curves", packed_curves(by(palette)))],
                ),
                (0.4, 0.6),
            ),
            *map(Words, says),
        ]

    return SavedView("positions-similarity", parts, lambda: numbers(values, first), pairs.title, width=1280)


def numbers(values: np.ndarray, first: int) -> pd.DataFrame:
    """All similarities, a row and a column a position."""
    names = pd.RangeIndex(first, first + len(values), name="position")
    return pd.DataFrame(values, index=names, columns=names)


def _picture(values: np.ndarray, measure: Measure, choice: TableChoice, palette: Palette) -> Matrix:
    names = list(range(choice.table.first, choice.table.first + len(values)))
    low, high = _limits(values)
    stops = ramp(palette) if low >= 0 else diverging(palette)
    title = say(OF_TWO[measure], table=choice.name)
    return Matrix(values, title, names, names, say("position"), say("position"), low, high, stops, square=True)


def _limits(values: np.ndarray) -> tuple[float, float]:
    """From least to most; the same to both sides of zero where there is anything below it."""
    high = float(np.abs(values).max()) or 1.0
    low = float(values.min())
    return (low, high) if 0 <= low < high else (-high, high)


def _pair(choice: TableChoice) -> tuple[int, int]:
    """The two positions looked at, from 0: the chosen one and the one a shift further, where there is one."""
    last = choice.positions - 1
    row = min(max(st.session_state.get(POS.key, 12) - choice.table.first, 0), last)
    return row, min(max(row + st.session_state.get(SHIFT.key, 8), 0), last)


def _take(first: int, row: int, column: int) -> None:
    st.session_state[POS.key], st.session_state[SHIFT.key] = row + first, column - row


def _take_distance(distance: int) -> None:
    st.session_state[SHIFT.key] = distance
