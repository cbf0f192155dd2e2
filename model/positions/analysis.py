"""The geometry of positional encodings, and scores of how positional each head is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from ..analysis.heads import find_multi_key_rows
from ..capture.attention import capture_attention
from ..network.abstract_model import make_decoder_inputs
from ..runnable_model import Translation
from ..trace import KINDS, AttentionTrace, Kind, replace_tokens
from ..translate import Translator
from .table import SINUSOID_BASE, pair_exponent

# The geometry of a table: similarity, shift as rotation, uniqueness, wavelengths.


ROWS_AT_ONCE = 512  # so that 5,000 positions need megabytes, not hundreds of them


def compute_wavelengths(d_model: int, base: float = SINUSOID_BASE, *, inclusive: bool = False) -> np.ndarray:
    """Return (ceil(D / 2),) positions after which pair i repeats, 2 pi base^exponent(i): from 2 pi towards 2 pi base.

    `inclusive` is the progression of tensor2tensor and fairseq, which reaches 2 pi base itself.
    """
    pairs = (d_model + 1) // 2
    return (
        2
        * np.pi
        * base ** np.array([float(pair_exponent(pair, d_model, inclusive=inclusive)) for pair in range(pairs)])
    )


def position_similarity(table: np.ndarray, *, cosine: bool = False) -> np.ndarray:
    """Dot products, or cosines, between all positions: (P, D) -> (P, P) float64. A zero row has cosine 0 with all."""
    rows = table.astype(np.float64)
    if cosine:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return rows @ rows.T


@dataclass(frozen=True, eq=False)
class DistanceProfile:
    """Similarity by distance between two positions: all (P,) float64."""

    mean: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    @property
    def spread(self) -> float:
        """How much two pairs at one distance differ at most: 0 where similarity depends on distance alone."""
        return float((self.highest - self.lowest).max())


def compute_distance_profile(similarities: np.ndarray) -> DistanceProfile:
    """(P, P) symmetric -> mean, lowest and highest of each diagonal."""
    size = len(similarities)
    beside = np.pad(similarities.astype(np.float64), ((0, 0), (0, size)), constant_values=np.nan)
    # Row i begins at its own diagonal, so that column d holds all pairs at distance d, and NaN where there are none.
    row, cell = beside.strides
    pairs = np.lib.stride_tricks.as_strided(beside, (size, size), (row + cell, cell), writeable=False)
    mean = np.where(np.isnan(pairs), 0.0, pairs).sum(0) / np.arange(size, 0, -1)
    return DistanceProfile(mean, np.fmin.reduce(pairs), np.fmax.reduce(pairs))


def compute_pair_rotation_matrices(
    d_model: int, shift: float, base: float = SINUSOID_BASE, *, inclusive: bool = False
) -> np.ndarray:
    """(D // 2, 2, 2): block i turns (sin, cos) of pair i by `shift` positions: [[cos, sin], [-sin, cos]] of k w_i."""
    turn = shift * 2 * np.pi / compute_wavelengths(d_model, base, inclusive=inclusive)[: d_model // 2]
    sin, cos = np.sin(turn), np.cos(turn)
    return np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], -2)


def compute_shift_matrix(
    d_model: int, shift: float, base: float = SINUSOID_BASE, *, inclusive: bool = False
) -> np.ndarray:
    """M_k (D, D) with PE(pos + k) = M_k PE(pos) for every pos.

    An odd D leaves its last sine without the cosine it would need: that row and column are zero.
    """
    matrix = np.zeros((d_model, d_model))
    for pair, block in enumerate(compute_pair_rotation_matrices(d_model, shift, base, inclusive=inclusive)):
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = block
    return matrix


def measure_shift_error(
    table: np.ndarray, shift: int, base: float = SINUSOID_BASE, *, inclusive: bool = False
) -> np.ndarray:
    """(D // 2,) largest |M_k PE(pos) - PE(pos + k)| of each pair, over every pos that has a pos + k in `table` (P, D).

    Raises ValueError where none has.
    """
    positions = np.arange(max(0, -shift), len(table) - max(0, shift))
    if not len(positions):
        raise ValueError(f"A table of {len(table)} positions holds no two that are {abs(shift)} apart.")
    paired = table.astype(np.float64)[:, : table.shape[1] // 2 * 2].reshape(len(table), -1, 2)
    start, end = paired[positions], paired[positions + shift]
    turned = np.empty_like(start)
    blocks = compute_pair_rotation_matrices(table.shape[1], shift, base, inclusive=inclusive)
    for row, (of_sine, of_cosine) in enumerate(np.moveaxis(blocks, 0, -1)):
        turned[..., row] = of_sine * start[..., 0] + of_cosine * start[..., 1]
    return np.abs(turned - end).max(axis=(0, 2))


@dataclass(frozen=True, eq=False)
class Uniqueness:
    """How well positions can be told apart."""

    nearest: np.ndarray
    """(P,) the position most like each."""
    distance: np.ndarray
    """(P,) Euclidean distance to it."""

    @property
    def pair(self) -> tuple[int, int]:
        """The two positions that are closest."""
        one = int(self.distance.argmin())
        return one, int(self.nearest[one])

    @property
    def smallest(self) -> float:
        return float(self.distance.min())


def find_nearest_other_positions(table: np.ndarray) -> Uniqueness:
    """Return the nearest other position of every position of a table (P, D), P of at least 2."""
    if len(table) < 2:
        raise ValueError("Uniqueness compares positions, so it needs at least two.")
    rows = table.astype(np.float64)
    square = np.square(rows).sum(1)
    nearest = np.empty(len(rows), dtype=int)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, len(rows))
        squared = square[start:stop, None] + square - 2 * rows[start:stop] @ rows.T
        squared[np.arange(stop - start), np.arange(start, stop)] = np.inf
        nearest[start:stop] = squared.argmin(1)
    # Again from the rows themselves: the sum above loses small distances to rounding.
    return Uniqueness(nearest, np.linalg.norm(rows - rows[nearest], axis=1))


