"""What the address of the page Explore can say."""

from __future__ import annotations

from typing import Literal, get_args

from model.analysis.head_statistics import Measure
from model.trace import KINDS
from viz.figures.explore.flow import FLOWS

from ..url_state.kinds import Choice, choice, number, switch, text
from ..url_state.page import Page, parameters_in
from ..url_state.parameter import Parameter
from . import shared
from .pins import PIN, is_number

SingleView = Literal["heatmap", "links", "text", "pipeline", "joint", "flow", "layers"]
"""A view of one run."""
SINGLE_VIEWS: tuple[SingleView, ...] = get_args(SingleView)
View = SingleView | Literal["compare"]
VIEWS: tuple[View, ...] = (*SINGLE_VIEWS, "compare")
Layout = Literal["vertical", "horizontal"]
Second = Literal["head", "sentence", "model", "original"]
"""What a view is compared with."""
Pictured = Literal["changed", "unchanged"]
BY_LAYER = "layer"
EFFECT = "effect"
"""The order of heads by what switching off each changes."""


def read_heads(text: str) -> tuple[int, ...]:
    """``2,5``, counted from 1 -> heads from 0; what is no head is left out."""
    return tuple(sorted({int(part) - 1 for part in text.split(",") if is_number(part) and int(part)}))


def write_heads(heads: tuple[int, ...]) -> str:
    return ",".join(str(head + 1) for head in heads)


VIEW: Choice[View] = choice("view", VIEWS, slot="view chosen")
ORDER = choice("order", (BY_LAYER, *get_args(Measure), EFFECT))
WORDS = switch("words")
HIDE = switch("hide")
NUMBERS = switch("numbers")
TOUR = number("tour", 0, 0, shared.MOST)
"""The step of the tour, from 1; 0 outside it."""
PICTURES = choice("pictures", get_args(Pictured))
"""Whether the pictures are of the changed model or of the model as it is."""

LAYOUT = choice("layout", get_args(Layout), views=("links", "compare"))
LineThreshold = Literal["strongest"] | float
"""The least weight that gets a line, or the strongest of each row alone."""
LINE_THRESHOLDS: tuple[LineThreshold, ...] = ("strongest", 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
THRESHOLD = choice("threshold", LINE_THRESHOLDS, views=("links", "compare"))
BESIDE: Parameter[tuple[int, ...]] = Parameter("beside", (), read_heads, write=write_heads, views=("links", "compare"))
STEP = number("step", 1, 1, shared.MOST, views=("pipeline", "compare"), slot="pipeline step", scrubbed=True)
"""Of the pipeline, from 1."""
MEAN = switch("mean", True, views=("joint", "compare"))
FLOW = choice("flow", FLOWS, views=("flow", "compare"))
THROUGH = number("through", None, 1, shared.MOST, views=("flow", "compare"), slot="through chosen")
"""The last layer of a flow, from 1; the last of the map until one is chosen."""
NORMS = switch("norms", views=("flow", "compare"))

COMPARED = choice("compared", SINGLE_VIEWS, views=("compare",), slot="compared chosen")
"""The view of which a comparison shows two."""

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
    *(*shared.CHOSEN_HEAD, shared.GIVEN, shared.FORCED, shared.CHANGES, PIN),
    *parameters_in(globals()),
    view=VIEW,
)
