"""The look of every figure: palettes, layouts, axes, labels, place names, and messages."""

from __future__ import annotations

import html
import re
import string
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from numbers import Real
from typing import Any, Literal, Protocol, get_args

import numpy as np
from plotly.colors import sequential

# Layout: type, background, axes, a title at the left.


FIGURE_FONT = '"Source Sans", system-ui, sans-serif'


def base_layout(palette: Palette, height: float, **margin: int) -> dict[str, Any]:
    """Type and background of every figure. The margins `l`, `r`, `t`, `b` are fixed, so that nothing moves."""
    return {
        "template": "none",
        "height": height,
        "separators": number_separators(),
        "margin": {**margin, "autoexpand": False},
        "paper_bgcolor": palette.background,
        "plot_bgcolor": palette.background,
        "font": {"family": FIGURE_FONT, "color": palette.ink},
        "showlegend": False,
        "dragmode": False,
        "hoverlabel": {"font": {"size": 15}, "bgcolor": palette.background, "bordercolor": palette.line},
    }


def title_layout(palette: Palette, text: str) -> dict[str, Any]:
    """A title at the top left; `text` is plotly's markup."""
    font = {"size": 16, "color": palette.ink}
    return {"text": text, "x": 0, "xref": "container", "y": 0.995, "yanchor": "top", "font": font}


def build_titled_layout(palette: Palette, title: str, height: int, **more: Any) -> dict[str, Any]:
    """A quiet layout; `more` overrides any of it. `title` is plain text."""
    own = {
        "title": title_layout(palette, f"<b>{escape_markup(title)}</b>"),
        "font": {"family": FIGURE_FONT, "size": 14, "color": palette.ink},
    }
    return base_layout(palette, height, l=64, r=16, t=44, b=48) | own | more


def build_plot_axis(palette: Palette, title: str = "", **more: Any) -> dict:
    return {
        "title": {"text": title, "font": {"size": 14, "color": palette.soft}, "standoff": 8},
        "tickfont": {"size": 13, "color": palette.soft},
        "gridcolor": palette.line,
        "linecolor": palette.line,
        "zeroline": False,
        "fixedrange": True,
    } | more


def text_annotation(text: str, x: float, y: float, palette: Palette, **more: Any) -> dict:
    """A word written into the picture, at data coordinates."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "showarrow": False,
        "font": {"size": 13, "color": palette.soft},
    } | more


# Messages: in English, unless the app sets a speaker for its visitors (:func:`set_message_translator`).


class Speaker(Protocol):
    """Says messages in the reader's language, as :mod:`attenscope.language` does."""

    def say(self, message: str, **values: Any) -> str: ...

    def say_many(self, one: str, many: str, count: int, **values: Any) -> str: ...

    def format_number(self, value: float, form: str = "") -> str: ...

    def number_separators(self) -> str: ...

    def join_sentences(self, *texts: str) -> str: ...

    def join_items(self, items: Iterable[str]) -> str: ...


class EnglishSpeaker(string.Formatter):
    """Messages as they stand in the source, with their values."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value formatted; a number that has a format as :meth:`format_number` writes it."""
        text = super().format_field(value, format_spec)
        return text.replace("-", "−") if format_spec and isinstance(value, Real) else text

    def say(self, message: str, **values: Any) -> str:
        """Return the message with values in its {fields}."""
        return self.vformat(message, (), values) if values else message

    def say_many(self, one: str, many: str, count: int, **values: Any) -> str:
        """Return the same of a message whose words depend on {count}."""
        return self.say(one if count == 1 else many, count=count, **values)

    def format_number(self, value: float, form: str = "") -> str:
        """Return a number formatted as Python's format specifier says, with a minus sign as wide as its digits."""
        return format(value, form).replace("-", "−")

    def number_separators(self) -> str:
        """Return the signs before decimals and between thousands."""
        return ".,"

    def join_sentences(self, *texts: str) -> str:
        """Return sentences in a row, without the empty ones."""
        return " ".join(filter(None, texts))

    def join_items(self, items: Iterable[str]) -> str:
        """Return items in a row."""
        return ", ".join(items)


_speaker: Speaker = EnglishSpeaker()


