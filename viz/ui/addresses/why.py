"""What the address of the page Why can say."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from model.attribution.foreign import COMPUTED
from model.attribution.methods import DEFAULT_METHOD, METHODS
from model.trace import KINDS, Kind

from ..url_state.kinds import choice, text
from ..url_state.page import Page, parameters_in
from ..url_state.parameter import Parameter
from . import shared
from .pins import PIN, is_number

View = Literal["source words", "deletion", "heads", "score", "source or prefix", "two sentences", "layers"]
VIEWS: tuple[View, ...] = get_args(View)
Patched = Literal["encoder stream", "decoder stream", "encoder heads", "decoder heads", "cross heads"]
PATCHED_OPTIONS: tuple[Patched, ...] = get_args(Patched)
HeadsBy = Literal["share of the logit", "switched off"]
HEADS_BY_OPTIONS: tuple[HeadsBy, ...] = get_args(HeadsBy)


class Cell(NamedTuple):
    """One cell of an attention map, all counted from 0."""

    kind: Kind
    layer: int
    head: int
    query: int
    key: int


def read_cell(text: str) -> Cell | None:
    """``cross.3.1.4.2``, counted from 1 -> the cell. Raises ValueError for anything else."""
    kind, *rest = text.split(".")
    found = next((one for one in KINDS if one == kind), None)
    if found is None or len(rest) != 4 or not all(is_number(one) and int(one) for one in rest):
        raise ValueError(f"This is no cell: {text[:40]}")
    layer, head, query, key = (int(one) - 1 for one in rest)
    return Cell(found, layer, head, query, key)


def write_cell(cell: Cell | None) -> str:
    return "" if cell is None else ".".join([cell.kind, *(str(one + 1) for one in cell[1:])])


WHY = choice("why", VIEWS)
AGAINST = text("against", longest=60)
"""The piece Y that the word is compared with."""
ATTRIBUTION = choice("attribution", tuple(METHODS | COMPUTED), DEFAULT_METHOD, views=("source words", "deletion"))
"""A method for our models or for any other: which of them there are depends on the model."""
HEADS_BY = choice("heads-by", HEADS_BY_OPTIONS, views=("heads",))
CELL: Parameter[Cell | None] = Parameter("cell", None, read_cell, write=write_cell, views=("score",))
"""The cell whose score is split; until one is chosen, that of the head that matters most for the word."""
SECOND = text("second", longest=10_000, views=("two sentences",))
CONTROL = text("control", longest=10_000, views=("two sentences",))
PATCHED = choice("patched", PATCHED_OPTIONS, views=("two sentences",))

PAGE = Page.of(
    "why",
    *shared.COMMON,
    *(shared.GIVEN, shared.FORCED, shared.CHANGES, PIN),
    *parameters_in(globals()),
    view=WHY,
)
