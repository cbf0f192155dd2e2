"""Attention beside the attention it should have been: what leaks, what is missing, what is no number, row sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ..frame import layout, note
from ..heatmap import hatch
from ..labels import labels
from ..palette import Look, Palette, blend
from ..speech import number, say, to_say
from .colours import MaskColours, mask_colours

HEIGHT, GAP, WIDE_GAP = 420, 0.06, 0.1
"""Pixels, and shares of the width between pictures: the wide one where cells are too narrow to lend sums their room."""
LEFT, SUMS = 84, 34
"""Pixels beside the pictures, for names and for sums."""
FEWEST = 5
NUMBERED = 12
"""Longest side of a panel whose cells have room for their weight in figures."""
WORDS = {
    "leak": to_say("weight where there should be none"),
    "over": to_say("none where there should be"),
    "nan": to_say("not a number"),
    "blocked": to_say("blocked, as meant"),
}
"""What the legend says of each kind of cell, as `say` is given it."""
ROW = 21
"""Height of a row where there are more."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One map."""

    title: str
    weights: np.ndarray
    """(Q, K); NaN where it is no number."""
    meant: np.ndarray
    """(Q, K) bool, True = should have weight."""
    sums: bool = True
    """Whether each row's sum stands beside it."""


@dataclass(frozen=True, eq=False)
class Cells:
    """What each cell of a panel is, (Q, K) bool each; a cell is exactly one of them."""

    allowed: np.ndarray
    blocked: np.ndarray
    leak: np.ndarray
    over: np.ndarray
    nan: np.ndarray


def cells(panel: Panel) -> Cells:
    nan = np.isnan(panel.weights)
    lit = ~nan & (panel.weights != 0)
    meant = panel.meant
    return Cells(meant & lit, ~meant & ~lit & ~nan, ~meant & lit, meant & ~lit & ~nan, nan)


def gallery_pair(
    panels: Sequence[Panel],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    look: Look,
    words: Mapping[str, str] = WORDS,
    *,
    pinned: int | None = None,
    divided: int | None = None,
) -> go.Figure:
    """Panels of the same tokens side by side. Rows are the queries.

    `words` are those of the legend. The `pinned` column is outlined; before the column `divided` a line is drawn.
    """
    colours = mask_colours(look.palette)
    traces: list[dict] = []
    frame: dict = {}
    notes: list[dict] = []
    lines: list[dict] = []
    gap = GAP if len(columns) <= NUMBERED else WIDE_GAP
    width = (1 - gap * (len(panels) - 1)) / len(panels)
    for at, panel in enumerate(panels):
        start = at * (width + gap)
        kinds = cells(panel)
        axes = {"xaxis": f"x{at + 1}", "yaxis": f"y{at + 1}"}
        traces += [one | axes for one in _traces(panel, kinds, colours, look)]
        frame |= _axes(rows, columns, at, (start, start + width), look.palette)
        lines += _lines(pinned, divided, len(rows), axes, look.palette)
        notes.append(_corner(f"<b>{panel.title}</b>", start, look.palette))
    notes += _legend([cells(panel) for panel in panels], words, colours, look.palette)
    margin: dict[str, Any] = {"l": LEFT, "r": 8, "t": 118, "b": 34, "autoexpand": False}
    if len(columns) > NUMBERED and panels[-1].sums:
        margin["r"] = SUMS
    height = max(HEIGHT, margin["t"] + margin["b"] + ROW * len(rows))
    made = layout(look.palette, title, height, annotations=notes, shapes=lines, margin=margin, **frame)
    return go.Figure({"data": traces, "layout": made})


def _traces(panel: Panel, kinds: Cells, colours: MaskColours, look: Look) -> list[dict]:
    weights = panel.weights.astype(np.float64)
    empty = blend(look.palette.background, colours.over, 3)[1]
    made = [
        _fill(kinds.blocked, colours.blocked, say("blocked, as it should be")),
        _strokes(kinds.blocked, colours),
        _fill(kinds.over, empty, say("<b>no weight</b>, and there should be")),
        _signs(kinds.over, "circle-open", colours.over),
        _fill(kinds.nan, colours.nan, say("<b>NaN</b>: not a number")),
        _weights(kinds.allowed, weights, look.colorscale, "%{z:.3g}"),
    ]
    faint = kinds.leak & ~(weights >= 0.005)  # Their number would be 0.00: a cross stands there alone.
    open_cell = say("<b>{weight}</b>, should be blocked", weight="%{z:.3g}")
    leak = _weights(kinds.leak, weights, _leaking(colours, look.palette), open_cell)
    small = max(weights.shape) <= NUMBERED
    if small:
        leak |= {
            "text": np.where(kinds.leak & ~faint, np.vectorize(_two_digits, [object])(weights), "").tolist(),
            "texttemplate": "%{text}",
        }
    made += [leak, _signs(faint, "x-thin-open", colours.leak)]
    if small:
        made.append(_words(kinds.nan, "NaN", look.palette.ink))
    return [*made, _sums(weights, look.palette)] if panel.sums else made


def _two_digits(value: float) -> str:
    return number(value, ".2f")


