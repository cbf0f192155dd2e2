"""Figures of the page Heads: bars, error rates, curves over training, projection, pruning, scatter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from .curves import Axis, Curves, Mark, Note, linear_axis
from .figure_style import (
    KIND_NAMES,
    Look,
    Palette,
    base_layout,
    blend_colours,
    build_plot_axis,
    build_titled_layout,
    escape_markup,
    format_number,
    head_colour,
    say,
    title_layout,
    to_say,
)
from .heatmap import negative_colour

# Lists: the measures of one head among the others, and the heads that match a question.


BAR_ROW_HEIGHT = 24
NAME_MARGINS = (214, 290)
"""Pixels for the names of measures, at least and at most."""
NAME_LETTER_WIDTH = 7
"""Pixels of a letter of a name, about."""


@dataclass(frozen=True)
class MeasureStrip:
    """A measure of one head among the heads of its map."""

    name: str
    own: float
    others: tuple[float, ...]


@dataclass(frozen=True)
class HeadLift:
    """How often the links of a head match a question."""

    name: str
    hits: int
    links: int
    lift: float


def plot_measure_strips(found: Sequence[MeasureStrip], title: str, palette: Palette) -> go.Figure:
    """A row a measure: the other heads in grey, the head in the accent, each from the least to the most of the map."""
    grey: tuple[list[float], list[int], list[str]] = ([], [], [])
    own: tuple[list[float], list[int], list[str]] = ([], [], [])
    for row, strip in enumerate(found):
        low, high = min(strip.others), max(strip.others)
        for values, into in ((strip.others, grey), ((strip.own,), own)):
            for value in values:
                into[0].append((value - low) / ((high - low) or 1.0))
                into[1].append(row)
                into[2].append(f"{escape_markup(strip.name)} {format_number(value, '.3f')}")
    dots = {"type": "scatter", "mode": "markers", "hovertemplate": "%{text}<extra></extra>", "cliponaxis": False}
    traces = [
        dots | dict(zip(("x", "y", "text"), grey, strict=True)) | {"marker": {"color": palette.line, "size": 9}},
        dots | dict(zip(("x", "y", "text"), own, strict=True)) | {"marker": {"color": palette.accent, "size": 13}},
    ]
    longest = max((len(strip.name) for strip in found), default=0)
    shown = build_titled_layout(palette, title, BAR_ROW_HEIGHT * len(found) + 76) | {
        "margin": {
            "l": min(max(NAME_MARGINS[0], NAME_LETTER_WIDTH * longest), NAME_MARGINS[1]),
            "r": 72,
            "t": 40,
            "b": 30,
            "autoexpand": False,
        },
        "xaxis": build_plot_axis(
            palette, showgrid=False, tickvals=[0, 1], ticktext=[say("least"), say("most")], range=[-0.03, 1.03]
        ),
        "yaxis": build_plot_axis(
            palette,
            range=[len(found) - 0.5, -0.5],
            tickvals=list(range(len(found))),
            ticktext=[escape_markup(strip.name) for strip in found],
            showgrid=False,
        ),
        "annotations": [
            {
                "text": format_number(strip.own, ".3f"),
                "x": 1.0,
                "xref": "paper",
                "xshift": 8,
                "y": row,
                "showarrow": False,
            }
            | {"xanchor": "left", "font": {"size": 13, "color": palette.soft}}
            for row, strip in enumerate(found)
        ],
    }
    return go.Figure({"data": traces, "layout": shown})


def plot_head_lift_bars(found: Sequence[HeadLift], title: str, palette: Palette) -> go.Figure:
    """A bar a head: how many times as often as all heads of its map together; the line at 1 is chance."""
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [one.lift for one in found],
        "y": list(range(len(found))),
        "marker": {"color": [palette.accent if one.lift > 1 else palette.line for one in found]},
        "text": [say("{counts}, lift {lift:.2f}", counts=_format_hit_count(one), lift=one.lift) for one in found],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }
    chance = {"color": palette.soft, "dash": "dot"}
    shown = build_titled_layout(palette, title, BAR_ROW_HEIGHT * max(len(found), 1) + 88) | {
        "margin": {"l": 112, "r": 110, "t": 40, "b": 44, "autoexpand": False},
        "bargap": 0.35,
        "xaxis": build_plot_axis(
            palette, say("times as often as all heads of the map"), rangemode="tozero", showgrid=False
        ),
        "yaxis": build_plot_axis(
            palette,
            range=[len(found) - 0.5, -0.5],
            tickvals=list(range(len(found))),
            ticktext=[escape_markup(one.name) for one in found],
            showgrid=False,
        ),
        "shapes": [{"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": chance}],
        "annotations": [
            {"text": _format_hit_count(one), "x": 1.0, "xref": "paper", "xshift": 6, "y": row}
            | {"xanchor": "left", "showarrow": False, "font": {"size": 12, "color": palette.soft}}
            for row, one in enumerate(found)
        ],
    }
    return go.Figure({"data": [bars], "layout": shown})


def _format_hit_count(one: HeadLift) -> str:
    return say("{hits:,} of {links:,}", hits=one.hits, links=one.links)


# Alignment error rates of all heads as a table: the lower the rate, the stronger the colour.


RATE_ROW_HEIGHT = 30


@dataclass(frozen=True, eq=False)
class RateTable:
    """The rates at one reading."""

    name: str
    rates: np.ndarray
    """(L + 1, H + 1): of each layer its heads and their mean; the last row has the mean of all at its end, else NaN."""


def plot_alignment_error_rates(tables: Sequence[RateTable], title: str, palette: Palette) -> go.Figure:
    """One table below the other; the row above each, at :func:`find_table_start_row` - 1, has its name."""
    rows, columns = tables[0].rates.shape
    cells = np.full((len(tables) * (rows + 1), columns), np.nan)
    for at, table in enumerate(tables):
        first = find_table_start_row(at, rows)
        cells[first : first + rows] = table.rates
    names = [*(say("layer {layer}", layer=layer + 1) for layer in range(rows - 1)), say("all")]
    text = np.where(np.isnan(cells), "", np.char.mod("%.0f", 100 * np.nan_to_num(cells)))
    drawn = {
        "type": "heatmap",
        "z": 1 - cells,
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": Look(palette=palette, scale="linear").colorscale,
        "showscale": False,
        "hoverongaps": False,
        "xgap": 2,
        "ygap": 2,
        "text": text,
        "texttemplate": "%{text}",
        "textfont": {"size": 14},
        "hovertemplate": f"{escape_markup(say('%{y}, %{x}: error rate %{text}%'))}<extra></extra>",
    }
    plain = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "tickmode": "array"}
    small = {"size": 13, "color": palette.soft}
    shown = base_layout(palette, RATE_ROW_HEIGHT * len(cells) + 64, l=72, r=8, t=60, b=4) | {
        "title": title_layout(palette, f"<b>{escape_markup(title)}</b>"),
        "xaxis": plain
        | {"side": "top", "range": [-0.5, columns - 0.5], "tickvals": list(range(columns)), "tickfont": small}
        | {"ticktext": [*(f"{head + 1}" for head in range(columns - 1)), say("all")]},
        "yaxis": plain
        | {"range": [len(cells) - 0.5, -0.5], "tickfont": small}
        | {"tickvals": [find_table_start_row(at, rows) + row for at in range(len(tables)) for row in range(rows)]}
        | {"ticktext": names * len(tables)},
        "annotations": [
            {
                "text": escape_markup(table.name),
                "x": -0.5,
                "y": find_table_start_row(at, rows) - 1,
                "xanchor": "left",
                "showarrow": False,
            }
            | {"font": {"size": 14, "color": palette.ink}}
            for at, table in enumerate(tables)
        ],
    }
    return go.Figure({"data": [drawn], "layout": shown})


def find_table_start_row(table: int, rows: int) -> int:
    """The row of the figure at which a table of so many rows begins."""
    return table * (rows + 1) + 1


# A measure of every head over the training: one line for each head, coloured by its map.


TRAINING_HEIGHT = 480


def plot_heads_over_training(
    courses: Mapping[str, tuple[str, Sequence[float]]], ticks: Sequence[str], measure: str, title: str, palette: Palette
) -> Curves:
    """`courses`: the map and the values of each head by its name, a value a stop of the training (`ticks`).

    Stops stand at even distances. Two marks a head, in the order of `courses`: its line and its dots.
    """
    colours = assign_attention_kind_colours(palette)
    across = np.arange(len(ticks), dtype=float)
    marks = []
    for name, (kind, values) in courses.items():
        points = np.stack([across, np.array(values, dtype=float)], -1)
        known = ~np.isnan(points[:, 1])
        points[~known] = np.nan
        marks += [
            Mark("line", points, colours[kind], 1.5),
            Mark("dots", points[known], colours[kind], 2.5, f"{name} · {measure} {{0:.3f}}", points[known][:, 1:]),
        ]
    values = [value for _, course in courses.values() for value in course if not np.isnan(value)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.05 * (high - low) or 1.0
    return Curves(
        title,
        Axis(-0.2, len(ticks) - 0.8, say("training step"), list(enumerate(ticks))),
        linear_axis(low - room, high + room, measure, grid=True),
        marks,
        palette,
        height=TRAINING_HEIGHT,
        legend=build_attention_kind_legend({kind for kind, _ in courses.values()}, palette),
    )


# Projection: tokens as dots in the plane of their two principal components, coloured by group.


PROJECTION_HEIGHT = 500
TOKEN_RADIUS, MARKED_TOKEN_RADIUS = 2.4, 5.0
"""Radii in pixels: of a token, and of one that is marked."""
LEGEND_LINE_HEIGHT = 19
"""Pixels from one line of the legend to the next."""
COLOURED_TAGS = 7
"""Parts of speech that have a colour of their own: the commonest."""
OTHER_GROUP = to_say("other")
SENTENCE_PARTS = (to_say("beginning"), to_say("first third"), to_say("middle"), to_say("last third"), to_say("end"))
TOKEN_SIDES = (to_say("query"), to_say("key"))


@dataclass(frozen=True, eq=False)
class TokenDots:
    """N tokens of one colour."""

    name: str
    """What they are, for the legend."""
    colour: str
    points: np.ndarray
    """(N, 2)"""
    names: Sequence[str]
    """(N,) what is read at each."""
    marked: bool = False


def plot_token_projection(groups: Sequence[TokenDots], axes: tuple[str, str], title: str, palette: Palette) -> Curves:
    """A mark a group, in their order, marked tokens in front of all others; each group is named in its colour."""
    every = np.concatenate([one.points for one in groups])
    x, y = (_projection_axis(every[:, at], name) for at, name in enumerate(axes))
    marks = [
        Mark(
            "dots",
            one.points,
            one.colour,
            MARKED_TOKEN_RADIUS if one.marked else TOKEN_RADIUS,
            "{name}",
            names=one.names,
        )
        for one in groups
    ]
    line = (y.high - y.low) * LEGEND_LINE_HEIGHT / PROJECTION_HEIGHT
    notes = [Note(one.name, x.high, y.high - (at + 0.7) * line, one.colour, "end") for at, one in enumerate(groups)]
    return Curves(title, x, y, marks, palette, notes, PROJECTION_HEIGHT, left=30)


def translate_token_group_name(name: str) -> str:
    """A group of tokens as a person reads it; a part of speech by its code."""
    return say(name) if name in (OTHER_GROUP, *SENTENCE_PARTS, *TOKEN_SIDES) else name


def assign_query_key_colours(palette: Palette) -> dict[str, str]:
    """Queries in the colour of attention, keys in its opposite."""
    return dict(zip(TOKEN_SIDES, (palette.accent, negative_colour(palette)), strict=True))


def assign_part_of_speech_colours(counts: Mapping[str, int], palette: Palette) -> dict[str, str]:
    """A colour for each of the commonest parts of speech, the commonest first; all others share the last."""
    common = sorted((tag for tag in counts if tag), key=lambda tag: (-counts[tag], tag))[:COLOURED_TAGS]
    return {**{tag: head_colour(palette, at) for at, tag in enumerate(common)}, OTHER_GROUP: palette.soft}


def assign_sentence_position_colours(palette: Palette) -> dict[str, str]:
    """Parts of a sentence from its beginning to its end, from the opposite colour to that of attention."""
    return dict(
        zip(SENTENCE_PARTS, blend_colours(negative_colour(palette), palette.accent, len(SENTENCE_PARTS)), strict=True)
    )


def classify_sentence_position(place: int, last: int) -> str:
    """Where in its sentence a token stands, `place` and `last` from 0."""
    if place in (0, last):
        return SENTENCE_PARTS[0] if place == 0 else SENTENCE_PARTS[-1]
    return SENTENCE_PARTS[1 + min(2, 3 * (place - 1) // max(1, last - 1))]


def _projection_axis(values: np.ndarray, name: str) -> Axis:
    low, high = float(values.min()), float(values.max())
    room = 0.04 * ((high - low) or 1.0)
    return Axis(low - room, high + room, name)


# Pruning: the quality of a model as its heads are taken away, by cost as a line, in random orders as a band.


PRUNING_HEIGHT = 380


def plot_head_pruning_curves(
    away: Sequence[int],
    by_cost: Sequence[float],
    random: np.ndarray,
    chosen: int,
    measure: str,
    title: str,
    palette: Palette,
) -> Curves:
    """`by_cost` (N,) and `random` (orders, N) over the heads taken `away` (N,); `chosen` is a point, from 0.

    The first mark is the line by cost, a point a number of heads.
    """
    heads, across = away[-1], np.array(away, dtype=float)
    cost = np.array(by_cost)
    mean, low, high = random.mean(0), random.min(0), random.max(0)
    left = np.array([heads - one for one in away])
    says = say("{{1:.0f}} heads left · {measure} {{0:.2f}} · random orders {{2:.2f}} to {{3:.2f}}", measure=measure)
    values = np.stack([cost, left, low, high], -1)
    there, back = (np.stack([across, edge], -1) for edge in (low, high))
    marks = [
        Mark("line", np.stack([across, cost], -1), palette.accent, 2.5, says, values),
        Mark("dots", np.array([[across[chosen], cost[chosen]]]), palette.accent, 6.0),
        Mark("line", np.stack([across, mean], -1), palette.soft, 1.5),
        Mark("area", np.concatenate([there, back[::-1]]), palette.soft),
    ]
    lowest, highest = float(min(low.min(), cost.min())), float(max(high.max(), cost.max()))
    room = 0.05 * (highest - lowest) or 1.0
    at = len(away) // 2
    notes = [
        Note(say("by cost, least first"), float(across[at]), float(cost[at]), palette.accent, "start", "bottom", 8),
        Note(say("random orders"), float(across[at]), float(low[at]), palette.soft, "end", "top", -8),
    ]
    ticks = [(heads - value, text) for value, text in linear_axis(0, heads, whole=True).ticks]
    return Curves(
        title,
        Axis(0.0, float(heads), say("heads left"), ticks),
        linear_axis(lowest - room, highest + room, measure, grid=True),
        marks,
        palette,
        notes,
        height=PRUNING_HEIGHT,
    )


# Scatter: every head as a dot over two measures, coloured by its map, sized by the cost of switching it off.


SCATTER_HEIGHT = 520
SMALLEST_DOT, LARGEST_DOT = 4.0, 15.0
"""Radii in pixels; the area grows with the cost."""
MOST_NAMED_DOTS = 6
"""Heads whose name stands beside their dot: those that cost most."""
NAME_WIDTH, NAME_HEIGHT = 0.14, 0.06
"""Shares of the picture that a name takes in a narrow window, its distance from the dot included."""


@dataclass(frozen=True)
class HeadDot:
    """A head on the map."""

    name: str
    kind: str
    x: float
    y: float
    cost: float
    """In nats; 0 where it is not known."""
    label: str
    chosen: bool = False


def plot_head_scatter(
    dots: Sequence[HeadDot], across: str, up: str, title: str, palette: Palette, beside: Sequence[HeadDot] = ()
) -> Curves:
    """A mark a dot, in the order of `dots`, so that a click names its head.

    `beside` are the dots of a second picture, with which this one shares its axes and the sizes of its dots.
    """
    colours, priced = assign_attention_kind_colours(palette), say("cost")
    most = max((max(dot.cost, 0.0) for dot in (*dots, *beside)), default=0.0) or 1.0
    marks = [
        Mark(
            "dots",
            np.array([[dot.x, dot.y]]),
            colours[dot.kind],
            SMALLEST_DOT + (LARGEST_DOT - SMALLEST_DOT) * (max(dot.cost, 0.0) / most) ** 0.5,
            f"{dot.name} · {dot.label} · {across} {{0:.3f}} · {up} {{1:.3f}} · {priced} {{2:.4f}}",
            np.array([[dot.x, dot.y, dot.cost]]),
        )
        for dot in dots
    ]
    largest = sorted(dots, key=lambda dot: (not dot.chosen, -dot.cost))[:MOST_NAMED_DOTS]
    x, y = (
        _scatter_axis([getattr(dot, one) for dot in (*dots, *beside)], name) for one, name in (("x", across), ("y", up))
    )
    notes = [_place_dot_label(dot, dots, x, y, palette) for dot in largest]
    kinds = {dot.kind for dot in (*dots, *beside)}
    return Curves(
        title, x, y, marks, palette, notes, height=SCATTER_HEIGHT, legend=build_attention_kind_legend(kinds, palette)
    )


def _place_dot_label(dot: HeadDot, dots: Sequence[HeadDot], x: Axis, y: Axis, palette: Palette) -> Note:
    """The name beside its dot, where it stays in the picture and covers fewer others; towards the middle if equal."""
    inwards = 1 if dot.x < (x.low + x.high) / 2 else -1
    wide, tall = NAME_WIDTH * (x.high - x.low), NAME_HEIGHT * (y.high - y.low)

    def measure_covered_area(side: int) -> float:
        if not x.low <= dot.x + side * wide <= x.high:
            return np.inf
        return sum(0 < side * (one.x - dot.x) < wide and abs(one.y - dot.y) < tall / 2 for one in dots)

    side = min((inwards, -inwards), key=measure_covered_area)
    return Note(dot.name, dot.x, dot.y, palette.ink, "start" if side > 0 else "end", "middle", 18 * side)


def assign_attention_kind_colours(palette: Palette) -> dict[str, str]:
    """The colour of each map's heads."""
    return {"encoder": palette.accent, "decoder": negative_colour(palette), "cross": palette.soft}


def build_attention_kind_legend(kinds: Collection[str], palette: Palette) -> list[tuple[str, str]]:
    """Which colour is which map, of those there are."""
    return [
        (say(KIND_NAMES[kind]), colour)
        for kind, colour in assign_attention_kind_colours(palette).items()
        if kind in kinds
    ]


def _scatter_axis(values: Sequence[float], name: str) -> Axis:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.06 * ((high - low) or 1.0)
    return linear_axis(low - room, high + room, name, grid=True)
