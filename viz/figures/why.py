"""Figures of the page Why: deletion, head effects, logit parts, methods, patching, score parts, shares."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from .figure_style import (
    KIND_NAMES,
    Palette,
    base_layout,
    build_plot_axis,
    build_titled_layout,
    escape_markup,
    format_number,
    format_signed,
    say,
    text_annotation,
    title_layout,
    token_label,
    token_labels,
    token_ticks,
    translate_component_name,
    translate_stream_place_name,
)
from .heatmap import build_signed_heatmap_options, choose_signed_text_colours, negative_colour

if TYPE_CHECKING:
    from attenscope.attribution.alti_and_leave_one_out import SourceShares
    from attenscope.attribution.logit import LogitPart
    from attenscope.evaluation.attribution import DeletionCurves
    from attenscope.experiments.patching import PatchMap
    from attenscope.trace import Kind

# Deletion: the probability of a word as source pieces are taken away, in the order of each method or at random.


DELETION_HEIGHT = 430


def plot_deletion_curves(curves: DeletionCurves, chosen: str, palette: Palette) -> go.Figure:
    """A line a method over the number of pieces taken away, the chosen one thick; the band is that of random orders."""
    low, mean, high = curves.band
    steps = np.arange(len(mean))
    share = curves.against is None
    places = {"x": "%{x}", "y": "%{y:.1%}" if share else "%{y:.2f}"}
    hover = (
        say("{x} pieces away<br>{y} left", **places) if share else say("{x} pieces away<br>difference {y}", **places)
    )
    plain = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
    traces: list[dict] = [
        plain | {"x": steps, "y": low, "line": {"width": 0}},
        plain | {"x": steps, "y": high, "line": {"width": 0}, "fill": "tonexty", "fillcolor": palette.line},
        plain
        | {"x": steps, "y": mean, "name": say("random order"), "line": {"color": palette.soft, "dash": "dot"}}
        | {"hoverinfo": None, "hovertemplate": f"{say('random order, mean')}<br>{hover}<extra></extra>"},
    ]
    for name in sorted(curves.methods, key=lambda one: one == chosen):
        line = {"color": palette.accent, "width": 3} if name == chosen else {"color": palette.soft, "width": 1}
        traces.append(
            {
                "type": "scatter",
                "name": say(name),
                "x": steps,
                "y": curves.remaining_share(curves.methods[name]),
                "mode": "lines",
            }
            | {"line": line, "opacity": 1 if name == chosen else 0.6}
            | {"hovertemplate": f"{escape_markup(say(name))}<br>{hover}<extra></extra>"}
        )
    at = int(high.argmax())
    title = (
        say("What is left of the probability; thick: the order of {method}", method=escape_markup(say(chosen)))
        if share
        else say(
            "What is left of the difference of logits; thick: the order of {method}", method=escape_markup(say(chosen))
        )
    )
    ticks = {"tickformat": ".0%"} if share else {}
    shown = build_titled_layout(palette, title, DELETION_HEIGHT) | {
        "xaxis": build_plot_axis(
            palette,
            say("source pieces taken away"),
            range=[0, len(mean) - 1],
            dtick=_tick_step(len(mean)),
            showgrid=False,
        ),
        "yaxis": build_plot_axis(palette, "", showgrid=True, rangemode="tozero", **ticks),
        "annotations": [text_annotation(say("random orders"), at, high[at], palette, yshift=-12)],
    }
    return go.Figure({"data": traces, "layout": shown})


def _tick_step(count: int) -> int:
    return max(1, count // 9)


# Head effects: how far the value of a word falls without each head, by attention and layer.


HEAD_ROW_HEIGHT = 28
HEAD_FALLS_MARGIN = {"l": 76, "r": 8, "t": 64, "b": 8}
MOST_NUMBERED_HEADS = 8
"""Heads of a layer beyond which the cells have no room for a number."""
HeadRows = tuple[tuple["Kind", int] | None, ...]
"""The attention and the layer of each row; None where the name of an attention stands."""


def list_layer_rows_by_attention(falls: Mapping[Kind, np.ndarray]) -> HeadRows:
    """The rows of the picture from the top down: a name above the layers of each attention."""
    return tuple(place for kind, one in falls.items() for place in (None, *((kind, at) for at in range(len(one)))))


def plot_head_ablation_effects(falls: Mapping[Kind, np.ndarray], title: str, palette: Palette) -> go.Figure:
    """Layers down and heads across, for each attention (L, H); indigo where the word falls without the head."""
    rows = list_layer_rows_by_attention(falls)
    most = max(one.shape[1] for one in falls.values())
    values = np.full((len(rows), most), np.nan)
    for at, place in enumerate(rows):
        if place is not None:
            own = falls[place[0]][place[1]]
            values[at, : len(own)] = own
    heads = [translate_component_name(f"head {head + 1}") for head in range(most)]
    layers = ["" if place is None else translate_component_name(f"layer {place[1] + 1}") for place in rows]
    heat = build_signed_heatmap_options(values, palette, max(float(np.nanmax(np.abs(values))), 1e-9)) | {
        "text": [[_format_ablation_effect(one) for one in row] for row in values.tolist()],
        "customdata": [[[name, head] for head in heads] for name in layers],
        "hovertemplate": "%{customdata[0]}, %{customdata[1]}: %{text}<extra></extra>",
    }
    if most <= MOST_NUMBERED_HEADS:
        heat |= {"texttemplate": "%{text}", "textfont": {"size": 11}}
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 4}
    axis |= {"tickfont": {"size": 12, "color": palette.soft}}
    numbers = [str(head + 1) for head in range(most)]
    named = [(at, kind) for at, kind in zip(_find_heading_rows(rows), falls, strict=True)]
    layout = base_layout(
        palette,
        HEAD_ROW_HEIGHT * len(rows) + HEAD_FALLS_MARGIN["t"] + HEAD_FALLS_MARGIN["b"],
        **HEAD_FALLS_MARGIN | {"l": axis_name_margin(layers, 76)},
    ) | {
        "title": title_layout(palette, f"<b>{escape_markup(title)}</b>"),
        "xaxis": axis
        | {"side": "top", "tickvals": list(range(most)), "ticktext": heads if most <= MOST_NUMBERED_HEADS else numbers},
        "yaxis": axis
        | {"range": [len(rows) - 0.5, -0.5]}
        | {"tickvals": list(range(len(rows))), "ticktext": list(map(escape_markup, layers))},
        "annotations": [_build_attention_kind_annotation(say(KIND_NAMES[kind]), at, palette) for at, kind in named],
    }
    return go.Figure({"data": [heat], "layout": layout})


def _find_heading_rows(rows: HeadRows) -> list[int]:
    return [at for at, place in enumerate(rows) if place is None]


def _format_ablation_effect(value: float) -> str:
    rounded = round(value, 2) or 0.0  # no sign before nothing
    return "" if np.isnan(value) else format_signed(rounded, plus=bool(rounded))


def _build_attention_kind_annotation(text: str, row: int, palette: Palette) -> dict:
    """The name of an attention in the row above its layers."""
    place = {"xref": "paper", "x": 0, "xanchor": "left", "y": row, "yanchor": "middle"}
    return place | {"text": escape_markup(text), "showarrow": False, "font": {"size": 13, "color": palette.ink}}


# Logit parts: a logit as a sum of signed parts, by layer in the order of addition, and the largest alone.


PART_ROW_HEIGHT = 25
PARTS_MARGIN = {"l": 214, "r": 56, "t": 40, "b": 12}


def plot_logit_parts_by_sublayer(parts: Sequence[LogitPart], palette: Palette) -> go.Figure:
    """The sum of each sublayer, from the embedding up, with the heads of a layer added."""
    names, scores = zip(*sum_logit_parts_by_sublayer(parts).items(), strict=True)
    return plot_signed_bars(names, scores, say("By layer"), palette)


def plot_largest_logit_parts(parts: Sequence[LogitPart], rest: float, palette: Palette) -> go.Figure:
    """The largest parts one by one, and the sum of all others."""
    names = [*(one.part.label for one in parts), say("all others")]
    return plot_signed_bars(names, [*(one.score for one in parts), rest], say("The largest parts"), palette)


def sum_logit_parts_by_sublayer(parts: Sequence[LogitPart]) -> dict[str, float]:
    """The sum of each sublayer's parts by its name, in the order in which they are added; biases last."""
    sums: dict[str, float] = {}
    for one in sorted(parts, key=lambda one: one.part.kind == "bias"):
        name = one.part.sublayer.label
        sums[name] = sums.get(name, 0.0) + one.score
    return sums