def set_message_translator(speaker: Speaker) -> None:
    """Have `speaker` say the messages of all pictures from now on; it knows for whom the calling thread draws."""
    global _speaker
    _speaker = speaker


def say(message: str, **values: Any) -> str:
    """The message in the reader's language, with values in its {fields}."""
    return _speaker.say(message, **values)


def say_many(one: str, many: str, count: int, **values: Any) -> str:
    """The same of a message whose words depend on the number `count`, which stands in it as {count}."""
    return _speaker.say_many(one, many, count, **values)


def format_number(value: float, form: str = "") -> str:
    """A number as the reader's language writes it."""
    return _speaker.format_number(value, form)


def number_separators() -> str:
    """The signs before decimals and between thousands, as plotly's ``layout.separators`` has them."""
    return _speaker.number_separators()


def join_sentences(*texts: str) -> str:
    """Whole sentences one after the other, as the language parts them; empty ones are left out."""
    return _speaker.join_sentences(*texts)


def join_items(items: Iterable[str]) -> str:
    """Items in a row, as the language parts them."""
    return _speaker.join_items(items)


def to_say(message: str) -> str:
    """The message as it stands, marked for the catalogues: a constant that :func:`say` says when it is read."""
    return message


# Colours: two palettes, the ramps on which attention is drawn, and how weights are placed on them.


Scale = Literal["sqrt", "linear", "log"]
SCALES: tuple[Scale, ...] = get_args(Scale)
SCALE_NAMES: dict[Scale, str] = {
    "sqrt": to_say("by its square root"),
    "linear": to_say("linearly"),
    "log": to_say("by its logarithm"),
}
LOG_SCALE_DECADES = 3
"""The logarithmic scale begins at 10 ** -DECADES; what is less looks like nothing."""
RampName = Literal["indigo", "viridis", "cividis"]
RAMPS: tuple[RampName, ...] = get_args(RampName)
RAMP_STOPS = 17


@dataclass(frozen=True)
class Palette:
    """One theme's colours, as #rrggbb."""

    background: str
    ink: str
    soft: str
    """Secondary text."""
    line: str
    accent: str
    full: str
    """Where the indigo ramp ends: a weight of 1."""
    masked: str
    """Fill of a masked cell; outside every ramp."""
    hatch: str
    """The strokes over a masked cell."""


LIGHT = Palette("#fbfbfa", "#1c1b22", "#6d6b78", "#e6e4ea", "#4b3fd6", "#38268c", "#dedde1", "#bdbcc3")
DARK = Palette("#131218", "#eceaf3", "#9c99a8", "#2e2c38", "#a59bff", "#c4bcff", "#2b2a30", "#4a4951")

# After Okabe and Ito (2008), "Color Universal Design", jfly.uni-koeln.de/color; each theme without what is faint on it.
_HEAD_COLOURS_ON_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b4518b", "#3d9ad1", "#c98500", "#4b3fd6", "#6d6b78")
_HEAD_COLOURS_ON_DARK = ("#56b4e9", "#e69f00", "#2fc49a", "#e28fbd", "#f0e442", "#ff8a5b", "#a59bff", "#b5b3bd")


@dataclass(frozen=True)
class Look:
    """How a picture of weights is coloured."""

    palette: Palette = LIGHT
    ramp: RampName = "indigo"
    scale: Scale = "sqrt"

    @property
    def stops(self) -> tuple[str, ...]:
        """The ramp as evenly spaced colours, from no weight to all of it."""
        if self.ramp == "indigo":
            return blend_colours(self.palette.background, self.palette.full, RAMP_STOPS)
        return tuple(sequential.Viridis if self.ramp == "viridis" else sequential.Cividis)

    @property
    def colorscale(self) -> list[tuple[float, str]]:
        """The ramp as a plotly colour scale over weights 0..1: a nonlinear scale moves the stops, not the weights."""
        stops = self.stops
        positions = np.linspace(0, 1, len(stops))
        if self.scale == "sqrt":
            positions = positions**2
        elif self.scale == "log":
            positions = np.concatenate(([0], 10.0 ** (LOG_SCALE_DECADES * (positions[1:] - 1))))
        return [(float(at), colour) for at, colour in zip(positions, stops, strict=True)]

    def choose_weight_text_colours(self, weights: np.ndarray) -> np.ndarray:
        """Ink or background, whichever is read better on the colour of each weight: strings, in the same shape."""
        return choose_contrasting_text_colours(weights, self.colorscale, self.palette)


