"""The controls of the page Positions; the address holds all their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.language import say
from attenscope.positions.analysis import compute_wavelengths
from attenscope.positions.table import (
    SINUSOID_BASE,
    TABLE_FORMS,
    DimensionOrder,
    PositionTable,
    TableKind,
    extract_table,
    make_formula_table,
)
from attenscope.runnable_model import InputError, RunnableModel
from attenscope.translate import Translator
from attenscope.viz.positions import cache
from attenscope.viz.ui import controls
from attenscope.viz.ui.address import NumberParameter, Parameter
from attenscope.viz.ui.addresses.positions import (
    FIRST_VIEWS,
    MAX_TABLE_SIZE,
    POSITIONS_BASE,
    POSITIONS_COUNT,
    POSITIONS_D_MODEL,
    POSITIONS_DIMENSION,
    POSITIONS_DIMENSION_ORDER,
    POSITIONS_FORM,
    POSITIONS_POSITION,
    POSITIONS_RUN_VIEWS,
    POSITIONS_TABLE,
    POSITIONS_VIEW,
    PositionsView,
)

POSITIONS_STYLE = Path(__file__).parent / "positions.css"


@dataclass(frozen=True, eq=False)
class TableChoice:
    """The table that is looked at."""

    table: PositionTable
    name: str
    own: bool
    """Whether it is the model's own tensor."""
    form: str
    """How it was computed: a key of :data:`model.positions.table.TABLE_FORMS`."""
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
        return compute_wavelengths(self.table.width, self.table.base, inclusive=TABLE_FORMS[self.form].inclusive)

    @property
    def is_sinusoidal(self) -> bool:
        return self.table.kind != "learned"


def draw_positions_view_control(model: RunnableModel) -> tuple[PositionsView, DeltaGenerator]:
    """Draw the choice of the view; pictures of tables and heads are offered only where there are any.

    Returns the view, and where to put what else is rare: a menu, or beside the views where all are side by side.
    """
    if model.can("position pictures"):
        return controls.view_control(POSITIONS_VIEW, FIRST_VIEWS)
    view = controls.segmented_control(say("View"), POSITIONS_VIEW, POSITIONS_RUN_VIEWS)
    return view, st.container(key="more-of-view", horizontal=True, width="content")


def draw_table_controls(model: Translator, text: str, shown: PositionsView) -> TableChoice:
    """Draw the choice of the table: the loaded model's own tensor, or one by the formula with chosen sizes."""
    learned = model.config.positions == "learned"
    kinds = [kind for kind in POSITIONS_TABLE.options if kind != "own_target" or learned]
    forget_unoffered_choice(POSITIONS_TABLE, kinds)
    kind = controls.selectbox(say("Table"), POSITIONS_TABLE, kinds, width=270)
    own = kind in ("own", "own_target")
    most = min(model.config.max_length, MAX_TABLE_SIZE) if own else MAX_TABLE_SIZE
    positions = int(draw_number_input(say("Positions"), POSITIONS_COUNT, 2, most, min(128, most)))
    width, base = model.config.d_model, SINUSOID_BASE
    if not own:
        width = int(draw_number_input(say("Dimensions"), POSITIONS_D_MODEL))
        base = draw_number_input(say("Base"), POSITIONS_BASE)
    form = "float64"
    if shown == "precision" or not own:
        form = controls.selectbox(say("Computed"), POSITIONS_FORM, width=320)
    if own:
        side = model.model.source_embedding if kind == "own" else model.model.target_embedding
        made = extract_table(side.positional_encoding)
        return TableChoice(made.cut(positions), model.name, True, form, made.real, _count_pieces(model, text), text)
    of: TableKind = "sinusoidal" if kind == "sinusoidal" else "sinusoidal_pad_row"
    values = cache.compute_sinusoidal_table(form, positions, width, base)
    made = make_formula_table(positions, width, base, of, values)
    return TableChoice(made, POSITIONS_TABLE.label(kind), False, form, made.real, _count_pieces(model, text), text)


def draw_dimension_order_control() -> DimensionOrder:
    """Draw the choice of the order of dimensions."""
    return controls.segmented_control(say("Order"), POSITIONS_DIMENSION_ORDER)


def draw_cell_inputs(choice: TableChoice) -> tuple[int, int]:
    """Draw the choice of the cell that is worked out, and return its row and dimension."""
    rows, width = choice.table.values.shape
    with st.container(key="cell", horizontal=True):
        row = draw_number_input(say("Position"), POSITIONS_POSITION, 0, rows - 1, min(12, rows - 1))
        dimension = draw_number_input(say("Dimension"), POSITIONS_DIMENSION, 0, width - 1, min(4, width - 1))
    return int(row), int(dimension)


def choose_cell(row: int, dimension: int) -> None:
    """Choose a cell; for callbacks."""
    st.session_state[POSITIONS_POSITION.key], st.session_state[POSITIONS_DIMENSION.key] = row, dimension


def draw_number_input(
    label: str,
    of: NumberParameter[Any],
    low: float | None = None,
    high: float | None = None,
    default: float | None = None,
    **more: Any,
) -> Any:
    """Draw a number input held inside its limits, which change with the table; by default those of the parameter."""
    low, high = of.low if low is None else low, of.high if high is None else high
    before = st.session_state.get(of.key)
    if before is not None:
        st.session_state[of.key] = min(max(before, low), high)
    return controls.number_input(label, of, default, min_value=low, max_value=high, width=230, **more)


def forget_unoffered_choice(of: Parameter[Any], options: Sequence[Any]) -> None:
    """Forget a choice that another model or table does not offer."""
    if of.key in st.session_state and st.session_state[of.key] not in options:
        del st.session_state[of.key]


def _count_pieces(model: Translator, text: str) -> int | None:
    try:
        return len(model.encode(text).ids)
    except InputError:
        return None
