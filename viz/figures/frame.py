"""What line, bar and table figures have in common: type, background, axes, a title at the left."""

from __future__ import annotations

from typing import Any

from .labels import escaped
from .palette import Palette
from .speech import separators

FONT = '"Source Sans", system-ui, sans-serif'


def surface(palette: Palette, height: float, **margin: int) -> dict[str, Any]:
    """Type and background of every figure. The margins `l`, `r`, `t`, `b` are fixed, so that nothing moves."""
    return {
        "template": "none",
        "height": height,
        "separators": separators(),
        "margin": {**margin, "autoexpand": False},
        "paper_bgcolor": palette.background,
        "plot_bgcolor": palette.background,
        "font": {"family": FONT, "color": palette.ink},
        "showlegend": False,
        "dragmode": False,
        "hoverlabel": {"font": {"size": 15}, "bgcolor": palette.background, "bordercolor": palette.line},
    }


def heading(palette: Palette, text: str) -> dict[str, Any]:
    """A title at the top left; `text` is plotly's markup."""
    font = {"size": 16, "color": palette.ink}
    return {"text": text, "x": 0, "xref": "container", "y": 0.995, "yanchor": "top", "font": font}


def layout(palette: Palette, title: str, height: int, **more: Any) -> dict[str, Any]:
    """A quiet layout; `more` overrides any of it. `title` is plain text."""
    own = {
        "title": heading(palette, f"<b>{escaped(title)}</b>"),
        "font": {"family": FONT, "size": 14, "color": palette.ink},
    }
    return surface(palette, height, l=64, r=16, t=44, b=48) | own | more


def axis(palette: Palette, title: str = "", **more: Any) -> dict:
    return {
        "title": {"text": title, "font": {"size": 14, "color": palette.soft}, "standoff": 8},
        "tickfont": {"size": 13, "color": palette.soft},
        "gridcolor": palette.line,
        "linecolor": palette.line,
        "zeroline": False,
        "fixedrange": True,
    } | more


def note(text: str, x: float, y: float, palette: Palette, **more: Any) -> dict:
    """A word written into the picture, at data coordinates."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "showarrow": False,
        "font": {"size": 13, "color": palette.soft},
    } | more
