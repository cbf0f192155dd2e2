"""A trace as a picture in HTML, for where no script runs: all heads of its maps, and one head with its tokens.

The picture is an SVG in an <img>, which a page can show but cannot be harmed by; tokens stand in it as escaped text.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Callable

import numpy as np

from model.language.say import say
from model.trace import AttentionMap, AttentionTrace, Head

from ..figures.heatmap import head_title
from ..figures.labels import KIND_NAMES, LONGEST_WITH_LABELS, label_text
from ..figures.palette import Look
from ..figures.pooled import pooled

TILE, GAP, MARGIN = 56, 6, 34
"""Pixels of a head's tile, between tiles, and beside them for the numbers of layers."""
CELL, LABELS = 22, 112
"""Pixels of a cell of one head, and beside the cells for the tokens."""
WIDEST = 900
FONT = "font-family='system-ui, sans-serif'"


def static_html(trace: AttentionTrace, head: Head | None = None, look: Look | None = None) -> str:
    """Return the overviews of all maps, or of one map beside one of its heads, with what they are of in a line."""
    look = look or Look()
    if head is None:
        pictures = [_picture(_overview(one, look)) for one in trace.maps.values()]
    else:
        kind, layer, number = head
        attention = trace.maps[kind]
        pictures = [_picture(_overview(attention, look)), _picture(_one_head(attention, layer, number, look))]
    texts = " → ".join(html.escape(text) for text in (trace.source, trace.target) if text)
    name = html.escape(trace.model or say("an unnamed model"))
    said = say("Attention of {model}: {texts}", model=name, texts=texts) if texts else ""
    said = said or say("Attention of {model}", model=name)
    return f"<div>{''.join(pictures)}<p>{said}</p></div>"


Drawing = tuple[str, int, int, str]
"""The elements of an SVG, its width and height, and what it shows."""


def _picture(drawing: Drawing) -> str:
    body, width, height, alt = drawing
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' {FONT}>{body}</svg>"
    data = base64.b64encode(svg.encode()).decode()
    shown = min(width, WIDEST)
    return f'<img alt="{html.escape(alt)}" width="{shown}" src="data:image/svg+xml;base64,{data}">'


def _overview(attention: AttentionMap, look: Look) -> Drawing:
    weights, mask = pooled(attention.weights, attention.masks)
    layers, heads = weights.shape[:2]
    name = say(KIND_NAMES[attention.kind])
    drawn = [_words(MARGIN, 16, name, look.palette.ink, 13)]
    for layer in range(layers):
        y = 26 + layer * (TILE + GAP)
        drawn.append(_words(MARGIN - 8, y + TILE / 2 + 4, f"L{layer + 1}", look.palette.soft, 11, "end"))
        for head in range(heads):
            own = mask[layer, head if mask.shape[1] > 1 else 0]
            drawn.append(_tile(weights[layer, head], own, look, MARGIN + head * (TILE + GAP), y, TILE, TILE))
    width, height = MARGIN + heads * (TILE + GAP), 30 + layers * (TILE + GAP)
    alt = say("{kind}: {layers} layers down, {heads} heads across", kind=name, layers=layers, heads=heads)
    return _on_paper(drawn, width, height, look), width, height, alt


def _one_head(attention: AttentionMap, layer: int, head: int, look: Look) -> Drawing:
    queries, keys = attention.rows("predicted"), attention.key_tokens
    size = (
        CELL
        if max(len(queries), len(keys)) <= LONGEST_WITH_LABELS
        else max(1, WIDEST // 2 // max(len(queries), len(keys)))
    )
    weights, mask = attention.weights[layer, head], attention.mask_of(layer, head)
    wide, high, top = size * len(keys), size * len(queries), LABELS + 26
    title = head_title(attention.kind, layer, head)
    drawn = [_words(0, 16, title, look.palette.ink, 13), _tile(weights, mask, look, LABELS, top, wide, high)]
    if size == CELL:
        ink, middle = look.palette.ink, 0.7 * size
        for at, token in enumerate(queries):
            drawn.append(_words(LABELS - 6, top + at * size + middle, label_text(token), ink, 12, "end"))
        for at, token in enumerate(keys):
            name = _words(0, 0, label_text(token), ink, 12)
            drawn.append(f"<g transform='translate({LABELS + at * size + middle:g} {top - 6}) rotate(-45)'>{name}</g>")
    width, height = LABELS + wide + LABELS // 2, top + high + 8
    return _on_paper(drawn, width, height, look), width, height, say("{title}: queries down, keys across", title=title)


def _on_paper(drawn: list[str], width: int, height: int, look: Look) -> str:
    return f"<rect width='{width}' height='{height}' fill='{look.palette.background}'/>" + "".join(drawn)


def _words(x: float, y: float, text: str, colour: str, size: int, anchor: str = "start") -> str:
    place = f"x='{x:g}' y='{y:g}' font-size='{size}' text-anchor='{anchor}'"
    return f"<text {place} fill='{colour}'>{html.escape(text)}</text>"


def _tile(weights: np.ndarray, mask: np.ndarray, look: Look, x: float, y: float, width: int, height: int) -> str:
    """Weights (Q, K) as an image of a pixel each, drawn so large; what may not be attended to is grey."""
    data = base64.b64encode(png(coloured(weights, mask, look))).decode()
    place = f"x='{x:g}' y='{y:g}' width='{width}' height='{height}'"
    cells = f"preserveAspectRatio='none' style='image-rendering:pixelated' href='data:image/png;base64,{data}'"
    return f"<image {place} {cells}/><rect {place} fill='none' stroke='{look.palette.line}'/>"


def coloured(weights: np.ndarray, mask: np.ndarray, look: Look) -> np.ndarray:
    """Return the colours of weights (Q, K) in 0..1 as uint8 (Q, K, 3), as the pages colour them."""
    positions, stops = zip(*look.colorscale, strict=True)
    channels = np.array([_rgb(stop) for stop in stops], dtype=np.float64)
    values = np.nan_to_num(weights.astype(np.float64)).clip(0, 1)
    mixed = np.stack([np.interp(values, positions, channel) for channel in channels.T], axis=-1)
    return np.where(mask[..., None], np.rint(mixed), _rgb(look.palette.masked)).astype(np.uint8)


def _rgb(colour: str) -> tuple[int, ...]:
    """Of #rrggbb or rgb(r, g, b)."""
    if colour.startswith("#"):
        return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return tuple(int(part) for part in colour[4:-1].split(","))


def png(pixels: np.ndarray) -> bytes:
    """Return uint8 pixels (rows, columns, 3) as a PNG file (W3C, Portable Network Graphics, section 5)."""
    rows, columns = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)  # 0: no filter
    chunk: Callable[[bytes, bytes], bytes] = lambda name, data: (  # noqa: E731
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    )
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in parts)
