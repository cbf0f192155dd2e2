"""What the address of the page Explore can say."""

from __future__ import annotations

from typing import Literal, get_args

from attenscope.analysis.heads import Measure
from attenscope.trace import KINDS
from attenscope.viz.figures.explore import FLOW_KINDS
from attenscope.viz.ui.address import (
    AddressPage,
    ChoiceParameter,
    Parameter,
    boolean_parameter,
    choice_parameter,
    collect_module_parameters,
    number_parameter,
    text_parameter,
)
from attenscope.viz.ui.addresses import shared
from attenscope.viz.ui.addresses.shared import PIN, is_short_number

SingleView = Literal["heatmap", "links", "text", "pipeline", "joint", "flow", "layers", "picture"]
"""A view of one run."""
EXPLORE_SINGLE_VIEWS: tuple[SingleView, ...] = get_args(SingleView)
ExploreView = SingleView | Literal["compare"]
EXPLORE_VIEWS: tuple[ExploreView, ...] = (*EXPLORE_SINGLE_VIEWS, "compare")
LinksLayout = Literal["vertical", "horizontal"]
SecondSideKind = Literal["head", "sentence", "model", "original"]
"""What a view is compared with: the kind of its second side."""
PicturedModel = Literal["changed", "unchanged"]
ORDER_BY_LAYER = "layer"
ORDER_BY_EFFECT = "effect"
"""The order of heads by what switching off each changes."""


def parse_head_list(text: str) -> tuple[int, ...]:
    """``2,5``, counted from 1 -> heads from 0; what is no head is left out."""
    return tuple(sorted({int(part) - 1 for part in text.split(",") if is_short_number(part) and int(part)}))


def format_head_list(heads: tuple[int, ...]) -> str:
    return ",".join(str(head + 1) for head in heads)


EXPLORE_VIEW: ChoiceParameter[ExploreView] = choice_parameter("view", EXPLORE_VIEWS, slot="view chosen")
EXPLORE_HEAD_ORDER = choice_parameter("order", (ORDER_BY_LAYER, *get_args(Measure), ORDER_BY_EFFECT))
EXPLORE_MERGE_WORDS = boolean_parameter("words", None, slot="words chosen")
EXPLORE_HIDE_SPECIAL = boolean_parameter("hide", None, slot="hide chosen")
"""Whether pieces are merged into words, and special tokens hidden; until one is chosen, by what is looked at."""
EXPLORE_HIDE_FIRST = boolean_parameter("first")
"""Whether the first token is left out of a decoder's map, where it is no special token."""
EXPLORE_CELL_NUMBERS = boolean_parameter("numbers")
EXPLORE_FILE: Parameter[str | None] = Parameter("file", None, str, longest=300, slot="file chosen")
"""The file that a model of sounds or pictures reads: one of its folder, or one that was uploaded, by a digest."""
EXPLORE_TOUR_STEP = number_parameter("tour", 0, 0, shared.MAX_PLACE)
"""The step of the tour, from 1; 0 outside it."""
EXPLORE_PICTURED_MODEL = choice_parameter("pictures", get_args(PicturedModel))
"""Whether the pictures are of the changed model or of the model as it is."""

EXPLORE_LINKS_LAYOUT = choice_parameter("layout", get_args(LinksLayout), views=("links", "compare"))
LineThreshold = Literal["strongest"] | float
"""The least weight that gets a line, or the strongest of each row alone."""
LINE_THRESHOLDS: tuple[LineThreshold, ...] = ("strongest", 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
EXPLORE_LINE_THRESHOLD = choice_parameter("threshold", LINE_THRESHOLDS, views=("links", "compare"))
EXPLORE_OTHER_HEADS: Parameter[tuple[int, ...]] = Parameter(
    "beside", (), parse_head_list, write=format_head_list, views=("links", "compare")
)
EXPLORE_PIPELINE_STEP = number_parameter(
    "step", 1, 1, shared.MAX_PLACE, views=("pipeline", "compare"), slot="pipeline step", scrubbed=True
)
"""The step of the pipeline, from 1."""
EXPLORE_MEAN_OF_HEADS = boolean_parameter("mean", True, views=("joint", "compare"))
EXPLORE_FLOW = choice_parameter("flow", FLOW_KINDS, views=("flow", "compare"))
EXPLORE_FLOW_LAYER = number_parameter(
    "through", None, 1, shared.MAX_PLACE, views=("flow", "compare"), slot="through chosen"
)
"""The last layer of a flow, from 1; the last of the map until one is chosen."""
EXPLORE_VALUE_NORMS = boolean_parameter("norms", views=("flow", "compare"))

EXPLORE_COMPARED_VIEW = choice_parameter("compared", EXPLORE_SINGLE_VIEWS, views=("compare",), slot="compared chosen")
"""The view of which a comparison shows two."""

# The second side of a comparison; until a kind, a layer or a head is chosen, it follows the first side.
EXPLORE_COMPARE_WITH = choice_parameter("with", get_args(SecondSideKind), views=("compare",))
EXPLORE_SECOND_KIND = choice_parameter("with-kind", (None, *KINDS), views=("compare",), slot="with-kind chosen")
EXPLORE_SECOND_LAYER = number_parameter(
    "with-layer", None, 1, shared.MAX_PLACE, views=("compare",), slot="with-layer chosen"
)
EXPLORE_SECOND_HEAD = number_parameter(
    "with-head", None, 1, shared.MAX_PLACE, views=("compare",), slot="with-head chosen"
)
EXPLORE_SECOND_SENTENCE = text_parameter("with-sentence", longest=10_000, views=("compare",))
EXPLORE_SECOND_MODEL = text_parameter("with-model", longest=200, views=("compare",))

PAGE = AddressPage.build(
    "explore",
    *shared.COMMON_PARAMETERS,
    *(*shared.HEAD_PARAMETERS, shared.GIVEN_TRANSLATION, shared.READ_GIVEN, shared.CHANGES, PIN),
    *collect_module_parameters(globals()),
    view=EXPLORE_VIEW,
)
