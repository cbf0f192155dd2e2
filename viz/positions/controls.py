"""The controls of Positions. All they hold is in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from model.language.say import say
from model.live.live_model import LiveModel
from model.positions.forms import FORMS
from model.positions.geometry import wavelengths
from model.positions.table import BASE, Order, PositionTable, TableKind, formula_table, table_of
from model.translate import InputError, Translator

from ..ui import cache, widgets
from ..ui.addresses.positions import (
    ARRANGED,
    D_MODEL,
    DIM,
    FORM,
    MOST,
    PLOT,
    POS,
    POSITIONS,
    TABLE,
    TABLE_BASE,
    WITHOUT_PICTURES,
    View,
)
from ..ui.url_state.kinds import Number
from ..ui.url_state.parameter import Parameter

STYLE = Path(__file__).parent / "positions.css"


@dataclass(frozen=True, eq=False)
class TableChoice:
    """The table that is looked at."""

    table: PositionTable
    name: str
    own: bool
    """Whether it is the model's own tensor."""
    form: str
    """The way in which it was computed, of model.positions.forms.FORMS."""
    whole: np.ndarray
    """(P, D) the rows of all its real positions, also of those not shown."""
    sentence: int | None
    """Pieces of the typed sentence, where there is one."""
    text: str = ""
    """The typed sentence."""

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


def view(model: LiveModel) -> View:
    """Which view of the positions is shown; pictures of tables and heads only where there are any."""
    if model.can("position pictures"):
        return widgets.segmented_control(say("View"), PLOT)
    return widgets.segmented_control(say("View"), PLOT, WITHOUT_PICTURES)


def table(model: Translator, text: str, shown: View) -> TableChoice:
    """Which table: the loaded model's own tensor, or one by the formula with sizes of one's choice."""
    learned = model.config.positions == "learned"
    kinds = [kind for kind in TABLE.options if kind != "own_target" or learned]
    forget_unless(TABLE, kinds)
    kind = widgets.selectbox(say("Table"), TABLE, kinds, width=270)
    own = kind in ("own", "own_target")
    most = min(model.config.max_length, MOST) if own else MOST
    positions = int(number(say("Positions"), POSITIONS, 2, most, min(128, most)))
    width, base = model.config.d_model, BASE
    if not own:
        width = int(number(say("Dimensions"), D_MODEL))
        base = number(say("Base"), TABLE_BASE)
    form = "float64"
    if shown == "precision" or not own:
        form = widgets.selectbox(say("Computed"), FORM, width=320)
    if own:
        side = model.model.source_embedding if kind == "own" else model.model.target_embedding
        made = table_of(side.positional_encoding)
        return TableChoice(made.cut(positions), model.name, True, form, made.real, _pieces(model, text), text)
    of: TableKind = "sinusoidal" if kind == "sinusoidal" else "sinusoidal_pad_row"
    values = cache.position_values(form, positions, width, base)
    made = formula_table(positions, width, base, of, values)
    return TableChoice(made, TABLE.label(kind), False, form, made.real, _pieces(model, text), text)


def order() -> Order:
    """In which order the dimensions stand."""
    return widgets.segmented_control(say("Order"), ARRANGED)


def cell(choice: TableChoice) -> tuple[int, int]:
    """The row and dimension looked at closely."""
    rows, width = choice.table.values.shape
    with st.container(key="cell", horizontal=True):
        row = number(say("Position"), POS, 0, rows - 1, min(12, rows - 1))
        dimension = number(say("Dimension"), DIM, 0, width - 1, min(4, width - 1))
    return int(row), int(dimension)


def choose_cell(row: int, dimension: int) -> None:
    """Choose a cell; for callbacks."""
    st.session_state[POS.key], st.session_state[DIM.key] = row, dimension


def number(
    label: str,
    of: Number[Any],
    low: float | None = None,
    high: float | None = None,
    default: float | None = None,
    **more: Any,
) -> Any:
    """A number held inside its limits, which change with the table; those of the parameter where none are given."""
    low, high = of.low if low is None else low, of.high if high is None else high
    before = st.session_state.get(of.key)
    if before is not None:
        st.session_state[of.key] = min(max(before, low), high)
    return widgets.number_input(label, of, default, min_value=low, max_value=high, width=230, **more)


def forget_unless(of: Parameter[Any], options: Sequence[Any]) -> None:
    """Forget a choice that another model or table does not offer."""
    if of.key in st.session_state and st.session_state[of.key] not in options:
        del st.session_state[of.key]


def _pieces(model: Translator, text: str) -> int | None:
    try:
        return len(model.encode(text).ids)
    except InputError:
        return None
