"""What a picture shows, as one line in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .heatmap import HEIGHT, ROW_NAMES
from .labels import LONGEST_WITH_LABELS, quoted
from .pooled import block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.experiments.logit_lens import Lens
    from model.trace import AttentionMap

    from .heatmap import Rows
    from .palette import Scale

READS = {
    "encoder": "how one piece of the sentence looks at all pieces of the sentence",
    "decoder": "how one step of the translation looks back at what is already written",
    "cross": "how one step of the translation looks at the pieces of the sentence",
}
POINTS_DOWN = HEIGHT - 104
"""How many pixels the rows of a heatmap share."""
_SOME_NAMED = "There is room for the names of some tokens only: hover over a cell to read its pair."
_AVERAGED = (
    "There are more weights than points in the picture: neighbours are averaged in colour. The mouse and the arrow "
    "keys read each by itself."
)
SCALE_WORDS = {
    "sqrt": "colour grows with the square root of the weight",
    "linear": "colour grows with the weight",
    "log": "colour grows with the logarithm of the weight, from 0.001",
}


def overview_in_words(attention: AttentionMap) -> str:
    """What the grid of tiles is."""
    shared = block(*attention.mask.shape)
    return (
        f"{attention.layers} layers down, {attention.heads} heads across. Every tile is one head; click one to open it."
        + _own_numbers(attention)
        + (f" Each point of a tile is the largest of {shared} × {shared} weights." if shared > 1 else "")
    )


def _own_numbers(attention: AttentionMap) -> str:
    """Which layers of the model the rows are, where not all of them have attention."""
    numbers = attention.layer_numbers
    if numbers == tuple(range(attention.layers)):
        return ""
    return f" They are layers {', '.join(str(number + 1) for number in numbers)} of the model."


def heatmap_in_words(attention: AttentionMap, rows: Rows, scale: Scale) -> str:
    """How to read a heatmap of this kind."""
    return " ".join(
        [
            f"Each row is {READS[attention.kind]}, and sums to 1; {SCALE_WORDS[scale]}.",
            *([] if attention.kind == "encoder" else [f"Rows are named by the token {ROW_NAMES[rows]}."]),
            *([] if attention.mask.all() else [_grey(attention)]),
            *([] if max(attention.mask.shape) <= LONGEST_WITH_LABELS else [_SOME_NAMED]),
            *([] if max(attention.mask.shape) <= POINTS_DOWN else [_AVERAGED]),
        ]
    )


def head_in_words(attention: AttentionMap, layer: int, head: int, rows: Rows) -> str:
    """The strongest link of one head, counted from 0."""
    weights = attention.weights[layer, head]
    query, key = np.unravel_index(int(weights.argmax()), weights.shape)
    link = f"{quoted(attention.rows(rows)[query])} → {quoted(attention.key_tokens[key])}"
    return f"Layer {layer + 1}, head {head + 1}: its strongest link is {link}, {weights[query, key]:.2f}."


def row_in_words(attention: AttentionMap, layer: int, head: int, row: int, rows: Rows) -> str:
    """Where one pinned row looks: its three strongest keys."""
    weights = attention.weights[layer, head, row]
    return f"Pinned: {row_of_weights(attention.rows(rows)[row], attention.key_tokens, weights)}"


def row_of_weights(query: str, keys: Sequence[str], weights: np.ndarray) -> str:
    """Where a row of weights (K,) looks: its three strongest keys."""
    best = np.argsort(-weights, kind="stable")[:3]
    named = ", ".join(f"{quoted(keys[key])} {weights[key]:.2f}" for key in best if weights[key] > 0)
    return f"{quoted(query)} looks at {named}." if named else f"{quoted(query)} may attend to nothing."


def lens_in_words(lens: Lens, position: int) -> str:
    """After which place along the stream the written token is the best one, and stays it."""
    ranks = lens.ranks[:, position]
    token = f"Position {position + 1}, {quoted(lens.target_tokens[position])}:"
    if ranks[-1] != 1:
        return f"{token} not the model's own best choice; its rank at the end is {ranks[-1]:,}."
    first = int(np.flatnonzero(np.append(2, ranks) != 1)[-1])
    return f"{token} first choice from {lens.places[first]} on; its rank was {ranks[0]:,} at the {lens.places[0]}."


def _grey(attention: AttentionMap) -> str:
    empty = int((~attention.mask.any(axis=1)).sum())
    why = "masked: not yet written when the row was computed" if attention.kind == "decoder" else "masked"
    nothing = f" {empty} {'row' if empty == 1 else 'rows'} may attend to nothing: all zero." if empty else ""
    return f"Grey and hatched is {why}.{nothing}"
