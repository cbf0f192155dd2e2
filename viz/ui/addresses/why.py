"""What the address of the page Why can say."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from attenscope.attribution.any_model import ANY_MODEL_METHODS
from attenscope.attribution.methods import ATTRIBUTION_METHODS, DEFAULT_METHOD
from attenscope.trace import KINDS, Kind
from attenscope.viz.ui.address import (
    AddressPage,
    Parameter,
    choice_parameter,
    collect_module_parameters,
    text_parameter,
)
from attenscope.viz.ui.addresses import shared
from attenscope.viz.ui.addresses.shared import PIN, is_short_number

WhyView = Literal["source words", "deletion", "heads", "score", "source or prefix", "two sentences", "layers"]
WHY_VIEWS: tuple[WhyView, ...] = get_args(WhyView)
FIRST_VIEWS: tuple[WhyView, ...] = ("source words", "two sentences")
"""The views that stand beside each other; the others are folded."""
PatchedPart = Literal["encoder stream", "decoder stream", "encoder heads", "decoder heads", "cross heads"]
PATCHED_PARTS: tuple[PatchedPart, ...] = get_args(PatchedPart)
HeadMeasure = Literal["share of the logit", "switched off"]
HEAD_MEASURES: tuple[HeadMeasure, ...] = get_args(HeadMeasure)


class AttentionCell(NamedTuple):
    """One cell of an attention map, all counted from 0."""

    kind: Kind
    layer: int
    head: int
    query: int
    key: int


def parse_attention_cell(text: str) -> AttentionCell | None:
    """``cross.3.1.4.2``, counted from 1 -> the cell. Raises ValueError for anything else."""
    kind, *rest = text.split(".")
    found = next((one for one in KINDS if one == kind), None)
    if found is None or len(rest) != 4 or not all(is_short_number(one) and int(one) for one in rest):
        raise ValueError(f"This is no cell: {text[:40]}")
    layer, head, query, key = (int(one) - 1 for one in rest)
    return AttentionCell(found, layer, head, query, key)


def format_attention_cell(cell: AttentionCell | None) -> str:
    return "" if cell is None else ".".join([cell.kind, *(str(one + 1) for one in cell[1:])])


WHY_VIEW = choice_parameter("why", WHY_VIEWS)
WHY_CONTRAST_PIECE = text_parameter("against", longest=60, of_sentence=True)
"""The piece Y that the word is compared with."""
WHY_ATTRIBUTION_METHOD = choice_parameter(
    "attribution", tuple(ATTRIBUTION_METHODS | ANY_MODEL_METHODS), DEFAULT_METHOD, views=("source words", "deletion")
)
"""A method for our models or for any other: which of them there are depends on the model."""
WHY_HEAD_MEASURE = choice_parameter("heads-by", HEAD_MEASURES, views=("heads",))
WHY_SCORE_CELL: Parameter[AttentionCell | None] = Parameter(
    "cell", None, parse_attention_cell, write=format_attention_cell, views=("score",), of_sentence=True
)
"""The cell whose score is split; until one is chosen, that of the head that matters most for the word."""
WHY_SECOND_SENTENCE = text_parameter("second", longest=10_000, views=("two sentences",))
WHY_CONTROL_SENTENCE = text_parameter("control", longest=10_000, views=("two sentences",))
WHY_PATCHED_PART = choice_parameter("patched", PATCHED_PARTS, views=("two sentences",))

PAGE = AddressPage.build(
    "why",
    *shared.COMMON_PARAMETERS,
    *(shared.GIVEN_TRANSLATION, shared.READ_GIVEN, shared.CHANGES, PIN),
    *collect_module_parameters(globals()),
    view=WHY_VIEW,
)
