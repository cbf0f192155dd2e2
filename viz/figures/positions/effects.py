"""What positions do in a sentence: lengths of embeddings, attention before and after, belief, heads ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from ..diverging import colorscale, diverging, negative
from ..frame import axis, layout, note
from ..heatmap import MASKED_HOVER, Rows, hatch, head_title
from ..labels import labels, room
from ..palette import Look, Palette, blend
from ..speech import number, say, to_say

if TYPE_CHECKING:
    from model.positions.embedding_parts import EmbeddingParts
    from model.positions.head_scores import HeadScore
    from model.trace import AttentionMap

HEIGHT = 470
HEADS = {
    "encoder": to_say("encoder · layer {layer}, head {head}"),
    "decoder": to_say("decoder · layer {layer}, head {head}"),
    "cross": to_say("cross · layer {layer}, head {head}"),
}
LONGEST_WITH_LABELS = 40


def lengths(parts: EmbeddingParts, chosen: int, palette: Palette) -> go.Figure:
    """Length of each piece's embedding, as it is and times the scale, beside that of its positional encoding."""
    place = np.arange(len(parts.pieces))
    tokens, encoding = np.linalg.norm(parts.tokens, axis=1), np.linalg.norm(parts.encoding, axis=1)
    names = labels(parts.pieces)
    bars = [
        (tokens, say("embedding as it is added"), palette.accent, -0.2),
        (encoding, say("encoding"), negative(palette), 0.2),
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
    named = _named(len(names), chosen)
    ticks: dict = {
        "tickvals": named,
        "ticktext": [f"<b>{names[at]}</b>" if at == chosen else names[at] for at in named],
    }
    return go.Figure(
        {
            "data": traces,
            "layout": layout(
                palette,
                say("How long is what is added to what"),
                330,
                annotations=[_legend(palette)],
                xaxis=axis(palette, showgrid=False, tickangle=-45, **ticks)
                | {"tickfont": {"size": 14, "color": palette.ink}, "range": [-0.7, len(names) - 0.3]},
                yaxis=axis(palette, say("Euclidean length"), rangemode="tozero"),
                margin={"l": 64, "r": 16, "t": 44, "b": 84, "autoexpand": False},
            ),
        }
    )


def _named(count: int, chosen: int) -> list[int]:
    """The pieces whose names have room: every nth, but for those right beside the chosen one, which is always named."""
    step = -(-count // LONGEST_WITH_LABELS)
    return [at for at in range(count) if at == chosen or (at % step == 0 and abs(at - chosen) >= step)]


def _legend(palette: Palette) -> dict:
    added = ((palette.accent, say("embedding")), (negative(palette), say("encoding")))
    words = " + ".join(f'<b style="color:{colour}">{name}</b>' for colour, name in added)
    return note(words, 1, 1, palette, xref="paper", yref="paper", xanchor="right", yanchor="bottom", yshift=8)


def compared(
    maps: Sequence[tuple[str, AttentionMap]], layer: int, head: int, look: Look, rows: Rows, *, difference: bool
) -> go.Figure:
    """One head of two maps side by side and, if asked, their difference (second minus first), cell by cell."""
    panels = len(maps) + difference
    share = 1 / panels
    traces: list[dict] = []
    frame: dict = {}
    notes = []
    for at, (title, attention) in enumerate(maps):
        traces += _panel(attention, attention.weights[layer, head], at, look.colorscale, (0, 1), look.palette)
        frame |= _axes(attention, at, share, rows, look.palette)
        notes.append(_heading(title, at, share, look.palette))
    if difference:
        (_, first), (_, second) = maps
        change = second.weights[layer, head] - first.weights[layer, head]
        stops = colorscale(diverging(look.palette))
        traces += _panel(second, change, len(maps), stops, (-1, 1), look.palette)
        frame |= _axes(second, len(maps), share, rows, look.palette)
        notes.append(_heading(say("difference"), len(maps), share, look.palette))
    return go.Figure(
        {
            "data": traces,
            "layout": layout(
                look.palette,
                head_title(maps[0][1].kind, layer, head),
                HEIGHT,
                annotations=notes,
                margin={"l": 96, "r": 8, "t": 112, "b": 8, "autoexpand": False},
                **frame,
            ),
        }
    )


def _panel(
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
        x, y = hatch(attention.mask)
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


def _axes(attention: AttentionMap, at: int, share: float, rows: Rows, palette: Palette) -> dict:
    start, end = at * share, (at + 1) * share - 0.02
    named = max(len(attention.key_tokens), len(attention.query_tokens)) <= LONGEST_WITH_LABELS
    quiet = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
    columns, lines = labels(attention.key_tokens), labels(attention.rows(rows))
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


def _heading(text: str, at: int, share: float, palette: Palette) -> dict:
    place = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "xanchor": "left", "yshift": 66}
    return note(text, at * share, 1, palette, **place) | {"font": {"size": 15, "color": palette.ink}}


def belief(amounts: Sequence[float], kept: np.ndarray, chosen: float, title: str, palette: Palette) -> go.Figure:
    """Mean log-probability a piece of the untouched translation keeps, over the size of the experiment."""
    place = np.arange(len(amounts))
    names = [number(amount, "g") for amount in amounts]
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
            "layout": layout(
                palette,
                title,
                210,
                xaxis=axis(palette, showgrid=False, tickvals=place, ticktext=names),
                yaxis=axis(palette, tickformat=".0%", range=[0, 1.02], nticks=4),
                margin={"l": 52, "r": 12, "t": 40, "b": 32, "autoexpand": False},
            ),
        }
    )


def ranking(scores: Sequence[HeadScore], chosen: tuple[str, int, int], palette: Palette) -> go.Figure:
    """Heads as bars, the first of `scores` on top: what stays at its place, and what would by chance."""
    place = np.arange(len(scores))
    names = [say(HEADS[one.kind], layer=one.layer + 1, head=one.head + 1) for one in scores]
    marked = [(one.kind, one.layer, one.head) == chosen for one in scores]
    quiet = blend(palette.background, palette.accent, 5)[2]
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
            "layout": layout(
                palette,
                say("The most positional heads"),
                HEIGHT,
                xaxis=axis(palette, tickformat=".0%", range=[0, 1.02]),
                yaxis={"fixedrange": True, "range": [len(scores) - 0.4, -0.6], "tickfont": {"size": 14}} | ticks,
                margin={"l": room(names, 190), "r": 16, "t": 44, "b": 36, "autoexpand": False},
            ),
        }
    )
