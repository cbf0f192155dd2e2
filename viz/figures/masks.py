"""Figures of masks: colours, input perturbation, attention beside its intended mask, pipeline, thumbnail."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from .figure_style import (
    DARK,
    Look,
    Palette,
    blend_colours,
    build_plot_axis,
    build_titled_layout,
    format_number,
    say,
    text_annotation,
    to_say,
    token_labels,
)
from .heatmap import diverging_colours, find_true_runs, hatch_lines, plotly_colorscale

# Colours: leaks red, over-blocking blue, agreement quiet. Each is marked by a sign of its own as well.


@dataclass(frozen=True)
class MaskColours:
    """The colours of mask pictures, all as #rrggbb."""

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
_LEAK_COLOURS, _OVER_COLOURS, _NAN_COLOURS = ("#d55e00", "#ff8a5b"), ("#0072b2", "#56b4e9"), ("#e8c34a", "#8a7118")


_ALLOWED_STEPS = (4, 5)
"""Steps of 12 from the paper to a weight of 1, on which what is allowed is told from what is blocked by a projector."""


def mask_colours(palette: Palette) -> MaskColours:
    """The colours of one theme."""
    at = int(palette == DARK)
    tint = blend_colours(palette.background, palette.full, 13)[_ALLOWED_STEPS[at]]
    return MaskColours(
        blocked=palette.masked,
        allowed=tint,
        leak=_LEAK_COLOURS[at],
        over=_OVER_COLOURS[at],
        nan=_NAN_COLOURS[at],
        dim=blend_colours(palette.background, palette.masked, 3)[1],
        hatch=palette.hatch,
        sign=palette.background,
        ink=palette.ink,
        soft=palette.soft,
        accent=palette.accent,
    )


# Input perturbation: how far each output moves under the model's own mask and under another.


PERTURBATION_HEIGHT = 250


def plot_perturbation(
    outputs: Sequence[str], own: np.ndarray, tried: np.ndarray, may: np.ndarray, title: str, palette: Palette
) -> go.Figure:
    """`own` and `tried` (T,) changes from 0 to 1 of the T outputs; `may` (T,) bool, True = may move.

    An output that moves and should not is drawn in the colour of a leak, with a cross above it.
    """
    colours = mask_colours(palette)
    leaks = ~may & (tried > 0)
    places = np.arange(len(outputs))
    bars = [
        _build_output_change_trace(places - 0.2, own, [palette.soft] * len(outputs), say("own mask")),
        _build_output_change_trace(
            places + 0.2, tried, [colours.leak if one else palette.accent for one in leaks], say("this mask")
        ),
    ]
    cross = {"symbol": "x-thin-open", "size": 8, "color": colours.leak, "line": {"width": 2, "color": colours.leak}}
    signs = {"type": "scatter", "mode": "markers", "marker": cross, "hoverinfo": "skip", "name": "leaks"}
    signs |= {"x": (places + 0.2)[leaks], "y": tried[leaks] + 0.06}
    named = {
        "tickvals": places,
        "ticktext": token_labels(outputs),
        "tickangle": -45,
        "range": [-0.6, len(outputs) - 0.4],
    }
    frame = build_titled_layout(
        palette,
        title,
        PERTURBATION_HEIGHT,
        bargap=0.2,
        margin={"l": 52, "r": 8, "t": 40, "b": 84, "autoexpand": False},
        xaxis=build_plot_axis(palette, "", tickmode="array", showgrid=False, **named),
        yaxis=build_plot_axis(palette, say("moved by"), range=[0, 1.12], tickvals=[0, 0.5, 1]),
    )
    return go.Figure({"data": [*bars, signs], "layout": frame})


def _build_output_change_trace(places: np.ndarray, heights: np.ndarray, colours: list[str], name: str) -> dict:
    hover = f"{name}: %{{y:.3g}}<extra></extra>"
    return {"type": "bar", "x": places, "y": heights, "width": 0.36, "name": name, "hovertemplate": hover} | {
        "marker": {"color": colours, "line": {"width": 0}}
    }


# Attention beside its intended mask: leaks, missing weights, NaN, row sums.