def plot_signed_bars(names: Sequence[str], scores: Sequence[float], title: str, palette: Palette) -> go.Figure:
    """Signed numbers by name, from the top down."""
    numbers = [format_signed(one, plus=True) for one in scores]
    drawn = {
        "type": "bar",
        "orientation": "h",
        "x": list(scores),
        "y": list(range(len(scores))),
        "marker": {"color": [palette.accent if one >= 0 else negative_colour(palette) for one in scores]},
        "text": numbers,
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }
    low, high = min(0.0, *scores), max(0.0, *scores)
    shown = build_titled_layout(
        palette, title, PART_ROW_HEIGHT * len(scores) + PARTS_MARGIN["t"] + PARTS_MARGIN["b"]
    ) | {
        "margin": {**PARTS_MARGIN, "l": axis_name_margin(names, PARTS_MARGIN["l"]), "autoexpand": False},
        "bargap": 0.35,
        "xaxis": build_plot_axis(
            palette, showticklabels=False, showgrid=False, showline=False, zeroline=True, zerolinecolor=palette.soft
        )
        | {"range": [low, high or 1.0]},
        "annotations": [_score_annotation(text, row, palette) for row, text in enumerate(numbers)],
        "yaxis": build_plot_axis(
            palette, showgrid=False, showline=False, ticklabelstandoff=6, range=[len(scores) - 0.4, -0.6]
        )
        | {"tickvals": list(range(len(scores))), "ticktext": [escape_markup(one) for one in names]},
    }
    return go.Figure({"data": [drawn], "layout": shown})


