"""Colours of mask pictures: leaks red, over-blocking blue, what agrees quiet. Each has a sign of its own besides."""

from __future__ import annotations

from dataclasses import dataclass

from ..palette import DARK, Palette, blend


@dataclass(frozen=True)
class MaskColours:
    """All as #rrggbb."""

    blocked: str
    allowed: str
    leak: str
    over: str
    nan: str
    dim: str
    hatch: str
    sign: str
    """Strokes on leaks and on over-blocked cells."""
    ink: str
    soft: str
    accent: str


# Vermillion and blue after Okabe and Ito (2008), "Color Universal Design", jfly.uni-koeln.de/color.
_LEAK, _OVER, _NAN = ("#d55e00", "#ff8a5b"), ("#0072b2", "#56b4e9"), ("#e8c34a", "#8a7118")


def mask_colours(palette: Palette) -> MaskColours:
    """The colours of one theme."""
    at = int(palette == DARK)
    tint = blend(palette.background, palette.full, 5)[1]
    return MaskColours(
        blocked=palette.masked,
        allowed=tint,
        leak=_LEAK[at],
        over=_OVER[at],
        nan=_NAN[at],
        dim=blend(palette.background, palette.masked, 3)[1],
        hatch=palette.hatch,
        sign=palette.background,
        ink=palette.ink,
        soft=palette.soft,
        accent=palette.accent,
    )
