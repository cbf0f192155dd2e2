"""The colours of the project: two palettes, the ramps attention is drawn on, and how weights are placed on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from plotly.colors import sequential

from .speech import to_say

Scale = Literal["sqrt", "linear", "log"]
SCALES: tuple[Scale, ...] = get_args(Scale)
SCALE_NAMES: dict[Scale, str] = {
    "sqrt": to_say("by its square root"),
    "linear": to_say("linearly"),
    "log": to_say("by its logarithm"),
}
DECADES = 3
"""The logarithmic scale begins at 10 ** -DECADES; what is less looks like nothing."""
RampName = Literal["indigo", "viridis", "cividis"]
RAMPS: tuple[RampName, ...] = get_args(RampName)
STOPS = 17


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
_ON_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b4518b", "#3d9ad1", "#c98500", "#4b3fd6", "#6d6b78")
_ON_DARK = ("#56b4e9", "#e69f00", "#2fc49a", "#e28fbd", "#f0e442", "#ff8a5b", "#a59bff", "#b5b3bd")


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
            return blend(self.palette.background, self.palette.full, STOPS)
        return tuple(sequential.Viridis if self.ramp == "viridis" else sequential.Cividis)

    @property
    def colorscale(self) -> list[tuple[float, str]]:
        """The ramp as a plotly colour scale over weights 0..1: a nonlinear scale moves the stops, not the weights."""
        stops = self.stops
        positions = np.linspace(0, 1, len(stops))
        if self.scale == "sqrt":
            positions = positions**2
        elif self.scale == "log":
            positions = np.concatenate(([0], 10.0 ** (DECADES * (positions[1:] - 1))))
        return [(float(at), colour) for at, colour in zip(positions, stops, strict=True)]

    def ink_on(self, weights: np.ndarray) -> np.ndarray:
        """Ink or background, whichever is read better on the colour of each weight: strings, in the same shape."""
        return ink_on(weights, self.colorscale, self.palette)


def ink_on(values: np.ndarray, scale: Sequence[tuple[float, str]], palette: Palette) -> np.ndarray:
    """Ink or background, whichever has more contrast (WCAG 2.2) to the colour of each value on a scale over 0..1."""
    positions, colours = zip(*scale, strict=True)
    channels = np.array([_channels(colour) for colour in colours])
    mixed = np.stack([np.interp(values, positions, channel) for channel in channels.T], -1)
    under, ink, paper = (
        _luminance(one) + 0.05 for one in (mixed, _channels(palette.ink), _channels(palette.background))
    )
    return np.where(abs(np.log(ink / under)) > abs(np.log(paper / under)), palette.ink, palette.background)


def head_colour(palette: Palette, head: int) -> str:
    """A colour to tell a head, from 0, from the other heads of its layer; the ninth has the first one's again."""
    colours = _ON_DARK if palette == DARK else _ON_LIGHT
    return colours[head % len(colours)]


@lru_cache(maxsize=64)
def blend(start: str, end: str, count: int) -> tuple[str, ...]:
    """`count` colours from `start` to `end`, evenly spaced in Oklab (Ottosson 2020) so that equal steps look equal."""
    steps = np.linspace(0, 1, count)[:, None]
    return tuple(_from_oklab((1 - step) * _to_oklab(start) + step * _to_oklab(end)) for step in steps)


def _channels(colour: str) -> np.ndarray:
    """Red, green and blue of #rrggbb or rgb(r, g, b), 0 to 1."""
    if colour.startswith("rgb"):
        return np.array([int(part) for part in colour[4:-1].split(",")]) / 255
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255


def _linear(rgb: np.ndarray) -> np.ndarray:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _luminance(rgb: np.ndarray) -> np.ndarray:
    """Relative luminance (..., ) of colours (..., 3), as WCAG 2.2 defines it."""
    return _linear(rgb) @ np.array([0.2126, 0.7152, 0.0722])


# Linear sRGB -> cone responses -> Oklab, https://bottosson.github.io/posts/oklab/
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def _to_oklab(colour: str) -> np.ndarray:
    return _LAB @ np.cbrt(_CONES @ _linear(_channels(colour)))


def _from_oklab(lab: np.ndarray) -> str:
    linear = np.clip(np.linalg.inv(_CONES) @ (np.linalg.inv(_LAB) @ lab) ** 3, 0, 1)
    rgb = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(float(channel) * 255):02x}" for channel in rgb)
