"""The course of trainings: loss, BLEU and learning rate over steps, one line a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from .frame import axis, layout, note
from .palette import Palette, head_colour
from .speech import say, to_say

if TYPE_CHECKING:
    from model.checkpoint.history import HistoryRow

HEIGHT = 640
PANELS = {
    "loss": (to_say("loss, nats a token"), (0.56, 1.0), ".3f"),
    "bleu": (to_say("BLEU on dev"), (0.27, 0.49), ".1f"),
    "rate": (to_say("learning rate"), (0.0, 0.2), ".2e"),
}
"""Field of a row -> axis title, share of the height, format on hover."""


def curves(
    histories: Mapping[str, Sequence[HistoryRow]],
    palette: Palette,
    title: str,
    *,
    log_steps: bool = False,
    marked: Collection[int] = (),
) -> go.Figure:
    """`histories` by model name, drawn below each other over one axis of steps; `marked` steps get a dotted line.

    Several models are told apart by colour, each named at the end of its loss.
    """
    traces, axes = [], {}
    for at, (field, (heading, domain, _)) in enumerate(PANELS.items(), start=1):
        number = "" if at == 1 else str(at)
        axes[f"yaxis{number}"] = axis(palette, say(heading), domain=domain, anchor="x", rangemode="tozero", nticks=6)
        traces += [
            _line(rows, field, name, _colour(palette, which, len(histories)), f"y{number}", len(histories) > 1)
            for which, (name, rows) in enumerate(histories.items())
        ]
    axes["yaxis3"] |= {"tickformat": "~e"}
    first, last = _range(histories, log_steps)
    steps = axis(palette, say("training step"), range=[first, last], tickformat=",d", showgrid=False, anchor="y3")
    if log_steps:
        steps |= {"type": "log", "range": np.log10([first, last]).tolist(), "dtick": "D2"}
    drawn = layout(
        palette,
        title,
        HEIGHT,
        xaxis=steps,
        **axes,
        shapes=[_mark(step, palette) for step in marked if first <= step <= last],
        annotations=_names(histories, palette),
        hovermode="x",
    )
    drawn["margin"] |= {"l": 76, "r": 130 if len(histories) > 1 else 16}
    return go.Figure({"data": traces, "layout": drawn})


def _range(histories: Mapping[str, Sequence[HistoryRow]], log_steps: bool) -> tuple[int, int]:
    """The first and the last step drawn; a logarithmic axis begins where the first loss was measured."""
    steps = [row.step for rows in histories.values() for row in rows] or [1]
    return min(steps) if log_steps else 0, max(steps)


def _line(rows: Sequence[HistoryRow], field: str, name: str, colour: str, y_axis: str, several: bool) -> dict:
    known = [row for row in rows if getattr(row, field) is not None]
    heading, _, form = PANELS[field]
    said = say("step {step} · {measure}", step="%{x:,}", measure=say(heading))
    return {
        "type": "scatter",
        "x": [row.step for row in known],
        "y": [getattr(row, field) for row in known],
        "yaxis": y_axis,
        "mode": "lines+markers" if field == "bleu" else "lines",
        "line": {"color": colour, "width": 2},
        "marker": {"size": 5, "color": colour},
        "name": name,
        "hovertemplate": f"{f'{name} · ' if several else ''}{said} <b>%{{y:{form}}}</b><extra></extra>",
    }


def _colour(palette: Palette, which: int, count: int) -> str:
    return palette.accent if count == 1 else head_colour(palette, which)


def _mark(step: int, palette: Palette) -> dict:
    line = {"color": palette.soft, "width": 1, "dash": "dot"}
    return {"type": "line", "x0": step, "x1": step, "yref": "paper", "y0": 0, "y1": 1, "line": line, "layer": "below"}


def _names(histories: Mapping[str, Sequence[HistoryRow]], palette: Palette) -> list[dict]:
    """The names of several models, in the right margin, in the order of their last loss."""
    if len(histories) < 2:
        return []
    last = {name: rows[-1].loss for name, rows in histories.items() if rows}
    order = sorted(last, key=last.__getitem__, reverse=True)
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top"}
    return [
        note(
            name,
            1.01,
            1.0 - 0.04 * at,
            palette,
            **place,
            font={"size": 13, "color": head_colour(palette, list(histories).index(name))},
        )
        for at, name in enumerate(order)
    ]
