"""What one query of a long text attends to: a curve over all keys, and the passages around the strongest of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .curves import Axis, Curves, Mark, linear_axis
from .figure_style import Palette, quote_token, readable_token, say
from .heatmap import head_title

ROW_HEIGHT = 300
STRONGEST_KEYS = 5
PASSAGE_TOKENS = 8
"""Tokens of a passage on either side of the one that it is quoted for."""


def plot_attention_row(
    weights: np.ndarray, tokens: Sequence[str], query: int, layer: int, head: int, palette: Palette
) -> Curves:
    """The weights (K,) of one query of a decoder's own attention, NaN where it may not attend, as a line over keys."""
    positions = np.arange(1, len(weights) + 1)
    title = say(
        "{head}: what token {position:,}, {token}, attends to",
        head=head_title("decoder", layer, head),
        position=query + 1,
        token=quote_token(tokens[query]),
    )
    names = [f"{position:,} {readable_token(token)}" for position, token in zip(positions, tokens, strict=True)]
    top = max(float(np.nanmax(weights)), 1e-6)
    across: Axis = linear_axis(1, len(weights), say("key, by its position"), whole=True)
    up = linear_axis(0, top * 1.05, say("weight"), most=4, grid=True)
    line = Mark(
        "line", np.column_stack([positions, weights]), palette.accent, 1.5, "{name}: {0:.4f}", weights[:, None], names
    )
    return Curves(title, across, up, [line], palette, height=ROW_HEIGHT)


def find_strongest_keys(weights: np.ndarray) -> list[int]:
    """Return the keys with the largest weights (K,), the largest first; none without weight, as NaN is."""
    order = np.argsort(-weights, kind="stable")[:STRONGEST_KEYS]
    return [int(key) for key in order if weights[key] > 0]


def split_passage(tokens: Sequence[str], at: int) -> tuple[str, str, str]:
    """Return the text before a token, the token, and the text after it, with … where more stands beside them."""
    first, last = max(0, at - PASSAGE_TOKENS), at + 1 + PASSAGE_TOKENS
    before, after = "".join(tokens[first:at]), "".join(tokens[at + 1 : last])
    return ("…" if first else "") + before, tokens[at], after + ("…" if last < len(tokens) else "")
