"""Figures of the page Positions: effects in a sentence, errors of the table's forms, geometry, and waves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from .curves import Axis, Curves, Mark, Note, linear_axis, log_axis
from .figure_style import (
    Look,
    Palette,
    blend_colours,
    build_plot_axis,
    build_titled_layout,
    format_number,
    label_margin,
    say,
    text_annotation,
    to_say,
    token_labels,
)
from .heatmap import (
    MASKED_HOVER,
    RowLabel,
    diverging_colours,
    hatch_lines,
    head_title,
    negative_colour,
    plotly_colorscale,
)

if TYPE_CHECKING:
    from attenscope.positions.analysis import DistanceProfile, HeadScore
    from attenscope.positions.table import EmbeddingParts, FormError
    from attenscope.trace import AttentionMap

# Effects of positions in a sentence: embedding lengths, heads before and after, probability kept, positional heads.


EFFECTS_HEIGHT = 470
HEAD_MESSAGES = {
    "encoder": to_say("encoder · layer {layer}, head {head}"),
    "decoder": to_say("decoder · layer {layer}, head {head}"),
    "cross": to_say("cross · layer {layer}, head {head}"),
}
LONGEST_WITH_NAMES = 40


def plot_embedding_lengths(parts: EmbeddingParts, chosen: int, palette: Palette) -> go.Figure:
    """Length of each piece's embedding, as it is and times the scale, beside that of its positional encoding."""
    place = np.arange(len(parts.pieces))
    tokens, encoding = np.linalg.norm(parts.tokens, axis=1), np.linalg.norm(parts.encoding, axis=1)
    names = token_labels(parts.pieces)
    bars = [
        (tokens, say("embedding as it is added"), palette.accent, -0.2),
        (encoding, say("encoding"), negative_colour(palette), 0.2),
    ]
    traces: list[dict] = [
        {
            "type": "bar",
            "x": place + offset,
            "y": values,
            "width": 0.36,
            "marker": {"color": colour},
            "text": names,
            "textposition": "none",
            "hovertemplate": f"%{{text}}<br>{name}: <b>%{{y:.3f}}</b><extra></extra>",
        }
        for values, name, colour, offset in bars
    ]
    if parts.scale != 1:
        line = {"color": palette.ink, "width": 2.5}
        before = {"x": place - 0.2, "y": tokens / parts.scale, "text": names}
        traces.append(
            {"type": "scatter", "mode": "markers", **before}
            | {"marker": {"symbol": "line-ew", "size": min(20, 400 / len(names)), "line": line}}
            | {"hovertemplate": f"%{{text}}<br>{say('embedding before scaling')}: <b>%{{y:.3f}}</b><extra></extra>"}
        )
    named = _choose_named_pieces(len(names), chosen)
    ticks: dict = {
        "tickvals": named,
        "ticktext": [f"<b>{names[at]}</b>" if at == chosen else names[at] for at in named],
    }
    return go.Figure(
        {
            "data": traces,
            "layout": build_titled_layout(
                palette,
                say("How long is what is added to what"),
                330,
                annotations=[_lengths_legend(palette)],
                xaxis=build_plot_axis(palette, showgrid=False, tickangle=-45, **ticks)
                | {"tickfont": {"size": 14, "color": palette.ink}, "range": [-0.7, len(names) - 0.3]},
                yaxis=build_plot_axis(palette, say("Euclidean length"), rangemode="tozero"),
                margin={"l": 64, "r": 16, "t": 44, "b": 84, "autoexpand": False},
            ),
        }
    )


