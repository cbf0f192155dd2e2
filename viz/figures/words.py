"""Descriptions of pictures: what each shows, as one line in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .heatmap import HEATMAP_HEIGHT, RowLabel, pooling_block_size
from .look import (
    LONGEST_WITH_LABELS,
    Scale,
    format_number,
    join_items,
    join_sentences,
    place_name,
    quote_token,
    say,
    say_many,
    to_say,
)

if TYPE_CHECKING:
    from attenscope.experiments.lens import LogitLens
    from attenscope.trace import AttentionMap

ROW_EXPLANATIONS = {
    "encoder": to_say(
        "Each row is how one piece of the sentence looks at all pieces of the sentence, and sums to 1; {colour}."
    ),
    "decoder": to_say(
        "Each row is how one step of the translation looks back at what is already written, and sums to 1; {colour}."
    ),
    "cross": to_say(
        "Each row is how one step of the translation looks at the pieces of the sentence, and sums to 1; {colour}."
    ),
}
TIE_TOLERANCE = 1e-6
"""Relative difference below which two weights tie."""
HEATMAP_ROW_PIXELS = HEATMAP_HEIGHT - 104
"""How many pixels the rows of a heatmap share."""
SCALE_WORDS = {
    "sqrt": to_say("colour grows with the square root of the weight"),
    "linear": to_say("colour grows with the weight"),
    "log": to_say("colour grows with the logarithm of the weight, from 0.001"),
}
ROW_LABEL_EXPLANATIONS = {
    "predicted": to_say("Rows are named by the token predicted."),
    "fed": to_say("Rows are named by the token fed in."),
}


def overview_in_words(attention: AttentionMap) -> str:
    """What the grid of tiles is."""
    shared = pooling_block_size(*attention.mask.shape)
    return join_sentences(
        say(
            "{layers} layers down, {heads} heads across. Every tile is one head; click one to open it.",
            layers=attention.layers,
            heads=attention.heads,
        ),
        _layer_numbers_text(attention),
        say("Each point of a tile is the largest of {side} × {side} weights.", side=shared) if shared > 1 else "",
    )


def _layer_numbers_text(attention: AttentionMap) -> str:
    """Which layers of the model the rows are, where not all of them have attention."""
    numbers = attention.layer_numbers
    if numbers == tuple(range(attention.layers)):
        return ""
    return say("They are layers {numbers} of the model.", numbers=join_items(str(one + 1) for one in numbers))


def heatmap_in_words(attention: AttentionMap, rows: RowLabel, scale: Scale) -> str:
    """How to read a heatmap of this kind."""
    longest = max(attention.mask.shape)
    return join_sentences(
        say(ROW_EXPLANATIONS[attention.kind], colour=say(SCALE_WORDS[scale])),
        "" if attention.kind == "encoder" else say(ROW_LABEL_EXPLANATIONS[rows]),
        "" if attention.mask.all() else _mask_text(attention),
        ""
        if longest <= LONGEST_WITH_LABELS
        else say("There is room for the names of some tokens only: hover over a cell to read its pair."),
        ""
        if longest <= HEATMAP_ROW_PIXELS
        else say(
            "There are more weights than points in the picture: neighbours are averaged in colour. The mouse and the "
            "arrow keys read each by itself."
        ),
    )


def head_in_words(attention: AttentionMap, layer: int, head: int, rows: RowLabel) -> str:
    """The strongest link of one head, counted from 0."""
    found = find_strongest_weight(attention.weights[layer, head])
    of = {
        "layer": layer + 1,
        "head": head + 1,
        "query": quote_token(attention.rows(rows)[found.query]),
        "key": quote_token(attention.key_tokens[found.key]),
        "weight": found.weight,
    }
    if found.ties > 1:
        return say(
            "Layer {layer}, head {head}: {count} links tie as its strongest, {weight:.2f}; the first is {query} → "
            "{key}.",
            count=found.ties,
            **of,
        )
    return say("Layer {layer}, head {head}: its strongest link is {query} → {key}, {weight:.2f}.", **of)


class StrongestWeight(NamedTuple):
    """The largest weight of a matrix."""

    query: int
    """The place of the first cell that has it, row by row, from 0."""
    key: int
    weight: float
    ties: int
    """How many cells have it."""


def find_strongest_weight(weights: np.ndarray) -> StrongestWeight:
    """weights (Q, K) -> the largest, and how many cells tie: what lies within the rounding of float32 sums is alike."""
    largest = float(weights.max())
    ties = weights >= largest * (1 - TIE_TOLERANCE)
    query, key = np.unravel_index(int(ties.argmax()), weights.shape)
    return StrongestWeight(int(query), int(key), largest, int(ties.sum()))


def row_in_words(attention: AttentionMap, layer: int, head: int, row: int, rows: RowLabel) -> str:
    """Where one pinned row looks: its three strongest keys."""
    weights = attention.weights[layer, head, row]
    return say("Pinned: {row}", row=weight_row_in_words(attention.rows(rows)[row], attention.key_tokens, weights))


def weight_row_in_words(query: str, keys: Sequence[str], weights: np.ndarray) -> str:
    """Where a row of weights (K,) looks: its three strongest keys."""
    best = np.argsort(-weights, kind="stable")[:3]
    found = [
        f"{quote_token(keys[key])} {format_number(float(weights[key]), '.2f')}" for key in best if weights[key] > 0
    ]
    if not found:
        return say("{query} may attend to nothing.", query=quote_token(query))
    return say("{query} looks at {keys}.", query=quote_token(query), keys=join_items(found))


def lens_in_words(lens: LogitLens, position: int) -> str:
    """After which place along the stream the written token is the best one, and stays it."""
    ranks = lens.ranks[:, position]
    of = {"position": position + 1, "token": quote_token(lens.target_tokens[position])}
    if ranks[-1] != 1:
        return say(
            "Position {position}, {token}: not the model's own best choice; its rank at the end is {rank:,}.",
            rank=int(ranks[-1]),
            **of,
        )
    first = int(np.flatnonzero(np.append(2, ranks) != 1)[-1])
    return say(
        "Position {position}, {token}: first choice from {place} on; its rank was {rank:,} at the {start}.",
        place=place_name(lens.places[first]),
        rank=int(ranks[0]),
        start=place_name(lens.places[0]),
        **of,
    )


def _mask_text(attention: AttentionMap) -> str:
    empty = int((~attention.mask.any(axis=1)).sum())
    return join_sentences(
        say("Grey and hatched is masked: not yet written when the row was computed.")
        if attention.kind == "decoder"
        else say("Grey and hatched is masked."),
        say_many("{count} row may attend to nothing: all zero.", "{count} rows may attend to nothing: all zero.", empty)
        if empty
        else "",
    )