PAIR_HEIGHT, PAIR_GAP, WIDE_PAIR_GAP = 420, 0.06, 0.1
"""Pixels, and shares of the width between pictures: the wide one where cells are too narrow to lend sums their room."""
PAIR_LEFT_MARGIN, ROW_SUM_MARGIN = 84, 34
"""Pixels beside the pictures, for names and for sums."""
FEWEST_PAIR_CELLS = 5
MOST_NUMBERED_PAIR_CELLS = 12
"""Longest side of a panel whose cells have room for their weight in figures."""
CELL_KIND_WORDS = {
    "leak": to_say("weight where there should be none"),
    "over": to_say("none where there should be"),
    "nan": to_say("not a number"),
    "blocked": to_say("blocked, as meant"),
}
"""The message of the legend for each kind of cell."""
PAIR_ROW_HEIGHT = 21
"""Height of a row where there are more."""


@dataclass(frozen=True, eq=False)
class MaskPanel:
    """One map."""

    title: str
    weights: np.ndarray
    """(Q, K); NaN where it is no number."""
    meant: np.ndarray
    """(Q, K) bool, True = should have weight."""
    sums: bool = True
    """Whether each row's sum stands beside it."""


@dataclass(frozen=True, eq=False)
class CellKinds:
    """What each cell of a panel is, (Q, K) bool each; a cell is exactly one of them."""

    allowed: np.ndarray
    blocked: np.ndarray
    leak: np.ndarray
    over: np.ndarray
    nan: np.ndarray


def classify_cells(panel: MaskPanel) -> CellKinds:
    nan = np.isnan(panel.weights)
    lit = ~nan & (panel.weights != 0)
    meant = panel.meant
    return CellKinds(meant & lit, ~meant & ~lit & ~nan, ~meant & lit, meant & ~lit & ~nan, nan)