# Positional heads: shuffle the words, and see whether a head's pattern stays at its places or follows the words.


MOST_SHUFFLES = 8
TOKENS_AT_ONCE = 2000


@dataclass(frozen=True)
class HeadScore:
    """How positional one head is on one sentence. All shares are of attention mass, 0 to 1."""

    kind: Kind
    layer: int
    head: int
    stays: float
    """Share that stays at its place when the words change places."""
    chance: float
    """Share expected to stay if the head looked at random places, in closed form: large for one that looks everywhere
    alike."""

    @property
    def score(self) -> float:
        """What stays beyond chance: 1 for a head that only knows places, about 0 for one that only knows words."""
        return (self.stays - self.chance) / (1 - self.chance) if self.chance < 1 else 0.0


@dataclass(frozen=True, eq=False)
class PositionalHeads:
    """Every head of a model on one sentence, and the sentence shuffled once to look at."""

    scores: tuple[HeadScore, ...]
    """The most positional first."""
    shuffled: AttentionTrace
    """Encoder and cross-attention with the source's pieces shuffled, the decoder's with the translation's."""
    shuffles: int
    """How many orders of the words `stays` is a mean over."""


def score_positional_heads(translator: Translator, translation: Translation, seed: int = 0) -> PositionalHeads:
    """Shuffle the source's pieces for the encoder and the cross-attention, the translation's for the decoder.

    </s> and <s> keep their places. A shuffled sentence is fed as it is: nothing is translated anew. Rows that may
    attend to one key only have no choice and do not count.
    """
    random = np.random.default_rng(seed)
    source = np.array(translation.source_ids)
    target = np.array(make_decoder_inputs(translation.target_ids))
    count = int(np.clip(TOKENS_AT_ONCE // max(len(source), len(target)), 2, MOST_SHUFFLES))
    sources, targets = (
        _make_shuffled_orders(len(source), "last", count, random),
        _make_shuffled_orders(len(target), "first", count, random),
    )
    of_source = _capture_traces(translator, source[sources], np.tile(target, (count + 1, 1)))
    of_target = _capture_traces(translator, np.tile(source, (count + 1, 1)), target[targets])
    found = []
    for kind, plain in translation.trace.maps.items():
        runs = of_target if kind == "decoder" else of_source
        weights = np.stack([run.maps[kind].weights for run in runs])
        choosing = find_multi_key_rows(plain.mask)
        stays = _compute_attention_overlap(weights[0], weights[1:])[..., choosing].mean((0, -1))
        chance = compute_expected_overlap(weights[0], plain.mask)[..., choosing].mean(-1)
        for layer, head in np.ndindex(*stays.shape):
            found.append(HeadScore(kind, layer, head, float(stays[layer, head]), float(chance[layer, head])))
    found.sort(key=lambda one: (-one.score, KINDS.index(one.kind), one.layer, one.head))
    shuffled = replace(of_source[1], decoder=of_target[1].decoder)
    return PositionalHeads(
        tuple(found), _name_shuffled_trace_axes(shuffled, translation.trace, sources[1], targets[1]), count
    )


def _make_shuffled_orders(
    length: int, fixed: Literal["first", "last"], count: int, random: np.random.Generator
) -> np.ndarray:
    """(count + 1, length): the order as it is, then shuffles of all but the first or the last."""
    orders = np.tile(np.arange(length), (count + 1, 1))
    part = orders[1:, 1:] if fixed == "first" else orders[1:, :-1]
    part[:] = random.permuted(part, axis=1)
    return orders


def _capture_traces(translator: Translator, source: np.ndarray, target: np.ndarray) -> list[AttentionTrace]:
    """The attention of every row of a batch."""
    with torch.inference_mode(), capture_attention(translator.model) as recording:
        translator.model(torch.tensor(source, device=translator.device), torch.tensor(target, device=translator.device))
    return [recording.sample(row) for row in range(len(source))]


def _name_shuffled_trace_axes(
    shuffled: AttentionTrace, plain: AttentionTrace, source: np.ndarray, target: np.ndarray
) -> AttentionTrace:
    """Rows and columns named by the pieces that really stood there; nothing was predicted."""
    encoder, decoder, cross = (shuffled.maps[kind] for kind in KINDS)
    pieces = tuple(plain.maps["encoder"].key_tokens[place] for place in source)
    written = plain.maps["decoder"].query_tokens
    moved = tuple(written[place] for place in target)
    return replace(
        shuffled,
        encoder=replace_tokens(encoder, pieces, pieces),
        decoder=replace_tokens(decoder, moved, moved),
        cross=replace_tokens(cross, written, pieces),
    )


def _compute_attention_overlap(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mass two rows share, 1 minus their total variation distance: (L,H,Q,K), (B,L,H,Q,K) -> (B,L,H,Q)."""
    return np.minimum(one, others).sum(-1)


def compute_expected_overlap(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the mean overlap of each row with a random order of it: (L,H,Q,K), (Q,K) -> (L,H,Q).

    Each key is as likely to get any of the row's n weights, so the mean over all orders is
    sum_j sum_k min(w_j, w_k) / n, which sorting gives: the i-th largest weight is the smaller one 2 i - 1 times.
    """
    largest_first = -np.sort(-np.where(mask, weights, 0.0), axis=-1)  # keys that are not allowed come last, as zeros
    times = 2 * np.arange(1, weights.shape[-1] + 1) - 1
    return (largest_first * times).sum(-1) / np.maximum(mask.sum(-1), 1)
