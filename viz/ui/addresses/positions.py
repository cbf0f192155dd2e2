"""What the address of the page Positions can say."""

from __future__ import annotations

from typing import Any, Literal, get_args

from attenscope.positions.experiments import POSITION_MOVES, ExperimentSides
from attenscope.positions.table import DIMENSION_ORDERS, SINUSOID_BASE, TABLE_FORMS
from attenscope.viz.ui.address import (
    AddressPage,
    ListParameter,
    Parameter,
    choice_parameter,
    collect_module_parameters,
    number_parameter,
    text_parameter,
)
from attenscope.viz.ui.addresses import shared

PositionsView = Literal["experiments", "table", "waves", "similarity", "rotation", "sentence", "heads", "precision"]
POSITIONS_VIEWS: tuple[PositionsView, ...] = get_args(PositionsView)
FIRST_VIEWS: tuple[PositionsView, ...] = ("experiments", "table")
"""The views that stand beside each other; the others are folded."""
POSITIONS_TABLE_VIEWS: tuple[PositionsView, ...] = ("table", "waves", "similarity", "rotation", "precision")
POSITIONS_RUN_VIEWS: tuple[PositionsView, ...] = ("experiments", "sentence")
"""The views of a model whose position table can be read and moved but not drawn."""
PositionsTable = Literal["own", "own_target", "sinusoidal", "sinusoidal_pad_row"]
POSITIONS_TABLE_LABELS: dict[PositionsTable, str] = {
    "own": "of this model",
    "own_target": "of this model, decoder side",
    "sinusoidal": "sinusoidal",
    "sinusoidal_pad_row": "sinusoidal with PAD row",
}
SimilarityMeasure = Literal["cosine", "dot product"]
MOVED_SIDE_LABELS: dict[ExperimentSides, str] = {
    "both": "both sides",
    "source": "encoder side",
    "target": "decoder side",
}
PositionsText = Literal["source", "target"]
POSITIONS_TEXT_LABELS: dict[PositionsText, str] = {"source": "the sentence", "target": "the translation, as it is fed"}
MAX_TABLE_SIZE = 1024
"""Positions and dimensions of the largest table that is drawn."""

POSITIONS_VIEW = choice_parameter("plot", POSITIONS_VIEWS)
POSITIONS_TABLE = choice_parameter(
    "table", tuple(POSITIONS_TABLE_LABELS), labels=POSITIONS_TABLE_LABELS, views=POSITIONS_TABLE_VIEWS
)
POSITIONS_COUNT = number_parameter("positions", None, 2, MAX_TABLE_SIZE, views=POSITIONS_TABLE_VIEWS)
POSITIONS_D_MODEL = number_parameter("d_model", 512, 1, MAX_TABLE_SIZE, views=POSITIONS_TABLE_VIEWS)
POSITIONS_BASE = number_parameter("base", SINUSOID_BASE, 2.0, 1e6, views=POSITIONS_TABLE_VIEWS)
POSITIONS_FORM = choice_parameter(
    "form",
    tuple(TABLE_FORMS),
    labels={name: form.title for name, form in TABLE_FORMS.items()},
    views=POSITIONS_TABLE_VIEWS,
)
POSITIONS_DIMENSION_ORDER = choice_parameter("arranged", DIMENSION_ORDERS, "interleaved", views=("table",))
"""The order in which the dimensions stand."""
POSITIONS_POSITION = number_parameter("pos", None, 0, MAX_TABLE_SIZE, views=POSITIONS_TABLE_VIEWS)
POSITIONS_DIMENSION = number_parameter("dim", None, 0, MAX_TABLE_SIZE, views=POSITIONS_TABLE_VIEWS)
"""The position and the dimension that are looked at closely."""
POSITIONS_DIMENSIONS: ListParameter[int] = ListParameter(
    "dims", [], number_parameter("dims", None, 0, MAX_TABLE_SIZE).read, views=("waves",)
)
POSITIONS_MEASURE = choice_parameter("measure", get_args(SimilarityMeasure), views=("similarity",))
POSITIONS_SHIFT = number_parameter("shift", None, -MAX_TABLE_SIZE, MAX_TABLE_SIZE, views=("similarity", "rotation"))
POSITIONS_SIDE = choice_parameter(
    "side", tuple(POSITIONS_TEXT_LABELS), labels=POSITIONS_TEXT_LABELS, views=("sentence",)
)
POSITIONS_PIECE = number_parameter("piece", None, 1, 99_999, views=("sentence",))

POSITIONS_MOVE = choice_parameter("move", POSITION_MOVES, views=("experiments",))
POSITIONS_MOVED_SIDES = choice_parameter(
    "sides", tuple(MOVED_SIDE_LABELS), labels=MOVED_SIDE_LABELS, views=("experiments",)
)
POSITIONS_MOVED_BY = number_parameter("by", 5, -64, 512, views=("experiments",))
POSITIONS_FACTOR = number_parameter("factor", 2.0, 0.0, 16.0, views=("experiments",))
POSITIONS_START = number_parameter("start", None, 0, 10_000, views=("experiments",))
POSITIONS_RANDOM_DRAW = number_parameter("draw", 1, 1, 999, views=("experiments",))
POSITIONS_FIRST_PIECE: Parameter[Any] = text_parameter("one", views=("experiments",))
POSITIONS_SECOND_PIECE: Parameter[Any] = text_parameter("other", views=("experiments",))
"""The two pieces that change places: in the session their places, in the address as lists show them: ``2 dog``."""

PAGE = AddressPage.build(
    "positions",
    *shared.COMMON_PARAMETERS,
    *shared.HEAD_PARAMETERS,
    *collect_module_parameters(globals()),
    view=POSITIONS_VIEW,
)
