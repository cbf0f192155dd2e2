"""Figures of lines, areas and dots, and the curves of a training: loss, BLEU and learning rate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import plotly.graph_objects as go

from .figure_style import (
    Palette,
    build_plot_axis,
    build_titled_layout,
    format_number,
    head_colour,
    say,
    text_annotation,
    to_say,
)

if TYPE_CHECKING:
    from attenscope.checkpoint.measurements import HistoryRow

# The parts of a figure of lines, areas and dots, which viz/web/src/curves draws.


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; `ticks` are numbers and what stands at them."""

    low: float
    high: float
    title: str = ""
    ticks: Sequence[tuple[float, str]] = ()
    grid: bool = False


@dataclass(frozen=True, eq=False)
class Mark:
    """One line, area or row of dots through `points` (N, 2); NaN parts a line."""

    kind: Literal["line", "area", "dots"]
    points: np.ndarray
    colour: str
    size: float = 2.0
    """Pixels: a line's width, a dot's radius."""
    says: str = ""
    """The text that is read at a point: {x} is its first coordinate, {name} its name, and {0}, {1} are its `values`, as
    in {0:,.2f} or {0:.1e}. Where it is empty, the mark cannot be pointed at."""
    values: np.ndarray | None = None
    """(N, M)"""
    names: Sequence[str] = ()
    """(N,) where points have names."""


@dataclass(frozen=True)
class Note:
    """Words in the picture. Lines are parted by a line feed; the first is bold where there are more."""

    text: str
    x: float
    y: float
    colour: str
    across: Literal["start", "middle", "end"] = "middle"
    """Which side of the words stands at `x`."""
    down: Literal["top", "middle", "bottom"] = "middle"
    shift: float = 0
    """Pixels to the right."""


@dataclass(frozen=True, eq=False)
class Curves:
    """A whole figure, in the coordinates of its axes."""

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    """From front to back."""
    palette: Palette
    notes: Sequence[Note] = ()
    height: int = 460
    left: int = 64
    """Pixels for what stands left of the plot."""
    legend: Sequence[tuple[str, str]] = ()
    """What each colour is: names and colours, said beside the title."""
    square: bool = False
    """One unit is as long across as up."""


def linear_axis(
    low: float, high: float, title: str = "", most: int = 8, grid: bool = False, whole: bool = False
) -> Axis:
    """An axis with at most `most` round numbers at even steps; with `whole`, no fractions."""
    span = (high - low) or 1.0
    power = 10.0 ** np.floor(np.log10(span / most))
    step = next(power * part for part in (1, 2, 5, 10) if span / (power * part) <= most)
    if whole:
        step = max(step, 1.0)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    ticks = [(at * step, format_number(at * step, f",.{digits}f")) for at in range(first, last + 1)]
    return Axis(low, high, title, ticks, grid)


def log_axis(low: float, high: float, title: str = "", step: int = 1, grid: bool = False) -> Axis:
    """A logarithmic axis; `low` and `high` are powers of ten, and so are the coordinates on it."""
    signs = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    powers = range(int(np.ceil(low)), int(np.floor(high)) + 1, step)
    plain = {0: "1", 1: "10", 2: "100"}
    return Axis(low, high, title, [(at, plain.get(at, f"10{str(at).translate(signs)}")) for at in powers], grid)


# The curves of trainings: loss, BLEU and learning rate over steps, one line for each model.


TRAINING_HEIGHT = 640
TRAINING_PANELS = {
    "loss": (to_say("loss, nats a token"), (0.56, 1.0), ".3f"),
    "bleu": (to_say("BLEU on dev"), (0.27, 0.49), ".1f"),
    "rate": (to_say("learning rate"), (0.0, 0.2), ".2e"),
}
"""Field of a row -> axis title, share of the height, format on hover."""
BESIDE_PLACES = {"": (0.0, 0.26), "2": (0.37, 0.63), "3": (0.74, 1.0)}
"""Number of an axis of steps -> its share of the width, where the three stand beside each other."""