def _score_annotation(text: str, row: int, palette: Palette) -> dict:
    """A number in the margin at the right, where no bar and no name is."""
    place = {"xref": "paper", "x": 1, "xanchor": "right", "xshift": PARTS_MARGIN["r"] - 4, "y": row}
    return place | {"text": text, "showarrow": False, "font": {"size": 12, "color": palette.soft}}


# Methods: scores of several methods for the same pieces, each row on its own scale.


METHOD_ROW_HEIGHT = 30
METHODS_MARGIN = {"l": 158, "r": 104, "t": 78, "b": 8}
METHODS_GAP = 1
"""Columns left free between the source and the prefix."""


def plot_attribution_method_scores(
    scores: Mapping[str, np.ndarray],
    source: Sequence[str],
    prefix: Sequence[str],
    correlations: Mapping[str, float],
    chosen: str,
    palette: Palette,
) -> go.Figure:
    """Methods down, pieces of the source (S) and of the prefix (P) across; `scores` are (S + P,) or (S,) each.

    A row is coloured by its own largest score. The last column is each method's rank correlation with the first.
    """
    width = len(source) + METHODS_GAP + len(prefix)
    values = np.full((len(scores), width), np.nan)
    for row, found in zip(values, scores.values(), strict=True):
        row[: len(source)] = found[: len(source)]
        row[width - len(prefix) :][: len(found) - len(source)] = found[len(source) :]
    largest = np.nanmax(np.abs(values), axis=1, keepdims=True, initial=1e-12)
    names = [*source, *[" "] * METHODS_GAP, *prefix]
    cells = build_signed_heatmap_options(values / largest, palette) | {
        "customdata": [
            [
                f"{token_label(name)}: {'' if math.isnan(one) else format_signed(float(one), 3, plus=True)}"
                for name, one in pairs
            ]
            for pairs in (list(zip(names, row, strict=True)) for row in values)
        ],
        "hovertemplate": "%{y}<br>%{customdata}<extra></extra>",
    }
    places = [*range(len(source)), *range(len(source) + METHODS_GAP, width)]
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 4}
    rows = [f"<b>{escape_markup(say(one))}</b>" if one == chosen else escape_markup(say(one)) for one in scores]
    margin = METHODS_MARGIN | {"l": axis_name_margin(map(say, scores), METHODS_MARGIN["l"])}
    figure = base_layout(
        palette, METHOD_ROW_HEIGHT * len(scores) + METHODS_MARGIN["t"] + METHODS_MARGIN["b"], **margin
    ) | {
        "xaxis": axis
        | {"side": "top", "tickangle": -45, "tickfont": {"size": 12, "color": palette.ink}}
        | {"tickvals": places, "ticktext": [token_label(names[at]) for at in places], "range": [-0.5, width - 0.5]},
        "yaxis": axis
        | {"tickvals": list(range(len(rows))), "ticktext": rows, "tickfont": {"size": 13, "color": palette.ink}}
        | {"range": [len(rows) - 0.5, -0.5]},
        "annotations": _correlation_column(list(correlations.values()), palette),
    }
    return go.Figure({"data": [cells], "layout": figure})


