"""A mask as a small picture without axes: an image of SVG, open cells on a ground of blocked ones."""

from __future__ import annotations

import base64
import html

import numpy as np

from .colours import MaskColours

SIDE = 120
"""Pixels of the longer side."""


def thumbnail(mask: np.ndarray, colours: MaskColours, alt: str) -> str:
    """Return an HTML image of a mask (Q, K) bool, True = may attend: queries down, keys across."""
    queries, keys = mask.shape
    size = SIDE / max(queries, keys)
    runs = [
        f'<rect x="{start}" y="{row}" width="{end - start}" height="1"/>'
        for row in range(queries)
        for start, end in _runs(mask[row])
    ]
    width, height = round(keys * size), round(queries * size)
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {keys} {queries}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" shape-rendering="crispEdges"><rect width="{keys}" height="{queries}" '
        f'fill="{colours.blocked}"/><g fill="{colours.accent}" fill-opacity="0.75">{"".join(runs)}</g></svg>'
    )
    data = base64.b64encode(drawn.encode()).decode()
    return f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}" width="{width}" height="{height}">'


def _runs(row: np.ndarray) -> list[tuple[int, int]]:
    """First and one past the last of each row of open cells."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]