def _choose_named_pieces(count: int, chosen: int) -> list[int]:
    """The pieces whose names have room: the chosen one and every nth, except those right beside the chosen one."""
    step = -(-count // LONGEST_WITH_NAMES)
    return [at for at in range(count) if at == chosen or (at % step == 0 and abs(at - chosen) >= step)]


def _lengths_legend(palette: Palette) -> dict:
    added = ((palette.accent, say("embedding")), (negative_colour(palette), say("encoding")))
    words = " + ".join(f'<b style="color:{colour}">{name}</b>' for colour, name in added)
    return text_annotation(
        words, 1, 1, palette, xref="paper", yref="paper", xanchor="right", yanchor="bottom", yshift=8
    )


def plot_head_in_two_maps(
    maps: Sequence[tuple[str, AttentionMap]], layer: int, head: int, look: Look, rows: RowLabel, *, difference: bool
) -> go.Figure:
    """One head of two maps side by side and, if asked, their difference (second minus first), cell by cell."""
    panels = len(maps) + difference
    share = 1 / panels
    traces: list[dict] = []
    frame: dict = {}
    notes = []
    for at, (title, attention) in enumerate(maps):
        traces += _build_map_traces(
            attention, attention.weights[layer, head], at, look.colorscale, (0, 1), look.palette
        )
        frame |= _build_map_axes(attention, at, share, rows, look.palette)
        notes.append(_build_map_heading(title, at, share, look.palette))
    if difference:
        (_, first), (_, second) = maps
        change = second.weights[layer, head] - first.weights[layer, head]
        stops = plotly_colorscale(diverging_colours(look.palette))
        traces += _build_map_traces(second, change, len(maps), stops, (-1, 1), look.palette)
        frame |= _build_map_axes(second, len(maps), share, rows, look.palette)
        notes.append(_build_map_heading(say("difference"), len(maps), share, look.palette))
    return go.Figure(
        {
            "data": traces,
            "layout": build_titled_layout(
                look.palette,
                head_title(maps[0][1].kind, layer, head),
                EFFECTS_HEIGHT,
                annotations=notes,
                margin={"l": 96, "r": 8, "t": 112, "b": 8, "autoexpand": False},
                **frame,
            ),
        }
    )


def _build_map_traces(
    attention: AttentionMap,
    weights: np.ndarray,
    at: int,
    stops: list[tuple[float, str]],
    limits: tuple[int, int],
    palette: Palette,
) -> list[dict]:
    axes = {"xaxis": f"x{at + 1}", "yaxis": f"y{at + 1}"}
    cells = np.where(attention.mask, weights, np.nan).astype(np.float32)
    made: list[dict] = []
    if not attention.mask.all():
        x, y = hatch_lines(attention.mask)
        fill = [(0, "rgba(0,0,0,0)"), (1, palette.masked)]
        blocked = (~attention.mask).astype(np.uint8)
        made = [
            {"type": "heatmap", "z": blocked, "zmin": 0, "zmax": 1, "colorscale": fill, "showscale": False, **axes}
            | {"hovertemplate": MASKED_HOVER.format(say("masked: may not attend"))},
            {"type": "scatter", "x": x, "y": y, "mode": "lines", "hoverinfo": "skip", **axes}
            | {"line": {"color": palette.hatch, "width": 1}},
        ]
    shown = {"z": cells, "zmin": limits[0], "zmax": limits[1], "colorscale": stops, "showscale": False}
    return [
        *made,
        {"type": "heatmap", **shown, **axes, "hoverongaps": False}
        | {"hovertemplate": "%{y} → %{x}<br><b>%{z:.3f}</b><extra></extra>"},
    ]


def _build_map_axes(attention: AttentionMap, at: int, share: float, rows: RowLabel, palette: Palette) -> dict:
    start, end = at * share, (at + 1) * share - 0.02
    named = max(len(attention.key_tokens), len(attention.query_tokens)) <= LONGEST_WITH_NAMES
    quiet = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
    columns, lines = token_labels(attention.key_tokens), token_labels(attention.rows(rows))
    size = float(np.clip(260 / max(len(columns), 1), 8, 13))
    font = {"size": size, "color": palette.ink}
    suffix = at + 1
    return {
        f"xaxis{suffix}": quiet
        | {"side": "top", "tickangle": -60, "showticklabels": named, "tickfont": font, "domain": [start, end]}
        | {"tickvals": list(range(len(columns))), "ticktext": columns, "range": [-0.5, len(columns) - 0.5]}
        | {"anchor": f"y{suffix}"},
        f"yaxis{suffix}": quiet
        | {"tickvals": list(range(len(lines))), "ticktext": lines, "range": [len(lines) - 0.5, -0.5]}
        | {"showticklabels": named and at == 0, "tickfont": font, "anchor": f"x{suffix}"},
    }


def _build_map_heading(text: str, at: int, share: float, palette: Palette) -> dict:
    place = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "xanchor": "left", "yshift": 66}
    return text_annotation(text, at * share, 1, palette, **place) | {"font": {"size": 15, "color": palette.ink}}


