"""The controls of Positions. All they hold is in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import streamlit as st

from model.positions.forms import FORMS
from model.positions.geometry import wavelengths
from model.positions.table import BASE, ORDERS, Order, PositionTable, TableKind, formula_table, table_of
from model.translate import InputError, Translator

from ..ui import cache
from ..ui.controls import SHARED

STYLE = Path(__file__).parent / "positions.css"
View = Literal["table", "waves", "similarity", "rotation", "precision", "sentence", "experiments", "heads"]
VIEWS: tuple[View, ...] = get_args(View)
OF_TABLES: tuple[View, ...] = VIEWS[:5]
# Streamlit writes an option into the address as people read it, so that a link says: table=sinusoidal+with+PAD+row.
KIND_NAMES: dict[str, str] = {
    "own": "of this model",
    "own_target": "of this model, decoder side",
    "sinusoidal": "sinusoidal",
    "sinusoidal_pad_row": "sinusoidal with PAD row",
}
MOST = 1024
"""Positions and dimensions of the largest table that is drawn."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The table that is looked at."""

    table: PositionTable
    name: str
    own: bool
    """Whether it is the model's own tensor."""
    form: str
    """The way in which it was computed, of position_forms.FORMS."""
    whole: np.ndarray
    """(P, D) the rows of all its real positions, also of those not shown."""
    sentence: int | None
    """Pieces of the typed sentence, where there is one."""

    @property
    def positions(self) -> int:
        return len(self.table.real)

    @property
    def wavelengths(self) -> np.ndarray:
        """(ceil(D / 2),) positions after which each pair of dimensions repeats, by the form's own exponents."""
        return wavelengths(self.table.width, self.table.base, inclusive=FORMS[self.form].inclusive)

    @property
    def sinusoidal(self) -> bool:
        return self.table.kind != "learned"


def view() -> View:
    return st.segmented_control(
        "View", VIEWS, default="table", required=True, key="plot", label_visibility="collapsed", **SHARED
    )


def table(model: Translator, text: str, shown: View) -> Choice:
    """Which table: the loaded model's own tensor, or one by the formula with sizes of one's choice."""
    learned = model.config.positions == "learned"
    kinds = [kind for kind in KIND_NAMES if kind != "own_target" or learned]
    within("table", kinds)
    kind = st.selectbox("Table", kinds, format_func=KIND_NAMES.__getitem__, key="table", width=270, **SHARED)
    own = kind in ("own", "own_target")
    most = min(model.config.max_length, MOST) if own else MOST
    positions = int(number("Positions", "positions", min(128, most), 2, most))
    width, base = model.config.d_model, BASE
    if not own:
        width = int(number("Dimensions", "d_model", 512, 1, MOST))
        base = number("Base", "base", BASE, 2.0, 1e6)
    form = "float64"
    if shown == "precision" or not own:
        form = st.selectbox("Computed", FORMS, format_func=_form_title, key="form", width=280, **SHARED)
    if own:
        side = model.model.source_embedding if kind == "own" else model.model.target_embedding
        made = table_of(side.positional_encoding)
        return Choice(made.cut(positions), model.name, True, form, made.real, _pieces(model, text))
    of: TableKind = "sinusoidal" if kind == "sinusoidal" else "sinusoidal_pad_row"
    values = cache.position_values(form, positions, width, base)
    made = formula_table(positions, width, base, of, values)
    return Choice(made, KIND_NAMES[kind], False, form, made.real, _pieces(model, text))


def order() -> Order:
    """In which order the dimensions stand."""
    return st.segmented_control(
        "Order", ORDERS, default="interleaved", required=True, key="arranged", label_visibility="collapsed", **SHARED
    )


def cell(choice: Choice) -> tuple[int, int]:
    """The row and dimension looked at closely."""
    rows, width = choice.table.values.shape
    with st.container(key="cell", horizontal=True):
        row = number("Position", "pos", min(12, rows - 1), 0, rows - 1)
        dimension = number("Dimension", "dim", min(4, width - 1), 0, width - 1)
    return int(row), int(dimension)


def look_at(row: int, dimension: int) -> None:
    """Choose a cell; for callbacks."""
    st.session_state["pos"], st.session_state["dim"] = row, dimension


def number(label: str, key: str, value: float, low: float, high: float, **more: Any) -> float:
    """A number in the address, held inside its limits, which change with the table."""
    if key in st.session_state and st.session_state[key] is not None:
        st.session_state[key] = min(max(st.session_state[key], low), high)
    found = st.number_input(label, low, high, value, key=key, width=230, **more, **SHARED)
    return value if found is None else found


def within(key: str, options: Sequence[Any]) -> None:
    """Forget a choice that another model or table does not offer."""
    if key in st.session_state and st.session_state[key] not in options:
        del st.session_state[key]


def _form_title(name: str) -> str:
    return FORMS[name].title


def _pieces(model: Translator, text: str) -> int | None:
    try:
        return len(model.encode(text).ids)
    except InputError:
        return None
