"""What the address of the page Heads can say."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from model.atlas.measures import EXPLAINED
from model.atlas.places import NAMES
from model.heads.question import LONGEST

from ..url_state.kinds import Choice, choice, number, text
from ..url_state.page import Page, parameters_in
from ..url_state.parameter import Parameter
from . import shared

if TYPE_CHECKING:
    from model.heads.projection import Space

View = Literal["map", "head", "search", "projection", "alignment", "pruning", "over training"]
VIEWS: tuple[View, ...] = get_args(View)
MEASURES: tuple[str, ...] = tuple(EXPLAINED)
MEASURE_NAMES: MappingProxyType[str, str] = MappingProxyType(
    {
        **{"entropy": "entropy", "distance": "distance", "top": "largest weight", "stays": "stays when shuffled"},
        **{"norm": "share of the norm", "logit": "logit contribution", "cost": "cost"},
        **{str(place): name for place, name in NAMES.items()},
    }
)
"""What a person reads for a measure, which the address says as well."""
FIRST_QUESTION = "pos=NOUN -> pos=DET distance=-1"

LeftBy = Literal["BLEU", "log-probability"]
LEFT_BY_NAMES: tuple[LeftBy, ...] = get_args(LeftBy)

Colour = Literal["side", "part of speech", "position"]
COLOUR_NAMES: dict[Colour, str] = {"side": "query or key"}

Box = tuple[float, float, float, float]
"""Left, right, low and high of a part of the map."""


def read_box(text: str) -> Box | None:
    """Read ``left,right,low,high``. ValueError."""
    left, right, low, high = (float(part) for part in text.split(","))
    if not (math.isfinite(left + right + low + high) and left <= right and low <= high):
        raise ValueError("A box is left,right,low,high.")
    return left, right, low, high


def write_box(box: Box | None) -> str:
    """Write a box as :func:`read_box` reads it."""
    return ",".join(f"{end:.4g}" for end in box) if box else ""


HEADS = choice("heads", VIEWS)
BRUSH: Parameter[Box | None] = Parameter("brush", None, read_box, write=write_box, views=("map", "projection"))
"""The box whose heads or sentences are listed below the picture; it belongs to what its two axes are."""
ACROSS = choice("across", MEASURES, "distance", labels=MEASURE_NAMES, views=("map",))
UP = choice("up", MEASURES, "entropy", labels=MEASURE_NAMES, views=("map",))
BESIDE = text("second_model", longest=200, views=("map",))
"""The model that stands beside on the map; none for \"\"."""
ASKED = text("ask", FIRST_QUESTION, longest=LONGEST, views=("search",))
LEFT_BY = choice("left", LEFT_BY_NAMES, views=("pruning",))
AWAY = number("away", 0, 0, 99_999, views=("pruning",), scrubbed=True)
"""How many heads are taken away; what a model has is found out by the page."""
TRACKED = choice("tracked", MEASURES, "punctuation", labels=MEASURE_NAMES, views=("over training",))

SPACES: tuple[Space, ...] = ("queries and keys", "encoder outputs", "token embeddings")
SPACE = choice("plane", SPACES, views=("projection",))
COLOURED: Choice[Colour] = choice("coloured", get_args(Colour), labels=COLOUR_NAMES, views=("projection",))
MARKED = text("marked", longest=60, views=("projection",))
"""The word whose tokens stand out."""

PAGE = Page.of("heads", *shared.COMMON, *shared.CHOSEN_HEAD, *parameters_in(globals()), view=HEADS)