def plot_original_translation_probability(
    amounts: Sequence[float], kept: np.ndarray, chosen: float, title: str, palette: Palette
) -> go.Figure:
    """Probability that a piece of the untouched translation keeps, over the size of the experiment.

    `kept` are mean log-probabilities; their exponentials are drawn.
    """
    place = np.arange(len(amounts))
    names = [format_number(amount, "g") for amount in amounts]
    colours = [palette.accent if amount == chosen else palette.soft for amount in amounts]
    trace = {
        "type": "scatter",
        "x": place,
        "y": np.exp(kept),
        "mode": "lines+markers",
        "line": {"color": palette.soft, "width": 2},
        "marker": {"size": [14 if amount == chosen else 8 for amount in amounts], "color": colours},
        "text": names,
        "hovertemplate": "%{text}<br><b>%{y:.1%}</b><extra></extra>",
    }
    return go.Figure(
        {
            "data": [trace],
            "layout": build_titled_layout(
                palette,
                title,
                210,
                xaxis=build_plot_axis(palette, showgrid=False, tickvals=place, ticktext=names),
                yaxis=build_plot_axis(palette, tickformat=".0%", range=[0, 1.02], nticks=4),
                margin={"l": 52, "r": 12, "t": 40, "b": 32, "autoexpand": False},
            ),
        }
    )


def plot_positional_head_ranking(
    scores: Sequence[HeadScore], chosen: tuple[str, int, int], palette: Palette
) -> go.Figure:
    """Heads as bars, the first of `scores` on top: what stays at its place, and what would by chance."""
    place = np.arange(len(scores))
    names = [say(HEAD_MESSAGES[one.kind], layer=one.layer + 1, head=one.head + 1) for one in scores]
    marked = [(one.kind, one.layer, one.head) == chosen for one in scores]
    quiet = blend_colours(palette.background, palette.accent, 5)[2]
    stays = {
        "type": "bar",
        "orientation": "h",
        "x": [one.stays for one in scores],
        "y": place,
        "text": names,
        "textposition": "none",
        "width": 0.7,
        "marker": {"color": [palette.accent if one else quiet for one in marked]},
        "hovertemplate": "%{text}<br>" + say("<b>%{x:.0%}</b> stays at its place") + "<extra></extra>",
    }
    line = {"color": palette.ink, "width": 2.5}
    chance = {
        "type": "scatter",
        "mode": "markers",
        "x": [one.chance for one in scores],
        "y": place,
        "marker": {"symbol": "line-ns", "size": 15, "line": line},
        "hovertemplate": say("%{x:.0%} would stay by chance") + "<extra></extra>",
    }
    ticks = {
        "tickvals": place,
        "ticktext": [f"<b>{name}</b>" if one else name for name, one in zip(names, marked, strict=True)],
    }
    return go.Figure(
        {
            "data": [stays, chance],
            "layout": build_titled_layout(
                palette,
                say("The most positional heads"),
                EFFECTS_HEIGHT,
                xaxis=build_plot_axis(palette, tickformat=".0%", range=[0, 1.02]),
                yaxis={"fixedrange": True, "range": [len(scores) - 0.4, -0.6], "tickfont": {"size": 14}} | ticks,
                margin={"l": label_margin(names, 190), "r": 16, "t": 44, "b": 36, "autoexpand": False},
            ),
        }
    )


# Errors of the forms of the sinusoidal table.