def choose_contrasting_text_colours(
    values: np.ndarray, scale: Sequence[tuple[float, str]], palette: Palette
) -> np.ndarray:
    """Ink or background, whichever has more contrast (WCAG 2.2) to the colour of each value on a scale over 0..1."""
    positions, colours = zip(*scale, strict=True)
    channels = np.array([_rgb_channels(colour) for colour in colours])
    mixed = np.stack([np.interp(values, positions, channel) for channel in channels.T], -1)
    under, ink, paper = (
        _relative_luminance(one) + 0.05
        for one in (mixed, _rgb_channels(palette.ink), _rgb_channels(palette.background))
    )
    return np.where(abs(np.log(ink / under)) > abs(np.log(paper / under)), palette.ink, palette.background)


def head_colour(palette: Palette, head: int) -> str:
    """A colour to tell a head, from 0, from the other heads of its layer; the ninth has the first one's again."""
    colours = _HEAD_COLOURS_ON_DARK if palette == DARK else _HEAD_COLOURS_ON_LIGHT
    return colours[head % len(colours)]


@lru_cache(maxsize=64)
def blend_colours(start: str, end: str, count: int) -> tuple[str, ...]:
    """`count` colours from `start` to `end`, evenly spaced in Oklab (Ottosson 2020) so that equal steps look equal."""
    steps = np.linspace(0, 1, count)[:, None]
    return tuple(
        _convert_from_oklab((1 - step) * _convert_to_oklab(start) + step * _convert_to_oklab(end)) for step in steps
    )


def _rgb_channels(colour: str) -> np.ndarray:
    """Red, green and blue of #rrggbb or rgb(r, g, b), 0 to 1."""
    if colour.startswith("rgb"):
        return np.array([int(part) for part in colour[4:-1].split(",")]) / 255
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255


def _linearise_rgb(rgb: np.ndarray) -> np.ndarray:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _relative_luminance(rgb: np.ndarray) -> np.ndarray:
    """Relative luminance (..., ) of colours (..., 3), as WCAG 2.2 defines it."""
    return _linearise_rgb(rgb) @ np.array([0.2126, 0.7152, 0.0722])


# Linear sRGB -> cone responses -> Oklab, https://bottosson.github.io/posts/oklab/
_RGB_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_CONES_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def _convert_to_oklab(colour: str) -> np.ndarray:
    return _CONES_TO_OKLAB @ np.cbrt(_RGB_TO_CONES @ _linearise_rgb(_rgb_channels(colour)))


def _convert_from_oklab(lab: np.ndarray) -> str:
    linear = np.clip(np.linalg.inv(_RGB_TO_CONES) @ (np.linalg.inv(_CONES_TO_OKLAB) @ lab) ** 3, 0, 1)
    rgb = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(float(channel) * 255):02x}" for channel in rgb)


# Names of places in the residual stream, translated: experiments and saved tables name them in English.


NUMBERED_NAME_PATTERN = re.compile(r"(?P<what>layer|head) (?P<number>\d+) ?(?P<sublayer>[\w-]*)")
PLACE_MESSAGES = {
    ("layer", ""): to_say("layer {number}"),
    ("head", ""): to_say("head {number}"),
    ("layer", "self-attention"): to_say("layer {layer} self-attention"),
    ("layer", "cross-attention"): to_say("layer {layer} cross-attention"),
    ("layer", "feed-forward"): to_say("layer {layer} feed-forward"),
}


def translate_stream_place_name(name: str) -> str:
    """The name of a place, such as ``layer 2 feed-forward``, in the reader's language; anything else as it stands."""
    return say("embedding") if name == "embedding" else translate_component_name(name)


def translate_component_name(name: str) -> str:
    """The name of a layer, a sublayer or a head in the reader's language; anything else, such as a token, stays."""
    found = NUMBERED_NAME_PATTERN.fullmatch(name)
    if found is None:
        return name
    message = PLACE_MESSAGES.get((found["what"], found["sublayer"]))
    return name if message is None else say(message, number=found["number"], layer=found["number"])


