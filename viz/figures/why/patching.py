"""Activation patching: how much of a difference comes back for a patch at each place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from ..diverging import ink_on_signed, signed_cells
from ..frame import heading, surface
from ..labels import escaped, label
from ..palette import Palette
from ..places import numbered_name, place_name
from ..speech import number, say
from .room import room

if TYPE_CHECKING:
    from model.experiments.activation_patching import PatchMap

ROW = 34
HOVERED = {"row": "%{y}", "column": "%{customdata}", "share": "%{z:.1%}"}
MARGIN = {"l": 92, "r": 40, "t": 96, "b": 8}
WIDEST_NAMED = 14
"""Columns beyond which the cells have no room for a number."""


def patches(found: PatchMap, columns: Sequence[str], title: str, palette: Palette) -> go.Figure:
    """Layers down, positions or heads across, then all of them at once; each cell the share that comes back."""
    values = np.column_stack([found.fraction, np.full(len(found.rows), np.nan), found.whole_fraction])
    names = [*map(numbered_name, columns), " ", say("all")]
    heat = signed_cells(values, palette) | {
        "customdata": [[label(name) for name in names]] * len(found.rows),
        "hovertemplate": say(
            "{row}, {column}: {share} comes back", row="%{y}", column="%{customdata}", share="%{z:.1%}"
        )
        + "<extra></extra>",
    }
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 4}
    axis |= {"tickfont": {"size": 13, "color": palette.ink}}
    places = [at for at, name in enumerate(names) if name != " "]
    margin = MARGIN | {"l": room(map(place_name, found.rows), MARGIN["l"])}
    layout = surface(palette, ROW * len(found.rows) + MARGIN["t"] + MARGIN["b"], **margin) | {
        "title": heading(palette, f"<b>{escaped(title)}</b>"),
        "xaxis": axis
        | {"side": "top", "tickangle": -45, "range": [-0.5, len(names) - 0.5]}
        | {"tickvals": places, "ticktext": [label(names[at]) for at in places]},
        "yaxis": axis
        | {"range": [len(found.rows) - 0.5, -0.5]}
        | {"tickvals": list(range(len(found.rows))), "ticktext": [escaped(place_name(one)) for one in found.rows]},
    }
    return go.Figure({"data": [heat, _numbers(values, len(names), palette)], "layout": layout})


def share(value: float) -> str:
    """A share in whole percent, with a minus sign as wide as its digits."""
    return number(value if f"{value:.0%}" != "-0%" else 0.0, ".0%")


def _numbers(values: np.ndarray, columns: int, palette: Palette) -> dict:
    down, across = np.meshgrid(np.arange(len(values)), np.arange(columns), indexing="ij")
    shown = ~np.isnan(values) & (across >= (0 if columns <= WIDEST_NAMED else columns - 1))
    return {
        "type": "scatter",
        "mode": "text",
        "x": across[shown],
        "y": down[shown],
        "text": [share(one) for one in values[shown].tolist()],
        "textfont": {"size": 11, "color": ink_on_signed(values[shown], palette).tolist()},
        "hoverinfo": "skip",
    }
