"""Figures of the logit lens: the token that each layer would write, and the rank of the token that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from .figure_style import (
    LONGEST_WITH_LABELS,
    Look,
    base_layout,
    escape_markup,
    format_number,
    format_percent,
    join_items,
    label_margin,
    say,
    shorten_token,
    token_label,
    token_ticks,
    translate_stream_place_name,
)

if TYPE_CHECKING:
    from attenscope.experiments.lens import LogitLens

LENS_CELL_HEIGHT = 34
LENS_MARGIN = {"l": 112, "r": 56, "t": 76, "b": 8}
WIDEST_NAMED = 24
"""Positions across beyond which the cells have no room for a token."""


def plot_lens_grid(lens: LogitLens, *, look: Look | None = None, pinned: int | None = None) -> go.Figure:
    """Places along the stream down, target positions across; each cell the best token there, coloured by its chance."""
    look = look or Look()
    palette = look.palette
    best = np.exp(lens.log_probs[:, :, 0])
    positions = len(lens.target_tokens)
    room = max(100 // max(positions, 1), 4)  # letters that a cell is wide
    texts = [[escape_markup(shorten_token(row[0], room)) for row in place] for place in lens.tokens]
    cells = {
        "type": "heatmap",
        "name": "best",
        "z": best.astype(np.float32),
        "zmin": 0,
        "zmax": 1,
        "colorscale": look.colorscale,
        "showscale": False,
        "xgap": 2 if positions <= LONGEST_WITH_LABELS else 0,
        "ygap": 2,
        "text": texts,
        "customdata": lens.ranks,
        "hovertemplate": say("%{y}: <b>%{text}</b> %{z:.0%}<br>written: %{x}, rank %{customdata}") + "<extra></extra>",
    }
    axis = _lens_axis(palette.ink)
    layout = base_layout(palette, LENS_CELL_HEIGHT * len(lens.places) + 110, **_lens_margins(lens)) | {
        "xaxis": axis | token_ticks(lens.target_tokens, pinned) | {"side": "top", "tickangle": -45},
        "yaxis": axis
        | {
            "tickvals": list(range(len(lens.places))),
            "ticktext": _translate_stream_place_names(lens),
            "autorange": "reversed",
        },
        "shapes": [] if pinned is None else [_pinned_frame(pinned, len(lens.places), palette.accent)],
    }
    names = (
        [_build_token_text_trace(texts, look.choose_weight_text_colours(best), positions)]
        if positions <= WIDEST_NAMED
        else []
    )
    return go.Figure({"data": [cells, *names], "layout": layout})


def plot_lens_ranks(lens: LogitLens, position: int, *, look: Look | None = None, token: str = "") -> go.Figure:
    """The rank of the written token at one position (from 0) after each place along the stream; 1 is the best.

    `token` names another one whose ranks the lens holds.
    """
    look = look or Look()
    palette = look.palette
    ranks = lens.ranks[:, position]
    best = [
        join_items(
            f"{token_label(one)} {escape_markup(format_percent(np.exp(chance)))}"
            for one, chance in zip(tokens, chances, strict=True)
        )
        for tokens, chances in zip((place[position] for place in lens.tokens), lens.log_probs[:, position], strict=True)
    ]
    line = {
        "type": "scatter",
        "name": "rank",
        "x": ranks,
        "y": list(range(len(ranks))),
        "mode": "lines+markers+text",
        "line": {"color": palette.accent, "width": 2},
        "marker": {"color": palette.accent, "size": 9},
        "text": [f" {format_number(int(rank), ',')}" for rank in ranks],
        "textposition": "bottom right",
        "cliponaxis": False,
        "customdata": best,
        "hovertemplate": say("%{y}: rank %{x:,}") + "<br>%{customdata}<extra></extra>",
    }
    most = float(np.log10(max(int(ranks.max()), 10)))
    axis = _lens_axis(palette.ink)
    names = {"tickvals": list(range(len(ranks))), "ticktext": _translate_stream_place_names(lens)}
    title = (
        say("rank of {token} (1 is the best)", token=token)
        if token
        else say("rank of the written token (1 is the best)")
    )
    layout = base_layout(palette, LENS_CELL_HEIGHT * len(lens.places) + 70, **_lens_margins(lens)) | {
        "xaxis": axis
        | {
            "type": "log",
            "tickmode": "linear",
            "range": [-0.08, most * 1.12],
            "side": "top",
            "dtick": 1,
            "gridcolor": palette.line,
        }
        | {"showgrid": True, "title": {"text": escape_markup(title), "font": {"size": 13}}},
        "yaxis": axis | names | {"range": [len(ranks) - 0.5, -0.5]},
    }
    return go.Figure({"data": [line], "layout": layout})


def _translate_stream_place_names(lens: LogitLens) -> list[str]:
    return [translate_stream_place_name(place) for place in lens.places]


def _lens_margins(lens: LogitLens) -> dict[str, int]:
    """Room at the left for the longest name of a place."""
    return LENS_MARGIN | {"l": label_margin(_translate_stream_place_names(lens), LENS_MARGIN["l"])}


def _build_token_text_trace(texts: list[list[str]], inks: np.ndarray, positions: int) -> dict:
    """The tokens in their cells, each in the ink that is read best there, which a heatmap's own texts cannot have."""
    rows, columns = np.indices(inks.shape)
    return {
        "type": "scatter",
        "name": "tokens",
        "mode": "text",
        "x": columns.ravel(),
        "y": rows.ravel(),
        "text": [text for place in texts for text in place],
        "textfont": {"size": 13 if positions <= 14 else 11, "color": inks.ravel().tolist()},
        "hoverinfo": "skip",
    }


def _lens_axis(ink: str) -> dict:
    return {
        "tickmode": "array",
        "tickfont": {"size": 13, "color": ink},
        "ticklabelstandoff": 4,
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "ticks": "",
    }


def _pinned_frame(column: int, rows: int, colour: str) -> dict:
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": -0.5, "y1": rows - 0.5}
    return {"type": "rect", **corners, "line": {"color": colour, "width": 2}}
