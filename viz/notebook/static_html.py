"""Draw a trace as a picture in HTML, for places where no script runs: all heads of its maps, and one head with tokens.

The picture is an SVG in an <img>, which a page can show but cannot be harmed by; tokens stand in it as escaped text.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Callable

import numpy as np

from attenscope.language import say
from attenscope.trace import AttentionMap, AttentionTrace, Head
from attenscope.viz.figures.figure_style import KIND_NAMES, LONGEST_WITH_LABELS, Look, shorten_token
from attenscope.viz.figures.heatmap import head_title, pool_weights

TILE_SIZE, TILE_GAP, LAYER_MARGIN = 56, 6, 34
"""Pixels of a head's tile, between tiles, and beside them for the numbers of layers."""
CELL_SIZE, TOKEN_MARGIN = 22, 112
"""Pixels of a cell of one head, and beside the cells for the tokens."""
WIDEST_PICTURE = 900
FONT_ATTRIBUTE = "font-family='system-ui, sans-serif'"


def static_html(trace: AttentionTrace, head: Head | None = None, look: Look | None = None) -> str:
    """Return the overviews of all maps, or one map's overview beside one of its heads, with a caption."""
    look = look or Look()
    if head is None:
        pictures = [_build_image_element(_draw_overview(one, look)) for one in trace.maps.values()]
    else:
        kind, layer, number = head
        attention = trace.maps[kind]
        pictures = [
            _build_image_element(_draw_overview(attention, look)),
            _build_image_element(_draw_head(attention, layer, number, look)),
        ]
    texts = " → ".join(html.escape(text) for text in (trace.source, trace.target) if text)
    name = html.escape(trace.model or say("an unnamed model"))
    said = say("Attention of {model}: {texts}", model=name, texts=texts) if texts else ""
    said = said or say("Attention of {model}", model=name)
    return f"<div>{''.join(pictures)}<p>{said}</p></div>"


SvgDrawing = tuple[str, int, int, str]
"""The elements of an SVG, its width and height, and what it shows."""


def _build_image_element(drawing: SvgDrawing) -> str:
    body, width, height, alt = drawing
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' {FONT_ATTRIBUTE}>{body}</svg>"
    data = base64.b64encode(svg.encode()).decode()
    shown = min(width, WIDEST_PICTURE)
    return f'<img alt="{html.escape(alt)}" width="{shown}" src="data:image/svg+xml;base64,{data}">'


def _draw_overview(attention: AttentionMap, look: Look) -> SvgDrawing:
    weights, mask = pool_weights(attention.weights, attention.masks)
    layers, heads = weights.shape[:2]
    name = say(KIND_NAMES[attention.kind])
    drawn = [_draw_text(LAYER_MARGIN, 16, name, look.palette.ink, 13)]
    for layer in range(layers):
        y = 26 + layer * (TILE_SIZE + TILE_GAP)
        drawn.append(_draw_text(LAYER_MARGIN - 8, y + TILE_SIZE / 2 + 4, f"L{layer + 1}", look.palette.soft, 11, "end"))
        for head in range(heads):
            own = mask[layer, head if mask.shape[1] > 1 else 0]
            drawn.append(
                _draw_tile(
                    weights[layer, head],
                    own,
                    look,
                    LAYER_MARGIN + head * (TILE_SIZE + TILE_GAP),
                    y,
                    TILE_SIZE,
                    TILE_SIZE,
                )
            )
    width, height = LAYER_MARGIN + heads * (TILE_SIZE + TILE_GAP), 30 + layers * (TILE_SIZE + TILE_GAP)
    alt = say("{kind}: {layers} layers down, {heads} heads across", kind=name, layers=layers, heads=heads)
    return _add_background(drawn, width, height, look), width, height, alt


def _draw_head(attention: AttentionMap, layer: int, head: int, look: Look) -> SvgDrawing:
    queries, keys = attention.rows("predicted"), attention.key_tokens
    size = (
        CELL_SIZE
        if max(len(queries), len(keys)) <= LONGEST_WITH_LABELS
        else max(1, WIDEST_PICTURE // 2 // max(len(queries), len(keys)))
    )
    weights, mask = attention.weights[layer, head], attention.mask_of(layer, head)
    wide, high, top = size * len(keys), size * len(queries), TOKEN_MARGIN + 26
    title = head_title(attention.kind, layer, head)
    drawn = [
        _draw_text(0, 16, title, look.palette.ink, 13),
        _draw_tile(weights, mask, look, TOKEN_MARGIN, top, wide, high),
    ]
    if size == CELL_SIZE:
        ink, middle = look.palette.ink, 0.7 * size
        for at, token in enumerate(queries):
            drawn.append(_draw_text(TOKEN_MARGIN - 6, top + at * size + middle, shorten_token(token), ink, 12, "end"))
        for at, token in enumerate(keys):
            name = _draw_text(0, 0, shorten_token(token), ink, 12)
            drawn.append(
                f"<g transform='translate({TOKEN_MARGIN + at * size + middle:g} {top - 6}) rotate(-45)'>{name}</g>"
            )
    width, height = TOKEN_MARGIN + wide + TOKEN_MARGIN // 2, top + high + 8
    return (
        _add_background(drawn, width, height, look),
        width,
        height,
        say("{title}: queries down, keys across", title=title),
    )


def _add_background(drawn: list[str], width: int, height: int, look: Look) -> str:
    return f"<rect width='{width}' height='{height}' fill='{look.palette.background}'/>" + "".join(drawn)


def _draw_text(x: float, y: float, text: str, colour: str, size: int, anchor: str = "start") -> str:
    place = f"x='{x:g}' y='{y:g}' font-size='{size}' text-anchor='{anchor}'"
    return f"<text {place} fill='{colour}'>{html.escape(text)}</text>"


def _draw_tile(weights: np.ndarray, mask: np.ndarray, look: Look, x: float, y: float, width: int, height: int) -> str:
    """Weights (Q, K) as an image of a pixel each, drawn so large; what may not be attended to is grey."""
    data = base64.b64encode(encode_png(colour_weights(weights, mask, look))).decode()
    place = f"x='{x:g}' y='{y:g}' width='{width}' height='{height}'"
    cells = f"preserveAspectRatio='none' style='image-rendering:pixelated' href='data:image/png;base64,{data}'"
    return f"<image {place} {cells}/><rect {place} fill='none' stroke='{look.palette.line}'/>"


def colour_weights(weights: np.ndarray, mask: np.ndarray, look: Look) -> np.ndarray:
    """Return the colours of weights (Q, K) in 0..1 as uint8 (Q, K, 3), as the pages colour them."""
    positions, stops = zip(*look.colorscale, strict=True)
    channels = np.array([_parse_colour(stop) for stop in stops], dtype=np.float64)
    values = np.nan_to_num(weights.astype(np.float64)).clip(0, 1)
    mixed = np.stack([np.interp(values, positions, channel) for channel in channels.T], axis=-1)
    return np.where(mask[..., None], np.rint(mixed), _parse_colour(look.palette.masked)).astype(np.uint8)


def _parse_colour(colour: str) -> tuple[int, ...]:
    """Return the channels of #rrggbb or rgb(r, g, b)."""
    if colour.startswith("#"):
        return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return tuple(int(part) for part in colour[4:-1].split(","))


def encode_png(pixels: np.ndarray) -> bytes:
    """Return uint8 pixels (rows, columns, 3) as a PNG file (W3C, Portable Network Graphics, section 5)."""
    rows, columns = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)  # 0: no filter
    chunk: Callable[[bytes, bytes], bytes] = lambda name, data: (  # noqa: E731
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    )
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in parts)