# Labels of tokens and maps, escaped where plotly would read them as HTML.


KIND_NAMES = {
    "encoder": to_say("Encoder self-attention"),
    "decoder": to_say("Decoder self-attention"),
    "cross": to_say("Cross-attention"),
}
LETTER_WIDTH = 7.2
"""Pixels of a letter in the name of a place."""
LONGEST_LABEL = 11
LONGEST_WITH_LABELS = 64
"""Tokens along an axis beyond which only some are named."""


LINE_BREAK_SIGN = "↵"


@lru_cache(maxsize=4096)
def readable_token(token: str) -> str:
    """A token as a person can see it: no leading space, and a visible sign for what has no shape of its own."""
    text = "".join(_escape_invisible_character(character) for character in token.replace("\n", LINE_BREAK_SIGN).strip())
    return text or "␣"


def name_tokens_apart(tokens: Sequence[str]) -> list[str]:
    """Tokens as :func:`readable_token` writes them; of two that read alike one inside a word begins with "…"."""
    names = [readable_token(token) for token in tokens]
    alike = Counter(names)
    return [
        f"…{name}" if alike[name] > 1 and not token[:1].isspace() else name
        for name, token in zip(names, tokens, strict=True)
    ]


def quote_token(token: str) -> str:
    """A token inside a sentence, isolated so that right-to-left text does not reorder the words around it."""
    return say("“{token}”", token=f"\u2068{readable_token(token)}\u2069")


def escape_markup(text: str) -> str:
    """Escape text for plotly, which reads tags and entities, but not the entity of a quotation mark."""
    return html.escape(text, quote=False)


def token_label(token: str) -> str:
    """A token as an axis label: readable, cut to the width of LONGEST letters, and escaped for plotly."""
    return escape_markup(shorten_token(token, LONGEST_LABEL))


def shorten_token(token: str, longest: int = 18) -> str:
    """A token as a label that no one reads as HTML: readable, cut to the width of so many letters."""
    text = readable_token(token)
    ends = list(accumulate(map(_character_width, text)))
    return text if ends[-1] <= longest else text[: bisect_right(ends, longest - 1)] + "…"


def label_margin(names: Iterable[str], least: int) -> int:
    """Pixels that the longest of some names, of one or more lines each, needs beside a plot, and `least` of them."""
    lines = [line for name in names for line in name.split("\n")]
    return max(least, int(LETTER_WIDTH * max((sum(map(_character_width, line)) for line in lines), default=0)) + 16)


def format_signed(value: float, digits: int = 2, plus: bool = False) -> str:
    """A number as it is printed, with a minus sign as wide as its digits; `plus` writes the other sign too."""
    return format_number(value, f"{'+' if plus else ''}.{digits}f")


def format_percent(share: float) -> str:
    """A probability in percent, as ``percent`` of the decode player prints it; only an exact zero is printed as 0%."""
    if share == 0:
        return format_number(0.0, ".0%")
    return (
        f"<{format_number(0.001, '.1%')}" if share < 0.0005 else format_number(share, f".{1 if share < 0.0995 else 0}%")
    )


def token_labels(tokens: Sequence[str]) -> list[str]:
    return [token_label(token) for token in tokens]


def token_ticks(
    tokens: Sequence[str], pinned: int | None = None, longest: int = LONGEST_WITH_LABELS
) -> dict[str, list]:
    """The ticks of an axis of tokens: each is named up to `longest`, else half as many, evenly; `pinned` is bold."""
    step = 1 if len(tokens) <= longest else -(-2 * len(tokens) // longest)
    shown = [at for at in range(0, len(tokens), step) if pinned is None or abs(at - pinned) >= step]
    if pinned is not None:
        shown = sorted([*shown, pinned])
    texts = [f"<b>{token_label(tokens[at])}</b>" if at == pinned else token_label(tokens[at]) for at in shown]
    return {"tickvals": shown, "ticktext": texts}


def _character_width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _escape_invisible_character(character: str) -> str:
    # Cc: control, Cf: invisible format marks such as direction overrides, which would reorder the label around them.
    if unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return f"\\u{ord(character):04x}"
    return character
