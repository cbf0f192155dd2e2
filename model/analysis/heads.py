"""What each attention head does: statistics, claims in a sentence, ranking by alignment, and its name. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from ..language import say, to_say
from ..masks.softmax import count_extra_keys
from ..text.words import END_TOKENS, RowLabel, find_text_tokens, get_special_tokens
from ..trace import AttentionMap, Head, Kind, TraceError, select_head

# Statistics: how spread a head's attention is, how far it looks, on which token its mass lies.
#
# Every measure is a mean over the rows (queries) that have a choice and for which it is defined: a row that may attend
# to one key only, such as the decoder's first, says nothing of the head, and the first row has no previous token.
# Where no row has a choice, those with one key count.


Measure = Literal[
    "entropy", "distance", "previous", "same", "next", "first", "end", "alignment", "induction", "duplicate token"
]
Habit = Literal[
    "previous", "same", "next", "first", "end", "alignment", "alignment fed in", "induction", "duplicate token"
]
"""A place that a head may look at in every row that has it."""
AlignmentReading = Literal["predicted", "fed"]
ALIGNMENT_READINGS: tuple[AlignmentReading, ...] = ("predicted", "fed")
"""Whether the alignment of a row is that of the token it predicts, or of the token fed in."""
_ALIGNMENT_HABITS: dict[AlignmentReading, Habit] = {"predicted": "alignment", "fed": "alignment fed in"}
HeadPlace = tuple[int, int]
"""A head: (layer, head), from 0."""
EVEN_ROUNDING = 1e-4
"""By how much a sink holds more than equal weights would, beyond what rounding can make."""

MEASURE_EXPLANATIONS: MappingProxyType[Measure, str] = MappingProxyType(
    {
        "entropy": to_say(
            "How evenly a row is spread over the keys it may attend to: 0 is one key, 1 is all the same."
        ),
        "distance": to_say(
            "Mean distance in tokens between query and key, weighted by the weights; "
            "in cross-attention from the diagonal that runs from corner to corner."
        ),
        "previous": to_say("Weight on the token before the query."),
        "same": to_say("Weight on the query's own token."),
        "next": to_say("Weight on the token after the query."),
        "first": to_say("Weight on the first token."),
        "end": to_say("Weight on the end-of-sentence token, where heads with nothing to do often rest."),
        "alignment": to_say(
            "Weight on the source token that the average of all cross-attention heads points to: in the same row where "
            "rows are named by the token predicted, in the row before where they are named by the token fed in."
        ),
        "induction": to_say("Weight on the token that followed an earlier occurrence of the query's token."),
        "duplicate token": to_say("Weight on earlier occurrences of the query's token."),
    }
)
FOCUS_MEASURES: tuple[Measure, ...] = (
    "previous",
    "same",
    "next",
    "first",
    "end",
    "alignment",
    "induction",
    "duplicate token",
)
"""The measures that are a share of the mass, 0 to 1, on one place of every row that has it."""
LEAST_REPEATING_ROWS = 4
"""Fewer rows whose token stood before say nothing of a head."""


def compute_head_statistics(
    attention: AttentionMap, readings: Sequence[AlignmentReading] = ALIGNMENT_READINGS
) -> dict[Measure, np.ndarray]:
    """Return every measure that means something for this map, each (L, H).

    Of several `readings`, alignment is the one at which a head aligns better.
    """
    unread = {habit for reading, habit in _ALIGNMENT_HABITS.items() if reading not in readings}
    measures: dict[Measure, np.ndarray] = {
        "entropy": attention_entropy(attention),
        "distance": attention_distance(attention),
    }
    for habit, cells in find_attention_pattern_cells(attention).items():
        if habit in unread:
            continue
        share = _mean_over_rows((attention.weights * cells).sum(-1), cells.sum(-1) > 0)
        name: Measure = "alignment" if habit == "alignment fed in" else habit
        measures[name] = np.maximum(measures[name], share) if name in measures else share
    return measures


def find_most_positional_head(attention: AttentionMap) -> HeadPlace:
    """Return the head that looks most at one fixed place, such as the token before: the easiest to read."""
    measures = compute_head_statistics(attention)
    shares = [values for name, values in measures.items() if name in FOCUS_MEASURES and name not in ("first", "end")]
    return rank_heads(np.max(shares, axis=0) if shares else -measures["entropy"])[0]


def find_attention_pattern_cells(attention: AttentionMap) -> dict[Habit, np.ndarray]:
    """Return (Q, K) bool for each habit that this map allows: the cells whose weights are its share of the mass.

    Only rows with a choice hold such cells, and the habit is a mean over the rows that hold one.
    """
    mask = attention.mask & find_multi_key_rows(attention.mask)[:, None]
    columns = np.broadcast_to(np.arange(mask.shape[1]), mask.shape)
    cells: dict[Habit, np.ndarray] = {}
    if attention.kind != "cross":  # across two sentences there is no "previous"
        apart = measure_key_offsets(attention)
        cells |= {"previous": apart == -1, "same": apart == 0, "next": apart == 1}
    ends = np.array([token in END_TOKENS for token in attention.key_tokens], dtype=bool)
    cells |= {"first": columns == 0, "end": np.broadcast_to(ends, mask.shape)}
    if attention.kind == "cross":
        cells |= {"alignment": find_alignment_cells(attention, "predicted")}
        cells |= {"alignment fed in": find_alignment_cells(attention, "fed")}
    allowed = {habit: mask & chosen for habit, chosen in cells.items()}
    if attention.kind == "decoder":
        repeated = {habit: mask & chosen for habit, chosen in find_repetition_cells(attention).items()}
        allowed |= {habit: one for habit, one in repeated.items() if one.any(-1).sum() >= LEAST_REPEATING_ROWS}
    return {habit: chosen for habit, chosen in allowed.items() if chosen.any()}


def find_repetition_cells(decoder: AttentionMap) -> dict[Habit, np.ndarray]:
    """Return (Q, K) bool: the keys that an induction head and a duplicate token head look at, special tokens left out.

    Induction is the prefix matching of Olsson et al. (2022), "In-context Learning and Induction Heads": the token after
    an earlier occurrence of the query's token, but for the query itself. Duplicate token heads are those of Wang et al.
    (2022), "Interpretability in the Wild".
    """
    queries, keys = decoder.query_tokens, decoder.key_tokens
    special = get_special_tokens(decoder)
    text = np.array([token not in special for token in queries])
    same = np.array([[query == key for key in keys] for query in queries]) & text[:, None]
    earlier = measure_key_offsets(decoder) < 0
    after = np.pad(same & earlier, ((0, 0), (1, 0)))[:, :-1]
    return {"induction": after & earlier, "duplicate token": same & earlier}


class Sink(NamedTuple):
    """A key that holds more than half of all weight of a head."""

    key: int
    """From 0."""
    share: float
    """Of the weight of the rows, 0 to 1."""


def find_sink(attention: AttentionMap, layer: int, head: int, rows: Sequence[int]) -> Sink | None:
    """Return the key that holds more than half of the weight of some rows of a head, both from 0; None for none.

    An attention sink (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks") draws weight
    whatever the query is; so none is what equal weights on all allowed keys would hold too, as in a short causal map.
    """
    weights, mask = attention.weights[layer, head, list(rows)], attention.mask_of(layer, head)[list(rows)]
    held = weights.sum(0, dtype=np.float64)
    total = held.sum()
    if not total:
        return None
    key = int(held.argmax())
    share = float(held[key] / total)
    allowed = mask.sum(-1)
    even = float((mask[:, key] / np.maximum(allowed, 1)).sum() / max(1, int((allowed > 0).sum())))
    return Sink(key, share) if share > max(0.5, even + EVEN_ROUNDING) else None


def find_multi_key_rows(mask: np.ndarray) -> np.ndarray:
    """Return (Q,) bool: the rows with two allowed keys or more; where there is none, those with one."""
    allowed = mask.sum(-1)
    return allowed > 1 if (allowed > 1).any() else allowed > 0


def attention_entropy(attention: AttentionMap) -> np.ndarray:
    """-sum w ln w of a row over ln of its number of allowed keys, mean over rows with two or more -> (L, H), 0 to 1."""
    weights, allowed = attention.weights, attention.masks.sum(-1)
    surprise = -np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return _mean_over_rows((weights * surprise).sum(-1) / np.log(np.maximum(allowed, 2)), allowed > 1)


def attention_distance(attention: AttentionMap) -> np.ndarray:
    """Weighted mean of |query - key| in tokens -> (L, H).

    In cross-attention the query's place is scaled to the length of the source, so that 0 is the diagonal. A key that is
    no token, such as a sink, is at no distance.
    """
    if attention.kind == "cross":
        queries, keys = attention.mask.shape
        rows, columns = np.arange(queries)[:, None], np.arange(keys)[None, :]
        apart = np.abs((rows + 0.5) * keys / queries - (columns + 0.5))
    else:
        apart = np.abs(np.nan_to_num(measure_key_offsets(attention)))
    return _mean_over_rows((attention.weights * apart).sum(-1), find_multi_key_rows(attention.mask))


def measure_key_offsets(attention: AttentionMap) -> np.ndarray:
    """Return (Q, K) how far each key of self-attention lies after its query, in tokens; NaN for one that is no token.

    The newest query stands at the newest key, as in a cached step: at the last that any query may attend to, since the
    slots of a static cache after it are not filled yet.
    """
    queries, keys = attention.mask.shape
    tokens = keys - count_extra_keys(queries, attention.key_tokens)
    filled = np.flatnonzero(attention.mask[:, :tokens].any(0))
    newest = max(queries, int(filled[-1]) + 1) if filled.size and queries < tokens else tokens
    offsets = np.arange(keys) - (np.arange(queries)[:, None] + newest - queries)
    return np.where(np.arange(keys) < tokens, offsets, np.nan)


def rank_heads(values: np.ndarray, largest_first: bool = True) -> tuple[HeadPlace, ...]:
    """values (L, H) -> all heads in order; equal ones by layer, then head."""
    order = np.argsort(-values if largest_first else values, axis=None, kind="stable")
    layers, heads = np.unravel_index(order, values.shape)
    return tuple(zip(layers.tolist(), heads.tolist(), strict=True))


def heads_in_range(values: np.ndarray, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """values (L, H) -> (L, H) bool: the heads whose value lies in [low, high]."""
    return (values >= low) & (values <= high)


def _mean_over_rows(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """values (L, H, Q), counted (Q,) or (L, 1 or H, Q) bool -> (L, H); 0 where no row counts."""
    counted = np.broadcast_to(counted, values.shape)
    return np.where(counted, values, 0).sum(-1, dtype=np.float64) / np.maximum(counted.sum(-1), 1)


# Claims: what a head does, in one sentence, with the data that the sentence is about.
#
# A claim names a habit, the rows it counts and the number that it prints, so that anybody can work it out again from
# the map. Its words go by how the rows are named: by the token fed in, or by the token predicted.


MOSTLY_SHARE, MORE_SHARE, EVEN_ENTROPY = 0.5, 0.2, 0.9
"""The least share of the mass for "mostly" and for "more than at any other", the least entropy for "evenly"."""

_HABIT_PLACES: dict[Habit, str] = {
    "previous": to_say("the previous token"),
    "same": to_say("the token itself"),
    "next": to_say("the next token"),
    "first": to_say("the first token"),
    "end": to_say("the end-of-sentence token"),
    "alignment": to_say("the token that all heads together point to"),
    "alignment fed in": to_say(
        "the token that all heads together pointed to one row earlier (it aligns the token fed in)"
    ),
    "induction": to_say("the token that followed the same token earlier (induction)"),
    "duplicate token": to_say("the same token where it stood earlier (duplicate token)"),
}
_HABIT_PLACES_BY_PREDICTION: dict[Habit, str] = {
    "previous": to_say("the token fed in one step earlier (two before the one that names the row)"),
    "same": to_say("the token just fed in (the one before the one that names the row)"),
    "next": to_say("the token that names the row (which is not fed in yet)"),
    "induction": to_say("the token that followed the token just fed in where it stood earlier (induction)"),
    "duplicate token": to_say("the token just fed in where it stood earlier (duplicate token)"),
}
"""In the decoder's self-attention: its keys are tokens fed in, and its rows may be named by the tokens predicted."""


@dataclass(frozen=True)
class HeadClaim:
    """A sentence about one head, and the data that it is about."""

    text: str
    habit: Habit | Literal["even", "mixed", "none"]
    """Where the head looks: at one of the places counted, everywhere alike, at no one of them, or it has no choice."""
    value: float
    """The number in the sentence: the mean share of the mass at a fixed place, 0 to 1; for "even" the entropy, 0 to 1;
    for "mixed" the mean distance in tokens; for "none" 0."""
    rows: tuple[int, ...]
    """The queries that the number is a mean over, from 0."""


def describe_head_pattern(attention: AttentionMap, layer: int, head: int, label: RowLabel = "fed") -> HeadClaim:
    """Return what the map shows of a head, counted from 0, in words for rows that are named by `label`."""
    place = {"head": head + 1, "layer": layer + 1}
    mask = attention.mask_of(layer, head)
    if mask.sum(-1).max(initial=0) < 2:
        text = say("Head {head} of layer {layer} has no choice: there is at most one token to look at.", **place)
        return HeadClaim(text, "none", 0.0, ())
    alone = select_head(attention, layer, head)
    # The cells are those of the whole map: one head alone would always align with itself.
    cells = find_attention_pattern_cells(attention)
    shares = {habit: _average_weight_on_cells(alone.weights[0, 0], at) for habit, at in cells.items()}
    best = max(shares, key=shares.__getitem__, default=None)
    choosing = _list_true_row_indices(find_multi_key_rows(mask))
    spread, far = attention_entropy(alone).item(), attention_distance(alone).item()
    if best and shares[best] >= MOSTLY_SHARE:
        text = say(
            "Head {head} of layer {layer} mostly looks at {token}: {share:.0%} of its weight.",
            **place,
            token=_describe_attended_token(attention, best, label),
            share=shares[best],
        )
        return HeadClaim(text, best, shares[best], _list_true_row_indices(cells[best].sum(-1) > 0))
    if spread >= EVEN_ENTROPY:
        text = say(
            "Head {head} of layer {layer} spreads its attention almost evenly: its entropy is {entropy:.2f}, where 1 "
            "is all the same.",
            **place,
            entropy=spread,
        )
        return HeadClaim(text, "even", spread, choosing)
    if best and shares[best] >= MORE_SHARE:
        text = say(
            "Head {head} of layer {layer} looks at {token} more than at any other place that is counted: {share:.0%} "
            "of its weight.",
            **place,
            token=_describe_attended_token(attention, best, label),
            share=shares[best],
        )
        return HeadClaim(text, best, shares[best], _list_true_row_indices(cells[best].sum(-1) > 0))
    if best is None:
        text = say("Head {head} of layer {layer} looks {distance:.1f} tokens away on average.", **place, distance=far)
        return HeadClaim(text, "mixed", far, choosing)
    # One map does not tell whether such a head goes by the words or by another place, such as two tokens back.
    text = say(
        "Head {head} of layer {layer} looks at no one place: {token} gets most, {share:.0%}; on average {distance:.1f} "
        "tokens away.",
        **place,
        token=_describe_attended_token(attention, best, label),
        share=shares[best],
        distance=far,
    )
    return HeadClaim(text, "mixed", far, choosing)


def _average_weight_on_cells(weights: np.ndarray, cells: np.ndarray) -> float:
    """The mass of weights (Q, K) on cells (Q, K), mean over the rows that hold one."""
    rows = cells.sum(-1) > 0
    return float((weights * cells)[rows].sum(-1).mean(dtype=np.float64))


def _list_true_row_indices(rows: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(rows).tolist())


def _describe_attended_token(attention: AttentionMap, habit: Habit, label: RowLabel) -> str:
    """The token that a habit looks at, in words for rows that are named by `label`."""
    if attention.kind == "decoder" and label == "predicted" and attention.predicted_tokens:
        return say(_HABIT_PLACES_BY_PREDICTION.get(habit, _HABIT_PLACES[habit]))
    return say(_HABIT_PLACES[habit])


# Alignment: every cross-attention head compared with the average of all heads, at two readings.
#
# The average over heads as a soft alignment goes back to Garg et al. (2019), "Jointly Learning to Align and Translate
# with Transformer Models", section 4.1; that single heads can align better than the average is known, so the ranking
# says who agrees with the average, not who is right. A row can be read in two ways: as the alignment of the token that
# it predicts, or of the token that was just fed in (Chen et al. 2020, "Accurate Word Alignment Induction from Neural
# Machine Translation", arXiv 2004.14837, who find the second the better one in many models).


ALIGNMENT_EXPLANATION = to_say(
    "The weights of all cross-attention heads of all layers are averaged, the end-of-sentence token left out, and the "
    "strongest source token of each row is taken as the alignment of the token that the row predicts. A head's score "
    "is the weight it puts on these tokens, averaged over the rows: on that of the same row where rows are named by "
    "the token predicted, on that of the row before where they are named by the token fed in. It says which head "
    "agrees with the others, not which is right."
)
_ALIGNMENT_TEXTS = {
    "predicted": to_say(
        "Head {head} of layer {layer} puts {mass:.0%} of its weight on the token that all heads together point to; its "
        "own strongest token is that one in {agreeing} of {rows} rows."
    ),
    "fed": to_say(
        "Head {head} of layer {layer} puts {mass:.0%} of its weight on the token that all heads together pointed to "
        "one row earlier, so it aligns the token just fed in; its own strongest token is that one in {agreeing} of "
        "{rows} rows."
    ),
}
_ALIGNMENT_TEXTS_WITH_SPECIAL = {
    "predicted": to_say(
        "Head {head} of layer {layer} puts {mass:.0%} of its weight on the token that all heads together point to; its "
        "own strongest token is that one in {agreeing} of {rows} rows, and at a special token such as </s> in "
        "{elsewhere}."
    ),
    "fed": to_say(
        "Head {head} of layer {layer} puts {mass:.0%} of its weight on the token that all heads together pointed to "
        "one row earlier, so it aligns the token just fed in; its own strongest token is that one in {agreeing} of "
        "{rows} rows, and at a special token such as </s> in {elsewhere}."
    ),
}


@dataclass(frozen=True)
class HeadAlignment:
    """How well one cross-attention head agrees with the averaged alignment."""

    layer: int
    head: int
    reading: AlignmentReading
    """The token of a row that the head aligns: the one predicted, or the one just fed in."""
    mass: float
    """Mean weight on the expected source token, 0 to 1."""
    agreeing: int
    """Rows in which the head's own strongest token is the expected one."""
    elsewhere: int
    """Rows in which the head's own strongest token is a special one, such as ``</s>``."""
    rows: int

    @property
    def sentence(self) -> str:
        return say(
            (_ALIGNMENT_TEXTS_WITH_SPECIAL if self.elsewhere else _ALIGNMENT_TEXTS)[self.reading],
            head=self.head + 1,
            layer=self.layer + 1,
            mass=self.mass,
            agreeing=self.agreeing,
            rows=self.rows,
            elsewhere=self.elsewhere,
        )


def compute_mean_alignment(cross: AttentionMap) -> np.ndarray:
    """Return the mean over layers and heads, special source tokens set to 0 and each row rescaled: (Q, K)."""
    if cross.kind != "cross":
        raise TraceError(say("An alignment is read from cross-attention; this is the {kind} map.", kind=cross.kind))
    mean = cross.weights.mean((0, 1), dtype=np.float64)
    special = _find_special_keys(cross)
    if not special.all():
        mean[:, special] = 0
    total = mean.sum(-1, keepdims=True)
    return np.divide(mean, total, out=np.zeros_like(mean), where=total > 0)


def find_alignment_cells(cross: AttentionMap, reading: AlignmentReading) -> np.ndarray:
    """Return (Q, K) bool: in each row that counts, the key to which the average of all heads aligns its token.

    A token predicted at one row is fed in at the next: read at the token fed in, a row has the key of the row before.
    """
    rows = _find_text_rows(cross)
    keys = compute_mean_alignment(cross).argmax(-1)[rows]
    if reading == "fed":
        inside = rows + 1 < len(cross.query_tokens)
        rows, keys = rows[inside] + 1, keys[inside]
    cells = np.zeros(cross.mask.shape, dtype=bool)
    cells[rows, keys] = True
    return cells


def rank_heads_by_alignment(
    cross: AttentionMap, readings: Sequence[AlignmentReading] = ALIGNMENT_READINGS
) -> tuple[HeadAlignment, ...]:
    """Return all cross-attention heads, the best aligned first, each at the reading at which it aligns better."""
    cells = {reading: find_alignment_cells(cross, reading) for reading in readings}
    ranking = [
        max(
            (_score_head_alignment(cross, layer, head, reading, cells[reading]) for reading in readings),
            key=_alignment_sort_key,
        )
        for layer, head in np.ndindex(cross.weights.shape[:2])
    ]
    return tuple(sorted(ranking, key=_alignment_sort_key, reverse=True))


def _score_head_alignment(
    cross: AttentionMap, layer: int, head: int, reading: AlignmentReading, cells: np.ndarray
) -> HeadAlignment:
    """Compare one head with the cells (Q, K) that it is expected to look at."""
    rows = np.flatnonzero(cells.any(-1))
    weights = cross.weights[layer, head, rows]
    own, special = weights.argmax(-1), _find_special_keys(cross)
    mass = float((weights * cells[rows]).sum(-1).mean(dtype=np.float64)) if rows.size else 0.0
    elsewhere = 0 if special.all() else int(special[own].sum())
    return HeadAlignment(layer, head, reading, mass, int(cells[rows, own].sum()), elsewhere, len(rows))


def _alignment_sort_key(alignment: HeadAlignment) -> tuple[float, int]:
    return alignment.mass, alignment.agreeing


def _find_special_keys(cross: AttentionMap) -> np.ndarray:
    """(K,) bool: the source tokens that stand for no text."""
    special = get_special_tokens(cross)
    return np.array([token in special for token in cross.key_tokens])


def _find_text_rows(cross: AttentionMap) -> np.ndarray:
    """The rows that predict text and may attend to something; every row if there is none."""
    rows = find_text_tokens(cross.rows("predicted"), get_special_tokens(cross))
    return np.array(rows or range(len(cross.query_tokens)))


# What a head is called.


HEAD_NAMES: dict[Kind, str] = {
    "encoder": to_say("encoder {layer}.{head}"),
    "decoder": to_say("decoder {layer}.{head}"),
    "cross": to_say("cross {layer}.{head}"),
}


def head_name(head: Head) -> str:
    """Return the name of a head for people: its attention, layer and head, counted from 1."""
    kind, layer, number = head
    return say(HEAD_NAMES[kind], layer=layer + 1, head=number + 1)