def _correlation_column(numbers: Sequence[float], palette: Palette) -> list[dict]:
    """The column at the right: one number a row, under its heading."""
    look = {"xref": "paper", "x": 1, "xanchor": "right", "xshift": 88, "showarrow": False, "align": "right"}
    texts = [say("reference"), *("—" if math.isnan(one) else format_signed(one) for one in numbers[1:])]
    heading = look | {"text": say("rank<br>correlation"), "yref": "paper", "y": 1, "yanchor": "bottom", "yshift": 4}
    heading |= {"font": {"size": 12, "color": palette.soft}}
    rows = [look | {"text": one, "y": at, "font": {"size": 13, "color": palette.ink}} for at, one in enumerate(texts)]
    return [heading, *rows]


# Activation patching: how much of a difference comes back for a patch at each place.


PATCH_ROW_HEIGHT = 34
PATCH_HOVER_FIELDS = {"row": "%{y}", "column": "%{customdata}", "share": "%{z:.1%}"}
PATCHES_MARGIN = {"l": 92, "r": 40, "t": 96, "b": 8}
MOST_NUMBERED_COLUMNS = 14
"""Columns beyond which the cells have no room for a number."""


def plot_activation_patching(found: PatchMap, columns: Sequence[str], title: str, palette: Palette) -> go.Figure:
    """Layers down, positions or heads across, then all of them at once; each cell the share that comes back."""
    values = np.column_stack([found.fraction, np.full(len(found.rows), np.nan), found.whole_row_recovered_fraction])
    names = [*map(translate_component_name, columns), " ", say("all")]
    heat = build_signed_heatmap_options(values, palette) | {
        "customdata": [[token_label(name) for name in names]] * len(found.rows),
        "hovertemplate": say(
            "{row}, {column}: {share} comes back", row="%{y}", column="%{customdata}", share="%{z:.1%}"
        )
        + "<extra></extra>",
    }
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 4}
    axis |= {"tickfont": {"size": 13, "color": palette.ink}}
    places = [at for at, name in enumerate(names) if name != " "]
    margin = PATCHES_MARGIN | {"l": axis_name_margin(map(translate_stream_place_name, found.rows), PATCHES_MARGIN["l"])}
    layout = base_layout(
        palette, PATCH_ROW_HEIGHT * len(found.rows) + PATCHES_MARGIN["t"] + PATCHES_MARGIN["b"], **margin
    ) | {
        "title": title_layout(palette, f"<b>{escape_markup(title)}</b>"),
        "xaxis": axis
        | {"side": "top", "tickangle": -45, "range": [-0.5, len(names) - 0.5]}
        | {"tickvals": places, "ticktext": [token_label(names[at]) for at in places]},
        "yaxis": axis
        | {"range": [len(found.rows) - 0.5, -0.5]}
        | {
            "tickvals": list(range(len(found.rows))),
            "ticktext": [escape_markup(translate_stream_place_name(one)) for one in found.rows],
        },
    }
    return go.Figure({"data": [heat, _build_patch_number_trace(values, len(names), palette)], "layout": layout})


