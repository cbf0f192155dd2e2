"""What the addresses of several pages can say, and the pinned positions, which every view marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from attenscope.language import LANGUAGES, PSEUDO_LANGUAGE
from attenscope.trace import KINDS
from attenscope.viz.figures.figure_style import RAMPS, SCALES
from attenscope.viz.figures.heatmap import ROW_LABELS
from attenscope.viz.ui.address import Parameter, boolean_parameter, choice_parameter, number_parameter, text_parameter

MAX_PLACE = 999
"""The last layer, head or position that an address can name; what a model has is found out by the page."""

LANGUAGE = choice_parameter("lang", ("", *LANGUAGES, PSEUDO_LANGUAGE))
"""The language of the interface; "" for that of the browser."""
MODEL = text_parameter("model", longest=200)
SENTENCE = text_parameter("sentence", longest=40_000)
"""So long as the longest text whose attention is shown: 8,192 tokens."""
GIVEN_TRANSLATION = text_parameter("given", longest=10_000)
READ_GIVEN = boolean_parameter("forced")
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

CARRIED_PARAMETERS = (MODEL, SENTENCE, *HEAD_PARAMETERS)
"""What a visitor looks at, on whichever page."""
HELD_PARAMETERS = (LANGUAGE, *LOOK_PARAMETERS)
"""The visitor's language and the look of pictures, which no widget is bound to: :meth:`Parameter.hold` keeps them."""
COMMON_PARAMETERS = (LANGUAGE, MODEL, SENTENCE, *LOOK_PARAMETERS)
"""Of every page with a sentence and pictures of attention."""

# Pins: the pinned positions of a sentence and of its translation.


PinPlace = Literal["source", "target", "source_key", "target_key"]
"""What a pinned position counts: tokens of the sentence, of its translation, or, in self-attention, keys of either."""
PIN_PLACES: tuple[PinPlace, ...] = get_args(PinPlace)


def parse_pins(text: str) -> dict[PinPlace, int]:
    """``target.4,source.2``, counted from 1 -> positions from 0; what is no pin is left out."""
    pairs = (part.split(".") for part in text.split(","))
    pins = {pair[0]: int(pair[1]) - 1 for pair in pairs if len(pair) == 2 and is_short_number(pair[1])}
    return {place: pins[place] for place in PIN_PLACES if pins.get(place, -1) >= 0}


def format_pins(pins: Mapping[PinPlace, int]) -> str:
    return ",".join(f"{place}.{position + 1}" for place, position in pins.items())


def is_short_number(text: str) -> bool:
    """Whether a text is a short whole number without a sign."""
    return text.isascii() and text.isdecimal() and len(text) < 6


PIN: Parameter[dict[PinPlace, int]] = Parameter("pin", {}, parse_pins, write=format_pins, of_sentence=True, slot="pins")


def get_pin(text: str, place: PinPlace) -> int | None:
    """Return the pinned position of `text` or of its translation, from 0; another sentence starts with none."""
    return PIN.get(of=text).get(place)


def add_pins(text: str, cell: Mapping[PinPlace, int]) -> None:
    """Pin positions beside those that are pinned; for callbacks."""
    PIN.set(PIN.get(of=text) | dict(cell), of=text)


def toggle_pins(text: str, cell: Mapping[PinPlace, int]) -> None:
    """Pin positions, or let go of them where all of them are pinned already; for callbacks."""
    before = PIN.get(of=text)
    if cell.items() <= before.items():
        after = {place: position for place, position in before.items() if place not in cell}
    else:
        after = before | dict(cell)
    PIN.set(after, of=text)
