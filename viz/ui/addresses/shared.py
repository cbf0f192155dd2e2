"""What the addresses of several pages can say."""

from __future__ import annotations

from model.language.catalogue import LANGUAGES, PSEUDO
from model.trace import KINDS
from viz.figures.heatmap import ROWS as ROW_LABELS
from viz.figures.palette import RAMPS, SCALES

from ..url_state.kinds import choice, number, switch, text

MOST = 999
"""The last layer, head or position that an address can name; what a model has is found out by the page."""

LANGUAGE = choice("lang", ("", *LANGUAGES, PSEUDO))
"""The language of the interface; "" for that of the browser."""
MODEL = text("model", longest=200)
SENTENCE = text("sentence", longest=10_000)
GIVEN = text("given", longest=10_000)
FORCED = switch("forced")
"""Whether the given translation is read instead of the model's own."""
CHANGES = text("changes", slot="changes in address")
"""Changes to the model, as :mod:`model.interventions.changes` writes them."""

KIND = choice("kind", KINDS, "cross")
LAYER = number("layer", 1, 1, MOST)
HEAD = number("head", 1, 1, MOST)
CHOSEN_HEAD = (KIND, LAYER, HEAD)

ROWS = choice("rows", ROW_LABELS)
SCALE = choice("scale", SCALES)
COLOURS = choice("colours", RAMPS)
LOOK = (ROWS, SCALE, COLOURS)

COMMON = (LANGUAGE, MODEL, SENTENCE, *LOOK)
"""Of every page with a sentence and pictures of attention."""
