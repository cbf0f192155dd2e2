"""What the address of the page Explore can say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from model.analysis.head_statistics import Measure
from model.trace import KINDS
from viz.figures.explore.flow import FLOWS

from ..url_state.kinds import choice, number, switch, text
from ..url_state.page import Page, parameters_in
from ..url_state.parameter import Parameter
from . import shared

View = Literal["heatmap", "links", "text", "pipeline", "joint", "flow", "layers", "compare"]
VIEWS: tuple[View, ...] = get_args(View)
Place = Literal["source", "target", "source_key", "target_key"]
"""What a pinned position counts: tokens of the sentence, of its translation, or, in self-attention, keys of either."""
PLACES: tuple[Place, ...] = get_args(Place)
Layout = Literal["vertical", "horizontal"]
Second = Literal["head", "sentence", "model", "original"]
"""What the view Compare holds the chosen head against."""
Pictured = Literal["changed", "unchanged"]
BY_LAYER = "layer"


def read_pins(text: str) -> dict[Place, int]:
    """``target.4,source.2``, counted from 1 -> positions from 0; what is no pin is left out."""
    pairs = (part.split(".") for part in text.split(","))
    pins = {pair[0]: int(pair[1]) - 1 for pair in pairs if len(pair) == 2 and _is_number(pair[1])}
    return {place: pins[place] for place in PLACES if pins.get(place, -1) >= 0}


def write_pins(pins: Mapping[Place, int]) -> str:
    return ",".join(f"{place}.{position + 1}" for place, position in pins.items())


def read_heads(text: str) -> tuple[int, ...]:
    """``2,5``, counted from 1 -> heads from 0; what is no head is left out."""
    return tuple(sorted({int(part) - 1 for part in text.split(",") if _is_number(part) and int(part)}))


def write_heads(heads: tuple[int, ...]) -> str:
    return ",".join(str(head + 1) for head in heads)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6


VIEW = choice("view", VIEWS)
ORDER = choice("order", (BY_LAYER, *get_args(Measure)))
WORDS = switch("words")
HIDE = switch("hide")
NUMBERS = switch("numbers")
FORCED = switch("forced")
PIN: Parameter[dict[Place, int]] = Parameter("pin", {}, read_pins, write=write_pins, slot="pins")
PICTURES = choice("pictures", get_args(Pictured))
"""Whether the pictures are of the changed model or of the model as it is."""

LAYOUT = choice("layout", get_args(Layout), views=("links",))
THRESHOLD = choice("threshold", (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5), 0.05, views=("links",))
BESIDE: Parameter[tuple[int, ...]] = Parameter("beside", (), read_heads, write=write_heads, views=("links",))
STEP = number("step", 1, 1, shared.MOST, views=("pipeline",), slot="pipeline step", scrubbed=True)
"""Of the pipeline, from 1."""
MEAN = switch("mean", True, views=("joint",))
FLOW = choice("flow", FLOWS, views=("flow",))
NORMS = switch("norms", views=("flow",))

# The second side of a comparison; until a kind, a layer or a head is chosen, it follows the first side.
WITH = choice("with", get_args(Second), views=("compare",))
WITH_KIND = choice("with-kind", (None, *KINDS), views=("compare",), slot="with-kind chosen")
WITH_LAYER = number("with-layer", None, 1, shared.MOST, views=("compare",), slot="with-layer chosen")
WITH_HEAD = number("with-head", None, 1, shared.MOST, views=("compare",), slot="with-head chosen")
WITH_SENTENCE = text("with-sentence", longest=10_000, views=("compare",))
WITH_MODEL = text("with-model", longest=200, views=("compare",))

PAGE = Page.of(
    "explore",
    *shared.COMMON,
    *(*shared.CHOSEN_HEAD, shared.GIVEN, shared.CHANGES),
    *parameters_in(globals()),
    view=VIEW,
)
