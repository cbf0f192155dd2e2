"""Which heads look at places and which at words: shuffle the words and see what a head's pattern does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from ..analysis.head_statistics import rows_with_choice
from ..capture.attention import capture_attention
from ..network.autoregressive import decoder_inputs
from ..trace import KINDS, AttentionTrace, Kind, with_tokens
from ..translate import Translation, Translator

SHUFFLES = 8
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


def positional_heads(translator: Translator, translation: Translation, seed: int = 0) -> PositionalHeads:
    """Shuffle the source's pieces for the encoder and the cross-attention, the translation's for the decoder.

    </s> and <s> keep their places. A shuffled sentence is fed as it is: nothing is translated anew. Rows that may
    attend to one key only have no choice and do not count.
    """
    random = np.random.default_rng(seed)
    source = np.array(translation.source_ids)
    target = np.array(decoder_inputs(translation.target_ids))
    count = int(np.clip(TOKENS_AT_ONCE // max(len(source), len(target)), 2, SHUFFLES))
    sources, targets = _orders(len(source), "last", count, random), _orders(len(target), "first", count, random)
    of_source = _traces(translator, source[sources], np.tile(target, (count + 1, 1)))
    of_target = _traces(translator, np.tile(source, (count + 1, 1)), target[targets])
    found = []
    for kind, plain in translation.trace.maps.items():
        runs = of_target if kind == "decoder" else of_source
        weights = np.stack([run.maps[kind].weights for run in runs])
        choosing = rows_with_choice(plain.mask)
        stays = _overlap(weights[0], weights[1:])[..., choosing].mean((0, -1))
        chance = expected_overlap(weights[0], plain.mask)[..., choosing].mean(-1)
        for layer, head in np.ndindex(*stays.shape):
            found.append(HeadScore(kind, layer, head, float(stays[layer, head]), float(chance[layer, head])))
    found.sort(key=lambda one: (-one.score, KINDS.index(one.kind), one.layer, one.head))
    shuffled = replace(of_source[1], decoder=of_target[1].decoder)
    return PositionalHeads(tuple(found), _named(shuffled, translation.trace, sources[1], targets[1]), count)


def _orders(length: int, fixed: Literal["first", "last"], count: int, random: np.random.Generator) -> np.ndarray:
    """(count + 1, length): the order as it is, then shuffles of all but the first or the last."""
    orders = np.tile(np.arange(length), (count + 1, 1))
    part = orders[1:, 1:] if fixed == "first" else orders[1:, :-1]
    part[:] = random.permuted(part, axis=1)
    return orders


def _traces(translator: Translator, source: np.ndarray, target: np.ndarray) -> list[AttentionTrace]:
    """The attention of every row of a batch."""
    with torch.inference_mode(), capture_attention(translator.model) as recording:
        translator.model(torch.tensor(source, device=translator.device), torch.tensor(target, device=translator.device))
    return [recording.sample(row) for row in range(len(source))]


def _named(shuffled: AttentionTrace, plain: AttentionTrace, source: np.ndarray, target: np.ndarray) -> AttentionTrace:
    """Rows and columns named by the pieces that really stood there; nothing was predicted."""
    encoder, decoder, cross = (shuffled.maps[kind] for kind in KINDS)
    pieces = tuple(plain.maps["encoder"].key_tokens[place] for place in source)
    written = plain.maps["decoder"].query_tokens
    moved = tuple(written[place] for place in target)
    return replace(
        shuffled,
        encoder=with_tokens(encoder, pieces, pieces),
        decoder=with_tokens(decoder, moved, moved),
        cross=with_tokens(cross, written, pieces),
    )


def _overlap(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mass two rows share, 1 minus their total variation distance: (L,H,Q,K), (B,L,H,Q,K) -> (B,L,H,Q)."""
    return np.minimum(one, others).sum(-1)


def expected_overlap(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The mean overlap of each row with itself in a random order of the keys it may see: (L,H,Q,K), (Q,K) -> (L,H,Q).

    Each key is as likely to get any of the row's n weights, so the mean over all orders is
    sum_j sum_k min(w_j, w_k) / n, which sorting gives: the i-th largest weight is the smaller one 2 i - 1 times.
    """
    largest_first = -np.sort(-np.where(mask, weights, 0.0), axis=-1)  # keys that are not allowed come last, as zeros
    times = 2 * np.arange(1, weights.shape[-1] + 1) - 1
    return (largest_first * times).sum(-1) / np.maximum(mask.sum(-1), 1)
