"""Descriptions of pictures: what each shows, as one line in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .figure_style import (
    LONGEST_WITH_LABELS,
    Scale,
    format_number,
    format_percent,
    join_items,
    join_sentences,
    quote_token,
    say,
    say_many,
    to_say,
    translate_stream_place_name,
)
from .heatmap import HEATMAP_HEIGHT, RowLabel, pooling_block_size

if TYPE_CHECKING:
    from attenscope.analysis.telling_word import ReadingKind, WordReading, WordWeights
    from attenscope.experiments.lens import LogitLens
    from attenscope.trace import AttentionMap

ROW_EXPLANATIONS = {
    "encoder": to_say("Each row is how one piece of the sentence looks at all pieces of the sentence; {colour}."),
    "decoder": to_say("Each row is how one piece of the output looks at those that it may see; {colour}."),
    "cross": to_say("Each row is how one step of the translation looks at the pieces of the sentence; {colour}."),
}
WORD_ROW_EXPLANATIONS = {
    "encoder": to_say("Each row is how one word of the sentence looks at all words of the sentence; {colour}."),
    "decoder": to_say("Each row is how one word of the output looks at those that it may see; {colour}."),
    "cross": to_say("Each row is how one word of the translation looks at the words of the sentence; {colour}."),
}
TIE_TOLERANCE = 1e-6
"""Relative difference below which two weights tie."""
ROW_SUM_TOLERANCE = 0.01
"""How far the rounding of weights, at worst to bfloat16, may take the sum of a row from 1."""
LEAST_NAMED_WEIGHT = 0.005
"""The least weight of a key that is named beside others."""
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


def describe_head_overview(attention: AttentionMap) -> str:
    """What the grid of tiles is."""
    shared = pooling_block_size(*attention.mask.shape)
    return join_sentences(
        say(
            "{layers} layers down, {heads} heads across. Every tile is one head; click one to open it.",
            layers=attention.layers,
            heads=attention.heads,
        ),
        _describe_attention_layer_numbers(attention),
        say("Each point of a tile is the largest of {side} × {side} weights.", side=shared) if shared > 1 else "",
    )


def _describe_attention_layer_numbers(attention: AttentionMap) -> str:
    """Which layers of the model the rows are, where not all of them have attention."""
    numbers = attention.layer_numbers
    if numbers == tuple(range(attention.layers)):
        return ""
    return say("They are layers {numbers} of the model.", numbers=join_items(str(one + 1) for one in numbers))


def explain_heatmap_reading(
    attention: AttentionMap,
    rows: RowLabel,
    scale: Scale,
    *,
    in_words: bool = False,
    hides_keys: bool = False,
    hides_first: bool = False,
    whole_sums: np.ndarray | None = None,
) -> str:
    """How to read a heatmap of this kind, of pieces or words.

    `hides_keys` where special tokens are no columns, `hides_first` where the first token is none; `whole_sums` (Q,) are
    then the sums of the rows together with these.
    """
    longest = max(attention.mask.shape)
    explanations = WORD_ROW_EXPLANATIONS if in_words else ROW_EXPLANATIONS
    return join_sentences(
        say(explanations[attention.kind], colour=say(SCALE_WORDS[scale])),
        _describe_row_sums(attention, whole_sums)
        or (
            say("A row sums to 1 together with its weights on what is left out.")
            if hides_first
            else say("A row sums to 1 together with its weights on special tokens, which are hidden.")
            if hides_keys
            else say("A row sums to 1.")
        ),
        "" if attention.kind == "encoder" else say(ROW_LABEL_EXPLANATIONS[rows]),
        "" if attention.mask.all() else _describe_masked_cells(attention),
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


def _describe_row_sums(attention: AttentionMap, whole_sums: np.ndarray | None) -> str:
    """What the rows that may attend to a key sum to; "" where all sum to 1, with `whole_sums` where these are given."""
    rows = attention.mask.any(axis=1)
    sums = attention.weights.sum(axis=-1, dtype=np.float64)
    together = sums if whole_sums is None else whole_sums
    if not (np.abs(together[..., rows] - 1) > ROW_SUM_TOLERANCE).any():
        return ""
    shown = sums[..., rows]
    return say("Rows sum to {low:.2f} to {high:.2f}.", low=float(shown.min()), high=float(shown.max()))


def describe_strongest_head_link(attention: AttentionMap, layer: int, head: int, rows: RowLabel) -> str:
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


def describe_pinned_row(attention: AttentionMap, layer: int, head: int, row: int, rows: RowLabel) -> str:
    """Where one pinned row looks: its three strongest keys."""
    weights = attention.weights[layer, head, row]
    return say(
        "Pinned: {row}", row=describe_strongest_row_keys(attention.rows(rows)[row], attention.key_tokens, weights)
    )


def describe_strongest_row_keys(query: str, keys: Sequence[str], weights: np.ndarray) -> str:
    """Where a row of weights (K,) looks: its three strongest keys, but for weights that read 0.00."""
    best = np.argsort(-weights, kind="stable")[:3]
    named = [key for key in best if weights[key] >= LEAST_NAMED_WEIGHT] or [key for key in best if weights[key] > 0]
    if not named:
        return say("{query} may attend to nothing that is shown.", query=quote_token(query))
    found = [f"{quote_token(keys[key])} {format_number(float(weights[key]), '.2f')}" for key in named]
    return say("{query} looks at {keys}.", query=quote_token(query), keys=join_items(found))


def describe_lens_settling_place(lens: LogitLens, position: int) -> str:
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
        place=translate_stream_place_name(lens.places[first]),
        rank=int(ranks[0]),
        start=translate_stream_place_name(lens.places[0]),
        **of,
    )


def _describe_masked_cells(attention: AttentionMap) -> str:
    empty = int((~attention.mask.any(axis=1)).sum())
    queries, keys = attention.mask.shape
    hides_future_alone = not np.tril(~attention.mask, keys - queries - 1).any()
    return join_sentences(
        say("Grey and hatched is masked: not yet written when the row was computed.")
        if attention.kind == "decoder" and hides_future_alone
        else say("Grey and hatched is masked."),
        say_many(
            "{count} row may attend to nothing that is shown: all zero.",
            "{count} rows may attend to nothing that is shown: all zero.",
            empty,
        )
        if empty
        else "",
    )


# What one head shows of one word, in a sentence (model/analysis/telling_word.py).


READING_TEXTS: dict[ReadingKind, str] = {
    "copied": to_say("{word} is the same in both: each of its {size} pieces looks most at itself in the sentence."),
    "back": to_say(
        "To write {word} the model jumped back from {beside} to {key}: {share} of the weight of head {head}."
    ),
    "ahead": to_say(
        "To write {word} the model jumped ahead to {key}, past {beside}: {share} of the weight of head {head}."
    ),
    "twice": to_say("Head {head} looked twice at {key}: for {other} and again for {word} ({share})."),
    "two": to_say("To write {word}, head {head} looked at two words: {key} ({share}) and {beside} ({beside_share})."),
    "unread": to_say(
        "No head looked much at {key}: of the weight of no word it got more than {beside_share}. It may have been left "
        "out."
    ),
    "clear": to_say("To write {word} the model looked at {key}: {share} of the weight of head {head}."),
    "other": to_say(
        "To write {word}, head {head} looked at {key} ({share}); all heads together look more at {beside}."
    ),
    "weak": to_say("To write {word}, head {head} looked at no one word mostly; {key} got most: {share}."),
    "rest": to_say("For {word}, head {head} rests: {share} of its weight lies on the end of the sentence."),
    "only": to_say("To write {word} there is one word to look at: {key} got {share} of the weight of head {head}."),
    "nothing": to_say("No word of the translation looks much at {key} in head {head}: at most {share}."),
}
"""Of `rest` where the only special token of the sentence is its end."""
REST_ON_SPECIAL_TEXT = to_say("For {word}, head {head} rests: {share} of its weight lies on special tokens.")
SOURCE_WORD_TEXT = to_say("{key} was looked at to write {word}: {share} of the weight of head {head}.")
BETTER_HEAD_TEXT = to_say("Head {head} shows it: it looks at {key} ({share}).")


def describe_word_attention(words: WordWeights, reading: WordReading, *, of_source: bool = False) -> str:
    """What one head shows of a word of the translation, or `of_source`, of a word of the sentence."""
    text = SOURCE_WORD_TEXT if of_source and reading.kind == "clear" else READING_TEXTS[reading.kind]
    if reading.kind == "rest" and not _is_remainder_end_token(words):
        text = REST_ON_SPECIAL_TEXT
    beside = words.row_words if reading.kind == "twice" else words.key_words
    named = "" if reading.beside is None else quote_token(beside[reading.beside])
    told = say(
        text,
        word="" if reading.row is None else quote_token(words.row_words[reading.row]),
        key="" if reading.key is None else quote_token(words.key_words[reading.key]),
        other=named,
        beside=named,
        share=format_percent(reading.share),
        beside_share=format_percent(reading.beside_share),
        head=f"{reading.layer + 1}.{reading.head + 1}",
        size=reading.size,
    )
    if reading.better is None or reading.row is None:
        return told
    match = int(words.matched_source_words[reading.row])
    better = say(
        BETTER_HEAD_TEXT,
        head=".".join(str(at + 1) for at in reading.better),
        key=quote_token(words.key_words[match]),
        share=format_percent(float(words.shares[(*reading.better, reading.row)])),
    )
    return join_sentences(told, better)


def _is_remainder_end_token(words: WordWeights) -> bool:
    named = {word for group in words.keys for word in group}
    others = [token for at, token in enumerate(words.pieces.key_tokens) if at not in named]
    return all(token == "</s>" for token in others)