LEAST_EXPONENT = -9.0
"""The power of ten at which the axis begins; a form without error stands there."""


def plot_encoding_form_errors(
    titles: Sequence[str], found: Sequence[FormError], chosen: str, palette: Palette
) -> Curves:
    """The largest error of every form as a dot on a logarithmic axis; `chosen` is a form's name.

    The first marks are the dots, one mark a form.
    """
    dots, stems, notes = [], [], []
    for row, (title, one) in enumerate(zip(titles, found, strict=True)):
        at = max(float(np.log10(one.largest)) if one.largest else LEAST_EXPONENT, LEAST_EXPONENT)
        colour = palette.accent if one.name == chosen else palette.soft
        says, values = say("{form}: largest error {error}", form=title, error="{0:.2e}"), np.array([[one.largest]])
        dots.append(Mark("dots", np.array([(at, -row)]), colour, 6.5, says, values))
        stems.append(Mark("line", np.array([(LEAST_EXPONENT, -row), (at, -row)]), palette.line, 3))
        notes.append(Note(format_number(one.largest, ".1e"), at, -row, colour, "start", shift=14))
        notes.append(
            Note(title, LEAST_EXPONENT, -row, palette.accent if one.name == chosen else palette.ink, "end", shift=-12)
        )
    return Curves(
        say("Largest error against float64"),
        log_axis(LEAST_EXPONENT, 1.6, step=2),
        Axis(0.4 - len(found), 0.6),
        [*dots, *stems],
        palette,
        notes,
        height=356,
        left=label_margin(titles, 176),
    )


# Geometry: similarity by distance, and a shift of positions as a rotation of every pair of dimensions.


CIRCLE_COLUMNS = 4
CIRCLE_DISTANCE_ACROSS, CIRCLE_DISTANCE_DOWN = 3.0, 3.5
"""Distances of two circles' middles, in radii."""
ARC_RADIUS = 0.72
"""Radius of the arc along which a hand has turned, in radii of the circle."""


def plot_position_similarity_by_distance(
    own: DistanceProfile, other: DistanceProfile | None, names: tuple[str, str], title: str, palette: Palette
) -> Curves:
    """Similarity over distance: the mean as a line, lowest and highest as a band; `other` for comparison.

    Every second mark is a line with a point a distance.
    """
    drawn = [(own, names[0], palette.accent)]
    if other is not None:
        drawn.append((other, names[1], negative_colour(palette)))
    marks, notes = [], []
    for curve, name, colour in drawn:
        distance = np.arange(len(curve.mean))
        there, back = (np.stack([distance, edge], -1) for edge in (curve.lowest, curve.highest))
        says = say("{x} apart: {value}", x="{x}", value="{0:.4f}")
        if other is not None:
            says = say("{name}, {x} apart: {value}", name=name, x="{x}", value="{0:.4f}")
        mean = np.stack([distance, curve.mean], -1)
        marks += [
            Mark("line", mean, colour, 2.5, says, curve.mean[:, None]),
            Mark("area", np.concatenate([there, back[::-1]]), colour),
        ]
        if other is not None:
            at = len(curve.mean) // 2
            notes.append(Note(name, at, float(curve.mean[at]), colour, down="bottom"))
    low = min(float(curve.lowest.min()) for curve, _, _ in drawn)
    high = max(float(curve.highest.max()) for curve, _, _ in drawn)
    room = 0.05 * (high - low) or 1.0
    return Curves(
        title,
        linear_axis(0, max(len(own.mean) - 1, 1), say("distance between two positions"), whole=True),
        linear_axis(low - room, high + room, grid=True),
        marks,
        palette,
        notes,
    )


