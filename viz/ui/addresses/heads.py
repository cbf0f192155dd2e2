"""What the address of the page Heads can say."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Literal, get_args

from attenscope.atlas.measure import MEASURE_EXPLANATIONS
from attenscope.atlas.projection import ProjectionSpace
from attenscope.atlas.query import MAX_QUESTION_LENGTH
from attenscope.atlas.teacher_forced_batches import PLACE_NAMES
from attenscope.language import to_say
from attenscope.viz.ui.address import (
    AddressPage,
    ChoiceParameter,
    Parameter,
    choice_parameter,
    collect_module_parameters,
    number_parameter,
    text_parameter,
)
from attenscope.viz.ui.addresses import shared

HeadsView = Literal["habits", "map", "head", "search", "projection", "alignment", "pruning", "over training"]
HEADS_VIEWS: tuple[HeadsView, ...] = get_args(HeadsView)
FIRST_VIEWS: tuple[HeadsView, ...] = ("habits", "map", "search")
"""The views that stand beside each other; the others are folded."""
HEADS_MEASURES: tuple[str, ...] = tuple(MEASURE_EXPLANATIONS)
HEADS_MEASURE_NAMES: MappingProxyType[str, str] = MappingProxyType(
    {
        **{"entropy": "entropy", "distance": "distance", "top": "largest weight", "stays": "stays when shuffled"},
        **{"norm": "share of the norm", "logit": "logit contribution", "cost": "cost"},
        **{str(place): name for place, name in PLACE_NAMES.items()},
        "induction_repeated": to_say("induction, random tokens"),
        "duplicate_repeated": to_say("duplicate token, random tokens"),
        "previous_repeated": to_say("previous token, random tokens"),
    }
)
"""What a person reads for a measure, which the address says as well."""
HEADS_FIRST_QUESTION = "pos=NOUN -> pos=DET distance=-1"

PruningMeasure = Literal["BLEU", "log-probability"]
PRUNING_MEASURES: tuple[PruningMeasure, ...] = get_args(PruningMeasure)

ProjectionColour = Literal["side", "part of speech", "position"]
PROJECTION_COLOUR_NAMES: dict[ProjectionColour, str] = {"side": "query or key"}

MapBox = tuple[float, float, float, float]
"""Left, right, low and high of a part of the map."""


def parse_map_box(text: str) -> MapBox | None:
    """Read ``left,right,low,high``. Raises ValueError for anything else."""
    left, right, low, high = (float(part) for part in text.split(","))
    if not (math.isfinite(left + right + low + high) and left <= right and low <= high):
        raise ValueError("A box is left,right,low,high.")
    return left, right, low, high


def format_map_box(box: MapBox | None) -> str:
    """Write a box as :func:`parse_map_box` reads it."""
    return ",".join(f"{end:.4g}" for end in box) if box else ""


HEADS_VIEW = choice_parameter("heads", HEADS_VIEWS)
HEADS_BRUSHED_BOX: Parameter[MapBox | None] = Parameter(
    "brush", None, parse_map_box, write=format_map_box, views=("map", "projection")
)
"""The box whose heads or sentences are listed below the picture; it belongs to what its two axes are."""
HEADS_X_MEASURE = choice_parameter("across", HEADS_MEASURES, "distance", labels=HEADS_MEASURE_NAMES, views=("map",))
HEADS_Y_MEASURE = choice_parameter("up", HEADS_MEASURES, "entropy", labels=HEADS_MEASURE_NAMES, views=("map",))
HEADS_SECOND_MODEL = text_parameter("second_model", longest=200, views=("map",))
"""A second model whose map is drawn beside the first; an empty text for none."""
HEADS_QUESTION = text_parameter("ask", HEADS_FIRST_QUESTION, longest=MAX_QUESTION_LENGTH, views=("search",))
HEADS_PRUNING_MEASURE = choice_parameter("left", PRUNING_MEASURES, views=("pruning",))
HEADS_PRUNED_COUNT = number_parameter("away", 0, 0, 99_999, views=("pruning",), scrubbed=True)
"""How many heads are taken away; what a model has is found out by the page."""
HEADS_TRACKED_MEASURE = choice_parameter(
    "tracked", HEADS_MEASURES, "aligned_predicted", labels=HEADS_MEASURE_NAMES, views=("over training",)
)

PROJECTION_SPACES: tuple[ProjectionSpace, ...] = ("queries and keys", "encoder outputs", "token embeddings")
HEADS_PROJECTION_SPACE = choice_parameter("plane", PROJECTION_SPACES, views=("projection",))
HEADS_PROJECTION_COLOUR: ChoiceParameter[ProjectionColour] = choice_parameter(
    "coloured", get_args(ProjectionColour), labels=PROJECTION_COLOUR_NAMES, views=("projection",)
)
HEADS_MARKED_WORD = text_parameter("marked", longest=60, views=("projection",))
"""The word whose tokens stand out."""

PAGE = AddressPage.build(
    "heads",
    *shared.COMMON_PARAMETERS,
    *shared.HEAD_PARAMETERS,
    *collect_module_parameters(globals()),
    view=HEADS_VIEW,
)
