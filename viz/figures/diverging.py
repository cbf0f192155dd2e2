"""Colours for numbers of both signs: orange below zero, the page's own background at zero, indigo above."""

from __future__ import annotations

from typing import Any

import numpy as np

from .palette import DARK, STOPS, Palette, blend, ink_on

NEGATIVE_LIGHT, NEGATIVE_DARK = "#a34a00", "#ffb37a"
"""Told apart from indigo in every common colour vision deficiency, and as dark on paper as it."""


def negative(palette: Palette) -> str:
    """Where the ramp ends below zero."""
    return NEGATIVE_DARK if palette == DARK else NEGATIVE_LIGHT


def diverging(palette: Palette) -> tuple[str, ...]:
    """Evenly spaced colours from the lowest number to the highest, of equal size."""
    below = blend(negative(palette), palette.background, STOPS)
    return below[:-1] + blend(palette.background, palette.full, STOPS)


def ramp(palette: Palette) -> tuple[str, ...]:
    """Evenly spaced colours from nothing to most."""
    return blend(palette.background, palette.full, STOPS)


def colorscale(stops: tuple[str, ...]) -> list[tuple[float, str]]:
    """Evenly spaced colours as a plotly colour scale."""
    return [(at / (len(stops) - 1), colour) for at, colour in enumerate(stops)]


def signed_cells(values: np.ndarray, palette: Palette, largest: float = 1.0) -> dict[str, Any]:
    """The part that plotly heatmaps of signed numbers (R, C) share, coloured from -`largest` to `largest`."""
    return {
        "type": "heatmap",
        "z": values,
        "zmin": -largest,
        "zmax": largest,
        "colorscale": colorscale(diverging(palette)),
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hoverongaps": False,
    }


def ink_on_signed(values: np.ndarray, palette: Palette) -> np.ndarray:
    """Ink or background, whichever is read better on the colour of each value of -1..1: strings, in the same shape."""
    return ink_on((np.clip(values, -1, 1) + 1) / 2, colorscale(diverging(palette)), palette)