def plot_scores_by_distance(
    distances: np.ndarray, measured: np.ndarray, formula: np.ndarray | None, title: str, palette: Palette
) -> Curves:
    """What distance adds to a score, (N,) each: dots as measured, a line by the formula; NaN where no key is seen."""
    says = say("{name}, {x} apart: {value}", name=say("measured"), x="{x}", value="{0:.4f}")
    marks = [Mark("dots", np.stack([distances, measured], -1), palette.accent, 3.0, says, measured[:, None])]
    legend = [(say("measured"), palette.accent)]
    if formula is not None:
        colour = negative_colour(palette)
        says = say("{name}, {x} apart: {value}", name=say("by the formula"), x="{x}", value="{0:.4f}")
        marks.append(Mark("line", np.stack([distances, formula], -1), colour, 2.0, says, formula[:, None]))
        legend.append((say("by the formula"), colour))
    seen = measured[np.isfinite(measured)]
    low, high = min(0.0, float(seen.min())), max(0.0, float(seen.max()))
    room = 0.05 * (high - low) or 1.0
    return Curves(
        title,
        linear_axis(float(distances.min()), float(distances.max()), say("tokens from key to query"), whole=True),
        linear_axis(low - room, high + room, say("score, less that of its own place"), grid=True),
        marks,
        palette,
        legend=legend,
    )