def format_share(value: float) -> str:
    """A share in whole percent, with a minus sign as wide as its digits."""
    return format_number(value if f"{value:.0%}" != "-0%" else 0.0, ".0%")


def _build_patch_number_trace(values: np.ndarray, columns: int, palette: Palette) -> dict:
    down, across = np.meshgrid(np.arange(len(values)), np.arange(columns), indexing="ij")
    shown = ~np.isnan(values) & (across >= (0 if columns <= MOST_NUMBERED_COLUMNS else columns - 1))
    return {
        "type": "scatter",
        "mode": "text",
        "x": across[shown],
        "y": down[shown],
        "text": [format_share(one) for one in values[shown].tolist()],
        "textfont": {"size": 11, "color": choose_signed_text_colours(values[shown], palette).tolist()},
        "hoverinfo": "skip",
    }


# Room for the names beside a picture.


AXIS_LETTER_WIDTH = 7.0
"""Pixels of a letter of an axis name, on average; a Chinese character counts as two letters."""
AXIS_NAME_GAP = 12


def axis_name_margin(names: Iterable[str], least: int) -> int:
    """The pixels of a margin in which the longest of the names fits, at least as many as `least`."""
    letters = (sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in name) for name in names)
    return max(least, int(AXIS_LETTER_WIDTH * max(letters, default=0)) + AXIS_NAME_GAP)


# Score parts: one attention score as a sum over pairs of a query part and a key part.


SCORE_ROW_HEIGHT = 32
SCORE_MARGIN = {"l": 168, "r": 92, "t": 112, "b": 8}
FAINT_SHARE = 0.02
"""A cell below this share of the largest has no number written into it."""


def plot_attention_score_parts(
    rows: Sequence[str], columns: Sequence[str], cells: np.ndarray, palette: Palette
) -> go.Figure:
    """Parts of the query down, parts of the key across; cells (rows, columns) that sum to the score."""
    largest = float(np.abs(cells).max()) or 1.0
    down, across = np.indices(cells.shape)
    heat = build_signed_heatmap_options(cells, palette, largest) | {
        "customdata": [[format_signed(one, 3, plus=True) for one in row] for row in cells.tolist()],
        "hovertemplate": say("query: {query}<br>key: {key}", query="%{y}", key="%{x}")
        + "<br><b>%{customdata}</b><extra></extra>",
    }
    numbers = {
        "type": "scatter",
        "mode": "text",
        "x": across.ravel(),
        "y": down.ravel(),
        "text": [
            format_signed(one, plus=True) if abs(one) >= FAINT_SHARE * largest else "" for one in cells.ravel().tolist()
        ],
        "textfont": {"size": 11, "color": choose_signed_text_colours(cells / largest, palette).ravel().tolist()},
        "hoverinfo": "skip",
    }
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 4}
    axis |= {"tickfont": {"size": 12, "color": palette.ink}}
    height = SCORE_ROW_HEIGHT * len(rows) + SCORE_MARGIN["t"] + SCORE_MARGIN["b"]
    layout = base_layout(palette, height, **SCORE_MARGIN | {"l": axis_name_margin(rows, SCORE_MARGIN["l"])}) | {
        "xaxis": axis
        | {"side": "top", "tickangle": -35, "range": [-0.5, len(columns) - 0.5]}
        | {"tickvals": list(range(len(columns))), "ticktext": list(map(escape_markup, columns))},
        "yaxis": axis
        | {"range": [len(rows) - 0.5, -0.5]}
        | {"tickvals": list(range(len(rows))), "ticktext": list(map(escape_markup, rows))},
        "annotations": [_corner_text(say("key part →"), 22, palette), _corner_text(say("query part ↓"), 2, palette)],
    }
    return go.Figure({"data": [heat, numbers], "layout": layout})


def _corner_text(text: str, up: int, palette: Palette) -> dict:
    """A word in the corner that both axes leave free."""
    place = {"xref": "paper", "x": 0, "xanchor": "right", "xshift": -8, "yref": "paper", "y": 1, "yanchor": "bottom"}
    font = {"size": 12, "color": palette.soft}
    return place | {"text": text, "yshift": up, "showarrow": False, "font": font}