def plot_mask_panels(
    panels: Sequence[MaskPanel],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    look: Look,
    words: Mapping[str, str] = CELL_KIND_WORDS,
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
    gap = PAIR_GAP if len(columns) <= MOST_NUMBERED_PAIR_CELLS else WIDE_PAIR_GAP
    width = (1 - gap * (len(panels) - 1)) / len(panels)
    for at, panel in enumerate(panels):
        start = at * (width + gap)
        kinds = classify_cells(panel)
        axes = {"xaxis": f"x{at + 1}", "yaxis": f"y{at + 1}"}
        traces += [one | axes for one in _panel_traces(panel, kinds, colours, look)]
        frame |= _panel_axes(rows, columns, at, (start, start + width), look.palette)
        lines += _build_pin_and_divider_lines(pinned, divided, len(rows), axes, look.palette)
        notes.append(_panel_title(f"<b>{panel.title}</b>", start, look.palette))
    notes += _build_cell_kind_legend([classify_cells(panel) for panel in panels], words, colours, look.palette)
    margin: dict[str, Any] = {"l": PAIR_LEFT_MARGIN, "r": 8, "t": 118, "b": 34, "autoexpand": False}
    if len(columns) > MOST_NUMBERED_PAIR_CELLS and panels[-1].sums:
        margin["r"] = ROW_SUM_MARGIN
    height = max(PAIR_HEIGHT, margin["t"] + margin["b"] + PAIR_ROW_HEIGHT * len(rows))
    made = build_titled_layout(look.palette, title, height, annotations=notes, shapes=lines, margin=margin, **frame)
    return go.Figure({"data": traces, "layout": made})


def _panel_traces(panel: MaskPanel, kinds: CellKinds, colours: MaskColours, look: Look) -> list[dict]:
    weights = panel.weights.astype(np.float64)
    empty = blend_colours(look.palette.background, colours.over, 3)[1]
    made = [
        _build_cell_fill_trace(kinds.blocked, colours.blocked, say("blocked, as it should be")),
        _hatch_trace(kinds.blocked, colours),
        _build_cell_fill_trace(kinds.over, empty, say("<b>no weight</b>, and there should be")),
        _build_symbol_trace(kinds.over, "circle-open", colours.over),
        _build_cell_fill_trace(kinds.nan, colours.nan, say("<b>NaN</b>: not a number")),
        _weight_trace(kinds.allowed, weights, look.colorscale, "%{z:.3g}"),
    ]
    faint = kinds.leak & ~(weights >= 0.005)  # Their number would be 0.00: a cross stands there alone.
    open_cell = say("<b>{weight}</b>, should be blocked", weight="%{z:.3g}")
    leak = _weight_trace(kinds.leak, weights, _leak_colorscale(colours, look.palette), open_cell)
    small = max(weights.shape) <= MOST_NUMBERED_PAIR_CELLS
    if small:
        leak |= {
            "text": np.where(kinds.leak & ~faint, np.vectorize(_format_two_decimals, [object])(weights), "").tolist(),
            "texttemplate": "%{text}",
        }
    made += [leak, _build_symbol_trace(faint, "x-thin-open", colours.leak)]
    if small:
        made.append(_word_trace(kinds.nan, "NaN", look.palette.ink))
    return [*made, _row_sum_trace(weights, look.palette)] if panel.sums else made


def _format_two_decimals(value: float) -> str:
    return format_number(value, ".2f")


def _leak_colorscale(colours: MaskColours, palette: Palette) -> list[tuple[float, str]]:
    """From a visible tint, however small the leak, to full colour, by the square root."""
    stops = blend_colours(palette.background, colours.leak, 9)[3:]
    return [(float(at**2), colour) for at, colour in zip(np.linspace(0, 1, len(stops)), stops, strict=True)]


def _build_cell_fill_trace(where: np.ndarray, colour: str, hover: str) -> dict:
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


def _weight_trace(where: np.ndarray, weights: np.ndarray, scale: list[tuple[float, str]], hover: str) -> dict:
    shown: dict = _build_cell_fill_trace(where, "", hover) | {"z": np.where(where, weights, np.nan).astype(np.float32)}
    numbers = (
        {"texttemplate": "%{z:.2f}", "textfont": {"size": 12}} if max(weights.shape) <= MOST_NUMBERED_PAIR_CELLS else {}
    )
    return shown | {"colorscale": scale, **numbers}


def _hatch_trace(where: np.ndarray, colours: MaskColours) -> dict:
    x, y = hatch_lines(~where)
    return {"type": "scatter", "x": x, "y": y, "mode": "lines", "hoverinfo": "skip"} | {
        "line": {"color": colours.hatch, "width": 1}
    }


def _build_symbol_trace(where: np.ndarray, symbol: str, colour: str) -> dict:
    y, x = np.nonzero(where)
    marker = {"symbol": symbol, "size": 9, "color": colour, "line": {"width": 2, "color": colour}}
    return {"type": "scatter", "x": x, "y": y, "mode": "markers", "marker": marker, "hoverinfo": "skip"}


def _word_trace(where: np.ndarray, word: str, colour: str) -> dict:
    y, x = np.nonzero(where)
    text = {"text": [word] * len(x), "textfont": {"size": 11, "color": colour}}
    return {"type": "scatter", "x": x, "y": y, "mode": "text", "hoverinfo": "skip", **text}


def _row_sum_trace(weights: np.ndarray, palette: Palette) -> dict:
    rows, columns = weights.shape
    total = weights.sum(-1)
    texts = ["NaN" if np.isnan(one) else _format_two_decimals(one) for one in total]
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


def _panel_axes(
    rows: Sequence[str], columns: Sequence[str], at: int, domain: tuple[float, float], palette: Palette
) -> dict[str, dict]:
    quiet = {
        "tickmode": "array",
        "tickfont": {"size": 13 if len(columns) <= MOST_NUMBERED_PAIR_CELLS else 11, "color": palette.ink},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "ticks": "",
        "ticklabeloverflow": "allow",
    }
    across = {"tickvals": list(range(len(columns))), "ticktext": token_labels(columns), "side": "top", "tickangle": -45}
    down = {"tickvals": list(range(len(rows))), "ticktext": token_labels(rows), "showticklabels": at == 0}
    most = max(len(rows), FEWEST_PAIR_CELLS)
    return {
        f"xaxis{at + 1}": quiet
        | across
        | {"domain": list(domain), "range": [-0.5, max(len(columns), FEWEST_PAIR_CELLS) + 0.4], "anchor": f"y{at + 1}"},
        f"yaxis{at + 1}": quiet | down | {"range": [most - 0.5, -0.5], "anchor": f"x{at + 1}"},
    }


def _build_pin_and_divider_lines(
    pinned: int | None, divided: int | None, rows: int, axes: dict[str, str], palette: Palette
) -> list[dict]:
    across, down = (axes[name].removesuffix("1") for name in ("xaxis", "yaxis"))
    place = {"xref": across, "yref": down, "y0": -0.5, "y1": rows - 0.5}
    found = []
    if divided is not None:
        found.append(place | {"type": "line", "x0": divided - 0.5, "x1": divided - 0.5, "line": {"color": palette.ink}})
    if pinned is not None:
        edges = {"type": "rect", "x0": pinned - 0.5, "x1": pinned + 0.5}
        found.append(place | edges | {"line": {"color": palette.accent, "width": 2}})
    return found


def _panel_title(text: str, x: float, palette: Palette) -> dict:
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 62}
    return text_annotation(text, x, 1, palette, **place) | {"font": {"size": 15, "color": palette.ink}}