def _leaking(colours: MaskColours, palette: Palette) -> list[tuple[float, str]]:
    """From a visible tint, however small the leak, to full colour, by the square root."""
    stops = blend(palette.background, colours.leak, 9)[3:]
    return [(float(at**2), colour) for at, colour in zip(np.linspace(0, 1, len(stops)), stops, strict=True)]


def _fill(where: np.ndarray, colour: str, hover: str) -> dict:
    return {
        "type": "heatmap",
        "z": np.where(where, 1.0, np.nan).astype(np.float32),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [(0, colour), (1, colour)],
        "showscale": False,
        "hoverongaps": False,
        "hovertemplate": f"%{{y}} → %{{x}}<br>{hover}<extra></extra>",
        "xgap": 1,
        "ygap": 1,
    }


def _weights(where: np.ndarray, weights: np.ndarray, scale: list[tuple[float, str]], hover: str) -> dict:
    shown: dict = _fill(where, "", hover) | {"z": np.where(where, weights, np.nan).astype(np.float32)}
    numbers = {"texttemplate": "%{z:.2f}", "textfont": {"size": 12}} if max(weights.shape) <= NUMBERED else {}
    return shown | {"colorscale": scale, **numbers}


def _strokes(where: np.ndarray, colours: MaskColours) -> dict:
    x, y = hatch(~where)
    return {"type": "scatter", "x": x, "y": y, "mode": "lines", "hoverinfo": "skip"} | {
        "line": {"color": colours.hatch, "width": 1}
    }


def _signs(where: np.ndarray, symbol: str, colour: str) -> dict:
    y, x = np.nonzero(where)
    marker = {"symbol": symbol, "size": 9, "color": colour, "line": {"width": 2, "color": colour}}
    return {"type": "scatter", "x": x, "y": y, "mode": "markers", "marker": marker, "hoverinfo": "skip"}


def _words(where: np.ndarray, word: str, colour: str) -> dict:
    y, x = np.nonzero(where)
    text = {"text": [word] * len(x), "textfont": {"size": 11, "color": colour}}
    return {"type": "scatter", "x": x, "y": y, "mode": "text", "hoverinfo": "skip", **text}


def _sums(weights: np.ndarray, palette: Palette) -> dict:
    rows, columns = weights.shape
    total = weights.sum(-1)
    texts = ["NaN" if np.isnan(one) else _two_digits(one) for one in total]
    odd = [palette.ink if abs(one - 1) > 0.005 or np.isnan(one) else palette.soft for one in total]
    return {
        "type": "scatter",
        "x": [columns - 0.4] * (rows + 1),
        "y": [-0.8, *range(rows)],
        "mode": "text",
        "text": [say("sum"), *texts],
        "textposition": "middle right",
        "textfont": {"size": 12, "color": [palette.soft, *odd]},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def _axes(
    rows: Sequence[str], columns: Sequence[str], at: int, domain: tuple[float, float], palette: Palette
) -> dict[str, dict]:
    quiet = {
        "tickmode": "array",
        "tickfont": {"size": 13 if len(columns) <= NUMBERED else 11, "color": palette.ink},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "ticks": "",
        "ticklabeloverflow": "allow",
    }
    across = {"tickvals": list(range(len(columns))), "ticktext": labels(columns), "side": "top", "tickangle": -45}
    down = {"tickvals": list(range(len(rows))), "ticktext": labels(rows), "showticklabels": at == 0}
    most = max(len(rows), FEWEST)
    return {
        f"xaxis{at + 1}": quiet
        | across
        | {"domain": list(domain), "range": [-0.5, max(len(columns), FEWEST) + 0.4], "anchor": f"y{at + 1}"},
        f"yaxis{at + 1}": quiet | down | {"range": [most - 0.5, -0.5], "anchor": f"x{at + 1}"},
    }


def _lines(pinned: int | None, divided: int | None, rows: int, axes: dict[str, str], palette: Palette) -> list[dict]:
    across, down = (axes[name].removesuffix("1") for name in ("xaxis", "yaxis"))
    place = {"xref": across, "yref": down, "y0": -0.5, "y1": rows - 0.5}
    found = []
    if divided is not None:
        found.append(place | {"type": "line", "x0": divided - 0.5, "x1": divided - 0.5, "line": {"color": palette.ink}})
    if pinned is not None:
        edges = {"type": "rect", "x0": pinned - 0.5, "x1": pinned + 0.5}
        found.append(place | edges | {"line": {"color": palette.accent, "width": 2}})
    return found


def _corner(text: str, x: float, palette: Palette) -> dict:
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 62}
    return note(text, x, 1, palette, **place) | {"font": {"size": 15, "color": palette.ink}}


def _legend(found: Sequence[Cells], words: Mapping[str, str], colours: MaskColours, palette: Palette) -> list[dict]:
    """Only of what is there, in one line under the pictures."""
    known = {"leak": colours.leak, "over": colours.over, "nan": colours.nan, "blocked": colours.hatch}
    told = [
        f'<span style="color:{colour}">■</span> {say(words[kind])}'
        for kind, colour in known.items()
        if any(getattr(one, kind).any() for one in found)
    ]
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "yshift": -8, "xshift": 8 - LEFT}
    return [note("   ".join(told), 0, 0, palette, **place)] if told else []