# Shares: where each piece of a translation comes from, as stacked bars with the attention to </s>.


SHARES_HEIGHT, SOURCE_EFFECT_HEIGHT = 330, 210
SHARES_MARGIN = {"l": 64, "r": 16, "t": 44, "b": 64}


def plot_source_shares(found: SourceShares, chosen: int, palette: Palette) -> go.Figure:
    """For each piece, shares of the source (indigo) and the prefix (grey); a mark for attention to the end token."""
    place, names = np.arange(len(found.tokens)), token_labels(found.tokens)
    hover = {"piece": "%{customdata}", "share": "%{y:.0%}", "token": token_label(found.end)}
    end = say("attention to {token}", token=token_label(found.end))
    bar = {"type": "bar", "x": place, "width": 0.72, "customdata": names}
    traces = [
        bar
        | {"name": say("from the source"), "y": found.source, "marker": {"color": palette.accent}}
        | {"hovertemplate": say("{piece}: {share} from the source", **hover) + "<extra></extra>"},
        bar
        | {"name": say("from what was written before"), "y": found.prefix, "marker": {"color": palette.masked}}
        | {"hovertemplate": say("{piece}: {share} from the prefix", **hover) + "<extra></extra>"},
        {"type": "scatter", "mode": "markers", "name": end, "x": place, "y": found.end_attention}
        | {
            "marker": {
                "symbol": "diamond",
                "size": 11,
                "color": negative_colour(palette),
                "line": {"width": 2, "color": palette.background},
            }
        }
        | {"customdata": names}
        | {"hovertemplate": say("{piece}: {share} of attention on {token}", **hover) + "<extra></extra>"},
    ]
    figure = build_titled_layout(palette, say("Source or prefix"), SHARES_HEIGHT) | {
        "margin": {**SHARES_MARGIN, "t": 60, "autoexpand": False},
        "barmode": "stack",
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "itemclick": False}
        | {"itemdoubleclick": False, "font": {"size": 12, "color": palette.ink}},
        "xaxis": _piece_axis(found, chosen, palette),
        "yaxis": build_plot_axis(palette, range=[0, 1], tickformat=".0%", dtick=0.5, showgrid=False, showline=False),
    }
    return go.Figure({"data": traces, "layout": figure})


def plot_source_effects(found: SourceShares, chosen: int, threshold: float | None, palette: Palette) -> go.Figure:
    """How much more probable each piece is with the source than without, in nats; dashed is the alarm's threshold."""
    place = np.arange(len(found.tokens))
    bars = {
        "type": "bar",
        "x": place,
        "y": found.effect,
        "width": 0.72,
        "marker": {"color": [palette.accent if one >= 0 else negative_colour(palette) for one in found.effect]},
        "customdata": [
            [token_label(token), format_signed(one, plus=True)]
            for token, one in zip(found.tokens, found.effect.tolist(), strict=True)
        ],
        "hovertemplate": say(
            "{piece}: {effect} nats with the source", piece="%{customdata[0]}", effect="%{customdata[1]}"
        )
        + "<extra></extra>",
    }
    line = {"color": palette.soft, "width": 1, "dash": "dash"}
    lines = [] if threshold is None else [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "line": line}]
    figure = build_titled_layout(
        palette, say("log p with the source less log p without, nats"), SOURCE_EFFECT_HEIGHT
    ) | {
        "margin": {**SHARES_MARGIN, "autoexpand": False},
        "xaxis": _piece_axis(found, chosen, palette),
        "yaxis": build_plot_axis(
            palette, showgrid=False, showline=False, zeroline=True, zerolinecolor=palette.soft, nticks=4
        ),
        "shapes": [one | {"y0": threshold, "y1": threshold} for one in lines],
    }
    return go.Figure({"data": [bars], "layout": figure})


def _piece_axis(found: SourceShares, chosen: int, palette: Palette) -> dict:
    """The axis of the pieces, the chosen one bold."""
    return build_plot_axis(
        palette, showgrid=False, showline=False, tickangle=-45, range=[-0.6, len(found.tokens) - 0.4]
    ) | token_ticks(found.tokens, chosen)