def _build_cell_kind_legend(
    found: Sequence[CellKinds], words: Mapping[str, str], colours: MaskColours, palette: Palette
) -> list[dict]:
    """The legend of the kinds of cells that occur, in one line under the pictures."""
    known = {"leak": colours.leak, "over": colours.over, "nan": colours.nan, "blocked": colours.hatch}
    told = [
        f'<span style="color:{colour}">■</span> {say(words[kind])}'
        for kind, colour in known.items()
        if any(getattr(one, kind).any() for one in found)
    ]
    place = {
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "top",
        "yshift": -8,
        "xshift": 8 - PAIR_LEFT_MARGIN,
    }
    return [text_annotation("   ".join(told), 0, 0, palette, **place)] if told else []


# Pipeline: one attention call from left to right, as scores, masked scores, weights, weights after dropout.


MOST_NUMBERED_STAGE_CELLS = 8
"""Longest side of a picture whose cells have room for their numbers."""
PIPELINE_HEIGHT, PIPELINE_GAP = 310, 0.035


@dataclass(frozen=True, eq=False)
class PipelineStage:
    """One step: its values (Q, K), and whether they are weights (0 to 1) or scores of both signs."""

    title: str
    values: np.ndarray
    weights: bool
    blocked: np.ndarray | None = None
    """(Q, K) bool: cells that a mask blocks; of scores only."""


def plot_mask_pipeline(stages: Sequence[PipelineStage], title: str, look: Look) -> go.Figure:
    """The steps side by side. Blocked cells (-inf, or a large negative fill) are grey, hatched or with the fill."""
    palette = look.palette
    figure: dict = {
        "data": [],
        "layout": build_titled_layout(palette, title, PIPELINE_HEIGHT, margin={"l": 34, "r": 8, "t": 62, "b": 8}),
    }
    figure["layout"]["annotations"] = []
    limit = _largest_score(stages)
    width = (1 - PIPELINE_GAP * (len(stages) - 1)) / len(stages)
    for at, stage in enumerate(stages):
        _add_pipeline_stage(
            figure, stage, at, (at * (width + PIPELINE_GAP), at * (width + PIPELINE_GAP) + width), look, limit
        )
    return go.Figure(figure)


def _largest_score(stages: Sequence[PipelineStage]) -> float:
    """The largest score in size, of those that are no fill."""
    scores = [stage.values[~_blocked_cells(stage)] for stage in stages if not stage.weights]
    plain = np.concatenate([np.abs(part[np.isfinite(part)].astype(np.float64)) for part in scores] or [np.zeros(1)])
    return float(plain.max()) if plain.size and plain.max() > 0 else 1.0


def _blocked_cells(stage: PipelineStage) -> np.ndarray:
    return np.zeros(stage.values.shape, bool) if stage.blocked is None else stage.blocked


def _add_pipeline_stage(
    figure: dict, stage: PipelineStage, at: int, domain: tuple[float, float], look: Look, limit: float
) -> None:
    palette, number = look.palette, "" if at == 0 else str(at + 1)
    values = stage.values.astype(np.float64)
    rows, columns = values.shape
    off = _blocked_cells(stage)
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    figure["layout"][f"xaxis{number}"] = _stage_axis(palette, columns) | {"domain": list(domain), "side": "top"}
    figure["layout"][f"yaxis{number}"] = _stage_axis(palette, rows) | {
        "anchor": f"x{number}",
        "range": [rows - 0.5, -0.5],
        "showticklabels": at == 0,
    }
    figure["data"] += [
        _stage_trace(values, off, stage, look, limit) | axes,
        *(_blocked_cell_traces(off, values, palette, axes)),
    ]
    heading = text_annotation(
        f"<b>{stage.title}</b>", domain[0], 1, palette, xref="paper", yref="paper", yshift=34, xanchor="left"
    )
    figure["layout"]["annotations"].append(heading | {"font": {"size": 14, "color": palette.ink}})


