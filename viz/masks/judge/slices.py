"""One sample, layer and head of what was judged, ready to be drawn, and what its outputs depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model.diagnosis import Arrays
from model.diagnosis.inputs.evidence import gather
from model.masking.softmax import softmax
from model.masking.toy_attention import Reader, mask_dependence, random_scores, weight_dependence

from .judgement import Judgement

LARGEST_RUN = 96
"""Queries or keys of the largest map on which gradients are taken."""


@dataclass(frozen=True, eq=False)
class Slice:
    """One sample, layer and head. All (Q, K)."""

    meant: np.ndarray | None
    allowed: np.ndarray | None
    bias: np.ndarray | None
    scores: np.ndarray | None
    masked: np.ndarray | None
    weights: np.ndarray
    rounded: np.ndarray
    """(Q,): rows in which a zero may be rounding."""
    idle: np.ndarray
    """(Q,): padding queries."""
    generated: bool
    """Whether the scores are random ones."""
    raw_mask: np.ndarray | None
    reader: Reader


def slice_of(judgement: Judgement, sample: int, layer: int, head: int) -> Slice:
    """One sample, layer and head, from 0."""
    arrays = judgement.arrays

    def one(array: np.ndarray | None) -> np.ndarray | None:
        if array is None:
            return None
        whole = np.broadcast_to(array, (*_grown(array.shape[:3], arrays.sizes[:3]), *arrays.sizes[3:]))
        return whole[sample, layer, head]

    allowed, bias = one(arrays.mask), one(arrays.bias)
    scores, masked, generated = _scores(one(arrays.scores), one(arrays.masked_scores), allowed, bias, arrays)
    weights = arrays.weights[sample, layer, head]
    if "weights" not in arrays.given and masked is not None:
        weights = softmax(masked.astype(np.float32), nan_rows=arrays.bias is not None)
    raw_mask = None
    if judgement.raw_mask is not None:
        shape = (arrays.sizes[0], arrays.sizes[2], *arrays.sizes[3:])
        raw_mask = np.broadcast_to(judgement.raw_mask, shape)[sample, head]
    # Where the verdict names a fault, a zero is taken for what it looks like.
    maybe_underflow = gather(arrays.weights).maybe_underflow[sample, layer, head].any(-1)
    rounded = maybe_underflow & judgement.diagnosis.sound
    meant = one(judgement.diagnosis.meant)
    return Slice(
        meant,
        allowed,
        bias,
        scores,
        masked,
        weights,
        rounded,
        _idle(judgement, sample),
        generated,
        raw_mask,
        judgement.reader,
    )


def _idle(judgement: Judgement, sample: int) -> np.ndarray:
    """(Q,): padding queries, as far as is said; in self-attention the padding keys where the verdict took them so."""
    arrays = judgement.arrays
    keep = arrays.query_keep
    if keep is None and any(one.code == "pad-query" for one in judgement.diagnosis.findings):
        keep = arrays.key_keep
    return np.zeros(arrays.sizes[3], bool) if keep is None else ~keep[sample]


def _grown(own: tuple[int, ...], want: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(a, b) for a, b in zip(own, want, strict=True))


def _scores(
    scores: np.ndarray | None,
    masked: np.ndarray | None,
    allowed: np.ndarray | None,
    bias: np.ndarray | None,
    arrays: Arrays,
) -> tuple[np.ndarray | None, np.ndarray | None, bool]:
    """Scores before and after the mask; random ones where there is a mask and no weights."""
    generated = scores is None and masked is None and "weights" not in arrays.given
    if generated:
        queries, keys = arrays.sizes[3:]
        scores = random_scores(1, 1, queries, keys)[0, 0]
    if masked is None and scores is not None and allowed is not None:
        masked = scores + bias if bias is not None else np.where(allowed, scores, -np.inf)
    return scores, masked, generated


def dependence(one: Slice, layers: int = 1) -> np.ndarray | None:
    """What each output depends on (Q, K), or None where the map is too large to run."""
    sizes = (1, 1, *one.weights.shape)
    if max(one.weights.shape) > LARGEST_RUN:
        return None
    mask = one.raw_mask if one.raw_mask is not None else one.bias if one.bias is not None else one.allowed
    if mask is None:
        return weight_dependence(one.weights[None, None])[0, 0]
    return mask_dependence(mask[None, None], (sizes[0], sizes[1], sizes[2], sizes[3]), one.reader, layers)[0, 0]