def plot_position_shift_circles(
    before: np.ndarray, after: np.ndarray, pairs: Sequence[int], lengths: np.ndarray, shift: int, palette: Palette
) -> Curves:
    """Pairs (sine, cosine) of one position and of the shifted one, (N, 2) each, on a circle each.

    The cosine is drawn across and the sine up, so that a later position lies further round, against the clock. The
    marks are, for the shifted position and then for the other, the hands' ends, a dot a pair, and the hands; then arcs.
    """
    ring = np.linspace(0, 2 * np.pi, 73)
    middles = np.array(
        [
            (CIRCLE_DISTANCE_ACROSS * (at % CIRCLE_COLUMNS), -CIRCLE_DISTANCE_DOWN * (at // CIRCLE_COLUMNS))
            for at in range(len(pairs))
        ]
    )
    rings, arcs, notes = [], [], []
    for middle, start, pair in zip(middles, before, pairs, strict=True):
        turn = shift * 2 * np.pi / float(lengths[pair])
        steps = int(min(720, 24 + abs(turn) * 8))
        rings.append(middle + _circle_points(ring))
        arcs.append(middle + ARC_RADIUS * _circle_points(np.arctan2(start[0], start[1]) + np.linspace(0, turn, steps)))
        text = say(
            "pair {pair}\nwavelength {length:,.0f}\nturns by {degrees:,.4g}°",
            pair=pair,
            length=float(lengths[pair]),
            degrees=float(np.degrees(turn)),
        )
        notes.append(Note(text, middle[0], middle[1] - 1.1, palette.soft, down="top"))
    first, last = middles + before[:, ::-1], middles + after[:, ::-1]
    return Curves(
        say("A shift by {shift} turns every pair by its own angle", shift=format_number(shift)),
        Axis(-1.2, CIRCLE_DISTANCE_ACROSS * (min(CIRCLE_COLUMNS, len(pairs)) - 1) + 1.2),
        Axis(-CIRCLE_DISTANCE_DOWN * ((len(pairs) - 1) // CIRCLE_COLUMNS) - 2.2, 1.15),
        [
            Mark("dots", last, palette.accent, 6, say("shifted: sin {0:.4f}, cos {1:.4f}"), after),
            Mark("line", _join_with_gaps(np.stack([middles, last], 1)), palette.accent, 3),
            Mark("dots", first, palette.soft, 6, say("position: sin {0:.4f}, cos {1:.4f}"), before),
            Mark("line", _join_with_gaps(np.stack([middles, first], 1)), palette.soft, 3),
            Mark("line", _join_with_gaps(arcs), palette.soft, 2),
            Mark("line", _join_with_gaps(rings), palette.line, 1.5),
        ],
        palette,
        notes,
        left=0,
        square=True,
    )


def _circle_points(angle: np.ndarray) -> np.ndarray:
    """(N,) -> (N, 2) across and up."""
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def _join_with_gaps(lines: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """Lines (N, 2) each as one, with gaps between them."""
    return np.concatenate([np.vstack([line, (np.nan, np.nan)]) for line in lines])


# Waves of a table of positional encodings, and its wavelengths.


WAVE_AMPLITUDE = 0.42
"""Amplitude of the largest wave, where the middles of two waves lie 1 apart."""
MOST_DOTTED_POSITIONS = 128
"""Positions up to which each is drawn as a dot."""


def plot_encoding_dimension_waves(
    values: np.ndarray, dimensions: Sequence[int], lengths: np.ndarray | None, palette: Palette
) -> Curves:
    """Chosen dimensions of `values` (P, D) over position, one below the other; `lengths` (ceil(D / 2),) wavelengths.

    The waves are the first marks, in the order of `dimensions`.
    """
    colours = blend_colours(palette.accent, palette.full, max(len(dimensions), 2))
    position = np.arange(len(values))
    size = max(float(np.abs(values[:, dimensions]).max()), 1e-9)
    lines, dots, rules, notes = [], [], [], []
    for row, (dimension, colour) in enumerate(zip(dimensions, colours, strict=False)):
        wave = values[:, dimension]
        points = np.stack([position, -row + wave / size * WAVE_AMPLITUDE], -1)
        says = say("dimension {dimension}, position {x}: {value}", dimension=dimension, x="{x}", value="{0:.4f}")
        lines.append(Mark("line", points, colour, 2.2, says, wave[:, None]))
        if len(values) <= MOST_DOTTED_POSITIONS:
            dots.append(Mark("dots", points, colour, 2.2))
        rules.append(Mark("line", np.array([(0, -row), (len(values) - 1, -row)]), palette.line, 1))
        notes.append(Note(_wave_name(dimension, lengths), -0.5, -row, palette.soft, "end", shift=-12))
    return Curves(
        say("Waves: chosen dimensions over position"),
        linear_axis(-0.5, len(values) - 0.5, say("position"), whole=True),
        Axis(-len(dimensions) + 0.45, 0.55),
        [*lines, *rules, *dots],
        palette,
        notes,
        left=label_margin((one.text for one in notes), 164),
    )


def _wave_name(dimension: int, lengths: np.ndarray | None) -> str:
    if lengths is None:
        return say("dimension {dimension}", dimension=dimension)
    length = float(lengths[dimension // 2])
    function = "cos" if dimension % 2 else "sin"
    return say(
        "dimension {dimension} · {function}\nwavelength {length:,.1f}\nfrequency {frequency:.2g}",
        dimension=dimension,
        function=function,
        length=length,
        frequency=1 / length,
    )


def plot_wavelengths(
    lengths: np.ndarray, dimensions: Sequence[int], positions: int, base: float, palette: Palette
) -> Curves:
    """Wavelength of every pair of dimensions (ceil(D / 2),) on a logarithmic axis; those of `dimensions` are marked.

    The second mark is the line, a point a pair.
    """
    pairs, last = np.arange(len(lengths)), max(len(lengths) - 1, 1)
    points = np.stack([pairs, np.log10(lengths)], -1)
    chosen = sorted({dimension // 2 for dimension in dimensions})
    limits = [
        ("2π", 2 * np.pi),
        (f"{format_number(base, 'g')} · 2π", base * 2 * np.pi),
        (say("{positions} positions shown", positions=positions), positions),
    ]
    rules = [Mark("line", np.array([(0, np.log10(y)), (last, np.log10(y))]), palette.line, 1) for _, y in limits]
    return Curves(
        say("Wavelengths: one factor from pair to pair"),
        linear_axis(0, last, say("pair of dimensions i"), whole=True),
        log_axis(0.5, np.log10(base * 2 * np.pi) + 0.35, say("wavelength, positions"), grid=True),
        [
            Mark("dots", points[chosen], palette.accent, 5.5),
            Mark("line", points, palette.soft, says=say("pair {x}: {0:,.1f} positions"), values=lengths[:, None]),
            *rules,
        ],
        palette,
        [Note(text, last, float(np.log10(y)), palette.soft, "end", "bottom") for text, y in limits],
    )