def _stage_axis(palette: Palette, cells: int) -> dict:
    step = max(1, cells // 8)
    places = list(range(0, cells, step))
    names = [str(place + 1) for place in places]
    return build_plot_axis(
        palette, showgrid=False, ticks="", tickvals=places, ticktext=names, range=[-0.5, cells - 0.5]
    )


def _stage_trace(values: np.ndarray, off: np.ndarray, stage: PipelineStage, look: Look, limit: float) -> dict:
    scale = look.colorscale if stage.weights else plotly_colorscale(diverging_colours(look.palette))
    shown = np.where(off, np.nan, values)
    cell = say("query {query} → key {key}", query="%{y}", key="%{x}")
    return {
        "type": "heatmap",
        "name": stage.title,
        "z": shown.astype(np.float32),
        "zmin": 0 if stage.weights else -limit,
        "zmax": 1 if stage.weights else limit,
        "colorscale": scale,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "hovertemplate": cell + "<br><b>%{z:.4f}</b><extra></extra>",
        **(
            {"texttemplate": "%{z:.2f}", "textfont": {"size": 11}}
            if max(values.shape) <= MOST_NUMBERED_STAGE_CELLS
            else {}
        ),
    }


def _blocked_cell_traces(off: np.ndarray, values: np.ndarray, palette: Palette, axes: dict) -> list[dict]:
    """Grey under blocked cells, with the fill in figures where there is room, else hatched; NaN spelled out."""
    found: list[dict] = []
    if off.any():
        fill = {"type": "heatmap", "z": off.astype(np.uint8), "zmin": 0, "zmax": 1, "showscale": False}
        shades = {"colorscale": [(0, "rgba(0,0,0,0)"), (1, palette.masked)], "hoverinfo": "skip", "xgap": 1, "ygap": 1}
        found.append(fill | shades | axes)
        if max(off.shape) > MOST_NUMBERED_STAGE_CELLS:
            x, y = hatch_lines(~off)
            line = {"mode": "lines", "line": {"color": palette.hatch, "width": 1}, "hoverinfo": "skip"}
            found.append({"type": "scatter", "x": x, "y": y} | line | axes)
        else:
            rows, columns = np.nonzero(off)
            texts = [_format_mask_fill(values[row, column]) for row, column in zip(rows, columns, strict=True)]
            words = {"mode": "text", "text": texts, "textfont": {"size": 11, "color": palette.soft}}
            found.append({"type": "scatter", "x": columns, "y": rows, "hoverinfo": "skip"} | words | axes)
    rows, columns = np.nonzero(np.isnan(values))
    if rows.size:
        crosses = {"mode": "text", "text": ["NaN"] * rows.size, "textfont": {"size": 11, "color": palette.ink}}
        found.append({"type": "scatter", "x": columns, "y": rows, "hoverinfo": "skip"} | crosses | axes)
    return found


def _format_mask_fill(value: float) -> str:
    return "−∞" if np.isneginf(value) else f"{value:.0e}".replace("-", "−").replace("e+0", "e").replace("e+", "e")


# Thumbnail: a mask as a small SVG image without axes, open cells on a ground of blocked ones.


THUMBNAIL_SIDE = 120
"""Pixels of the longer side."""


def make_mask_thumbnail(mask: np.ndarray, colours: MaskColours, alt: str) -> str:
    """Return an HTML image of a mask (Q, K) bool, True = may attend: queries down, keys across."""
    queries, keys = mask.shape
    size = THUMBNAIL_SIDE / max(queries, keys)
    runs = [
        f'<rect x="{start}" y="{row}" width="{end - start}" height="1"/>'
        for row in range(queries)
        for start, end in find_true_runs(mask[row])
    ]
    width, height = round(keys * size), round(queries * size)
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {keys} {queries}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" shape-rendering="crispEdges"><rect width="{keys}" height="{queries}" '
        f'fill="{colours.blocked}"/><g fill="{colours.accent}" fill-opacity="0.75">{"".join(runs)}</g></svg>'
    )
    data = base64.b64encode(drawn.encode()).decode()
    return f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}" width="{width}" height="{height}">'