def plot_training_curves(
    histories: Mapping[str, Sequence[HistoryRow]],
    palette: Palette,
    title: str,
    *,
    log_steps: bool = False,
    marked: Collection[int] = (),
    beside: bool = False,
) -> go.Figure:
    """`histories` by model name, drawn below each other over one axis of steps; `marked` steps get a dotted line.

    With `beside` the three stand beside each other, as on a stage, where each has all the height. Several models are
    told apart by colour, each named at the end of its loss.
    """
    traces, axes = [], {}
    for at, (field, (heading, domain, _)) in enumerate(TRAINING_PANELS.items(), start=1):
        number = "" if at == 1 else str(at)
        axes[f"yaxis{number}"] = build_plot_axis(
            palette,
            say(heading),
            domain=(0.0, 1.0) if beside else domain,
            anchor=f"x{number}" if beside else "x",
            rangemode="tozero",
            nticks=6,
        )
        traces += [
            _training_line(rows, field, name, _model_colour(palette, which, len(histories)), len(histories) > 1)
            | {"yaxis": f"y{number}", "xaxis": f"x{number}" if beside else "x"}
            for which, (name, rows) in enumerate(histories.items())
        ]
    axes["yaxis3"] |= {"tickformat": "~e"}
    first, last = _step_range(histories, log_steps)
    steps = build_plot_axis(
        palette, say("training step"), range=[first, last], tickformat=",d", showgrid=False, anchor="y3"
    )
    if log_steps:
        steps |= {"type": "log", "range": np.log10([first, last]).tolist(), "dtick": "D2"}
    places = BESIDE_PLACES if beside else {"": (0.0, 1.0)}
    axes |= {
        f"xaxis{number}": steps | ({"domain": domain, "anchor": f"y{number}", "nticks": 4} if beside else {})
        for number, domain in places.items()
    }
    drawn = build_titled_layout(
        palette,
        title,
        TRAINING_HEIGHT,
        **axes,
        shapes=[_step_mark(step, palette, x) for x in places for step in marked if first <= step <= last],
        annotations=_build_model_name_annotations(histories, palette),
        hovermode="x",
    )
    drawn["margin"] |= {"l": 76, "r": 130 if len(histories) > 1 else 16}
    return go.Figure({"data": traces, "layout": drawn})


def _step_range(histories: Mapping[str, Sequence[HistoryRow]], log_steps: bool) -> tuple[int, int]:
    """The first and the last step drawn; a logarithmic axis begins where the first loss was measured."""
    steps = [row.step for rows in histories.values() for row in rows] or [1]
    return min(steps) if log_steps else 0, max(steps)


def _training_line(rows: Sequence[HistoryRow], field: str, name: str, colour: str, several: bool) -> dict:
    known = [row for row in rows if getattr(row, field) is not None]
    heading, _, form = TRAINING_PANELS[field]
    said = say("step {step} · {measure}", step="%{x:,}", measure=say(heading))
    return {
        "type": "scatter",
        "x": [row.step for row in known],
        "y": [getattr(row, field) for row in known],
        "mode": "lines+markers" if field == "bleu" else "lines",
        "line": {"color": colour, "width": 2},
        "marker": {"size": 5, "color": colour},
        "name": name,
        "hovertemplate": f"{f'{name} · ' if several else ''}{said} <b>%{{y:{form}}}</b><extra></extra>",
    }


def _model_colour(palette: Palette, which: int, count: int) -> str:
    return palette.accent if count == 1 else head_colour(palette, which)


def _step_mark(step: int, palette: Palette, x_axis: str) -> dict:
    line = {"color": palette.soft, "width": 1, "dash": "dot"}
    return {
        "type": "line",
        "x0": step,
        "x1": step,
        "xref": f"x{x_axis}",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": line,
        "layer": "below",
    }


def _build_model_name_annotations(histories: Mapping[str, Sequence[HistoryRow]], palette: Palette) -> list[dict]:
    """The names of several models, in the right margin, in the order of their last loss."""
    if len(histories) < 2:
        return []
    last = {name: rows[-1].loss for name, rows in histories.items() if rows}
    order = sorted(last, key=last.__getitem__, reverse=True)
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top"}
    return [
        text_annotation(
            name,
            1.01,
            1.0 - 0.04 * at,
            palette,
            **place,
            font={"size": 13, "color": head_colour(palette, list(histories).index(name))},
        )
        for at, name in enumerate(order)
    ]
