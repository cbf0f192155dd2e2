"""What the address of the page Positions can say."""

from __future__ import annotations

from typing import Literal, get_args

from model.positions.experiments import MOVES, Sides
from model.positions.forms import FORMS
from model.positions.table import BASE, ORDERS

from ..url_state.kinds import Several, choice, number, text
from ..url_state.page import Page, parameters_in
from . import shared

View = Literal["table", "waves", "similarity", "rotation", "precision", "sentence", "experiments", "heads"]
VIEWS: tuple[View, ...] = get_args(View)
OF_TABLES: tuple[View, ...] = VIEWS[:5]
WITHOUT_PICTURES: tuple[View, ...] = ("sentence", "experiments")
"""The views of a model whose table is read and moved, and no more."""
Table = Literal["own", "own_target", "sinusoidal", "sinusoidal_pad_row"]
TABLE_LABELS: dict[Table, str] = {
    "own": "of this model",
    "own_target": "of this model, decoder side",
    "sinusoidal": "sinusoidal",
    "sinusoidal_pad_row": "sinusoidal with PAD row",
}
Measure = Literal["cosine", "dot product"]
SIDE_LABELS: dict[Sides, str] = {"both": "both sides", "source": "encoder side", "target": "decoder side"}
Text = Literal["source", "target"]
TEXT_LABELS: dict[Text, str] = {"source": "the sentence", "target": "the translation, as it is fed"}
MOST = 1024
"""Positions and dimensions of the largest table that is drawn."""

PLOT = choice("plot", VIEWS)
TABLE = choice("table", tuple(TABLE_LABELS), labels=TABLE_LABELS, views=OF_TABLES)
POSITIONS = number("positions", None, 2, MOST, views=OF_TABLES)
D_MODEL = number("d_model", 512, 1, MOST, views=OF_TABLES)
TABLE_BASE = number("base", BASE, 2.0, 1e6, views=OF_TABLES)
FORM = choice("form", tuple(FORMS), labels={name: form.title for name, form in FORMS.items()}, views=OF_TABLES)
ARRANGED = choice("arranged", ORDERS, "interleaved", views=("table",))
"""The order in which the dimensions stand."""
POS = number("pos", None, 0, MOST, views=OF_TABLES)
DIM = number("dim", None, 0, MOST, views=OF_TABLES)
"""The position and the dimension that are looked at closely."""
DIMS: Several[int] = Several("dims", [], number("dims", None, 0, MOST).read, views=("waves",))
MEASURE = choice("measure", get_args(Measure), views=("similarity",))
SHIFT = number("shift", None, -MOST, MOST, views=("similarity", "rotation"))
SIDE = choice("side", tuple(TEXT_LABELS), labels=TEXT_LABELS, views=("sentence",))
PIECE = number("piece", None, 1, 99_999, views=("sentence",))

MOVE = choice("move", MOVES, views=("experiments",))
SIDES_MOVED = choice("sides", tuple(SIDE_LABELS), labels=SIDE_LABELS, views=("experiments",))
BY = number("by", 5, -64, 512, views=("experiments",))
FACTOR = number("factor", 2.0, 0.0, 16.0, views=("experiments",))
START = number("start", None, 0, 10_000, views=("experiments",))
DRAW = number("draw", 1, 1, 999, views=("experiments",))
ONE = text("one", views=("experiments",))
OTHER = text("other", views=("experiments",))
"""The two pieces that change places, as their lists show them: ``2 dog``."""

PAGE = Page.of("positions", *shared.COMMON, *shared.CHOSEN_HEAD, *parameters_in(globals()), view=PLOT)
