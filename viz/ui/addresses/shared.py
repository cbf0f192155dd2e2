"""What the addresses of several pages can say."""

from __future__ import annotations

from attenscope.language import LANGUAGES, PSEUDO_LANGUAGE
from attenscope.trace import KINDS
from attenscope.viz.figures.heatmap import ROW_LABELS
from attenscope.viz.figures.look import RAMPS, SCALES
from attenscope.viz.ui.address import choice_parameter, number_parameter, switch_parameter, text_parameter

MAX_PLACE = 999
"""The last layer, head or position that an address can name; what a model has is found out by the page."""

LANGUAGE = choice_parameter("lang", ("", *LANGUAGES, PSEUDO_LANGUAGE))
"""The language of the interface; "" for that of the browser."""
MODEL = text_parameter("model", longest=200)
SENTENCE = text_parameter("sentence", longest=10_000)
GIVEN_TRANSLATION = text_parameter("given", longest=10_000)
READ_GIVEN = switch_parameter("forced")
"""Whether the given translation is read instead of the model's own."""
CHANGES = text_parameter("changes", slot="changes in address")
"""Changes to the model, as :mod:`attenscope.interventions.changes` writes them."""

KIND = choice_parameter("kind", KINDS, "cross")
LAYER = number_parameter("layer", 1, 1, MAX_PLACE)
HEAD = number_parameter("head", 1, 1, MAX_PLACE)
HEAD_PARAMETERS = (KIND, LAYER, HEAD)

ROWS = choice_parameter("rows", ROW_LABELS)
SCALE = choice_parameter("scale", SCALES)
COLOURS = choice_parameter("colours", RAMPS)
LOOK_PARAMETERS = (ROWS, SCALE, COLOURS)

COMMON_PARAMETERS = (LANGUAGE, MODEL, SENTENCE, *LOOK_PARAMETERS)
"""Of every page with a sentence and pictures of attention."""
