"""The measures of every head, worked out one sentence, head and row at a time from single traces."""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import torch

from attenscope.analysis.attention_steps import read_output_projections
from attenscope.analysis.heads import find_alignment_cells
from attenscope.atlas.teacher_forced_batches import Sentence, sample_word_permutation
from attenscope.attribution.logit import record_pass, split_logit
from attenscope.attribution.target import Target
from attenscope.capture.attention import capture_attention
from attenscope.experiments.ablation import head_effects
from attenscope.network.abstract_model import shift_right
from attenscope.text.words import (
    SPECIAL_TOKENS,
    group_tokens_into_words,
    join_word,
    name_translation_trace_rows_columns,
)
from attenscope.trace import KINDS, AttentionMap, AttentionTrace, Head
from attenscope.translate import Translator

Means = dict[tuple[Head, str], float]


def slow_measures(translator: Translator, sentences: Iterable[Sentence]) -> Means:
    """Means over all rows that count, by head and measure."""
    values: dict[tuple[Head, str], list[float]] = defaultdict(list)
    for sentence in sentences:
        trace = traced(translator, sentence, sentence.source_ids)
        order = sample_word_permutation(sentence).tolist()
        moved = traced(translator, sentence, tuple(sentence.source_ids[at] for at in order))
        for kind in KINDS:
            attention = trace.maps[kind]
            places, added = allowed_places(attention), norms(translator, attention)
            for layer, head, row in np.ndindex(attention.weights.shape[:3]):
                if attention.mask[row].sum() < 2:
                    continue
                weights = attention.weights[layer, head, row].astype(float)
                found = of_row(attention, row, weights) | of_places(attention, row, weights, places)
                found["norm"] = added[layer, head, row] / added[layer, :, row].sum()
                if order != sorted(order):
                    found["stays"] = kept(attention, moved.maps[kind], (layer, head, row), order)
                for name, value in found.items():
                    values[(kind, layer, head), name].append(value)
        effects = head_effects(translator.model, sentence.source_ids, sentence.target_ids)
        for (kind, layer, head), _ in effects.strongest():
            values[(kind, layer, head), "cost"] += (-effects.changes[kind][layer, head]).tolist()
        for head_of_part, value in logits(translator, sentence):
            values[head_of_part, "logit"].append(value)
    return {name: float(np.mean(found)) for name, found in values.items()}


def of_places(
    attention: AttentionMap, row: int, weights: np.ndarray, places: dict[str, np.ndarray]
) -> dict[str, float]:
    keys = np.flatnonzero(attention.mask[row])
    found: dict[str, float] = {}
    for name, cells in places.items():
        held = [key for key in keys if cells[row, key]]
        if held:
            share = sum(weights[key] for key in held)
            found |= {name: share, f"{name}_rows": float(share > 0.5), f"{name}_even": float(len(held) > len(keys) / 2)}
    return found


def kept(attention: AttentionMap, moved: AttentionMap, place: tuple[int, int, int], order: list[int]) -> float:
    """What of a row's weight stays on its tokens; token order[i] of the sentence is token i of the moved one."""
    layer, head, row = place
    after = moved.weights[layer, head, order.index(row) if attention.kind == "encoder" else row]
    before = attention.weights[layer, head, row]
    now = {key: key if attention.kind == "decoder" else order.index(key) for key in range(len(before))}
    return float(sum(min(before[key], after[now[key]]) for key in now))


def traced(translator: Translator, sentence: Sentence, source_ids: tuple[int, ...]) -> AttentionTrace:
    with torch.no_grad(), capture_attention(translator.model, ("v",)) as capture:
        translator.model(torch.tensor([source_ids]), shift_right(torch.tensor([sentence.target_ids])))
    return name_translation_trace_rows_columns(capture.trace, sentence.source_side.pieces, sentence.target_side.pieces)


def of_row(attention: AttentionMap, row: int, weights: np.ndarray) -> dict[str, float]:
    queries, keys = attention.mask.shape
    here = (row + 0.5) * keys / queries - 0.5 if attention.kind == "cross" else row
    return {
        "entropy": -sum(weight * math.log(weight) for weight in weights if weight > 0),
        "distance": sum(weight * abs(here - key) for key, weight in enumerate(weights)),
        "top": max(weights),
    }


def allowed_places(attention: AttentionMap) -> dict[str, np.ndarray]:
    """The cells of every place, by loops over queries and keys."""
    cross = attention.kind == "cross"
    queries = attention.predicted_tokens if cross else attention.query_tokens
    of_query, of_key = groups(queries), groups(attention.key_tokens)
    text = [at for at, token in enumerate(attention.key_tokens) if token not in SPECIAL_TOKENS]
    found: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(attention.mask.shape, dtype=bool))
    for row in range(len(queries)):
        for key, token in enumerate(attention.key_tokens):
            (spelled, _), (other, pieces) = of_query[row], of_key[key]
            found["first"][row, key] = key == 0
            found["end"][row, key] = token == "</s>"
            found["punctuation"][row, key] = is_punctuation(other)
            found["rare"][row, key] = len(pieces) > 1
            same = spelled.casefold() == other.casefold() and not is_punctuation(other) and token not in SPECIAL_TOKENS
            found["same_word"][row, key] = same and (cross or row != key)
            if attention.kind != "decoder":
                found["last"][row, key] = key == text[-1]
            if not cross:
                found["same"][row, key] = key == row
                found["previous"][row, key] = key == row - 1
                found["next"][row, key] = key == row + 1
                found["later_piece"][row, key] = key > row and row in pieces
            if attention.kind == "decoder" and token not in SPECIAL_TOKENS and key < row:
                found["duplicate"][row, key] = token == queries[row]
                if key + 1 < row:
                    found["induction"][row, key + 1] = token == queries[row]
    if cross:
        found["aligned_predicted"] = find_alignment_cells(attention, "predicted")
        found["aligned_fed"] = find_alignment_cells(attention, "fed")
    return found


def groups(tokens: tuple[str, ...]) -> list[tuple[str, range]]:
    """The word of each token, and the tokens of that word."""
    return [(join_word(tokens[at.start : at.stop]).strip(), at) for at in group_tokens_into_words(tokens) for _ in at]


def is_punctuation(text: str) -> bool:
    return text not in SPECIAL_TOKENS and text != "" and all(unicodedata.category(one)[0] in "PS" for one in text)


def norms(translator: Translator, attention: AttentionMap) -> np.ndarray:
    """(L, H, Q) the norm of what each head adds."""
    values = attention.tensors["v"] @ read_output_projections(translator.model, attention.kind)
    return np.linalg.norm(attention.weights @ values, axis=-1)


def logits(translator: Translator, sentence: Sentence) -> list[tuple[Head, float]]:
    inputs = tuple(shift_right(torch.tensor(sentence.target_ids)).tolist())
    recording = record_pass(translator.model, sentence.source_ids, inputs)
    found: list[tuple[Head, float]] = []
    for position, token in enumerate(sentence.target_ids):
        tokens = sentence.target_side.pieces
        target = Target(
            sentence.source_ids, sentence.source_side.pieces, inputs, ("<s>", *tokens[:position]), (token,),
            (tokens[position],),
        )  # fmt: skip
        parts = split_logit(translator.model, target, recording).parts
        own = [one for one in parts if one.part.kind in ("decoder", "cross")]
        found += [((one.part.kind, one.part.layer, one.part.head), one.score) for one in own]  # type: ignore[misc]
    return found
