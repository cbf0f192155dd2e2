"""What the scores show: masks added in place of filling, a mask without effect, underflow, fills that overflow."""

from __future__ import annotations

import numpy as np

from ...masking.blocked import is_blocked
from ..inputs.arrays import Arrays
from ..inputs.evidence import Evidence

FILLS_ONLY = -1e8
"""A row whose largest masked score is at or below this has nothing but fills in it."""
_LOOSE = 0.3
"""Nats by which weights may miss their scores where rough agreement is enough."""
_EXACT, ROUGH = 2e3, 4.0
"""So many of the smallest number can be read to within a thousandth, or to within an eighth."""


def offsets(scores: np.ndarray, arrays: Arrays, evidence: Evidence, units: float = _EXACT) -> np.ndarray:
    """Return (B, L, H, Q, K): what turns ``scores`` into the logarithm of the weights, the largest of a row being 0.

    NaN for weights of fewer than ``units`` of the smallest number, which are rounded too much to be read.
    """
    floor = max(1e-12 if units == _EXACT else 0.0, units * evidence.precision.smallest)
    known = (arrays.weights > floor) & np.isfinite(scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        added = np.where(known, np.log(arrays.weights.astype(np.float64)) - scores, np.nan)
    largest = np.where(known, added, -np.inf).max(-1, keepdims=True)
    return added - np.where(np.isfinite(largest), largest, 0)


def tolerance(arrays: Arrays, evidence: Evidence) -> float:
    """Return how exactly log weights and scores can agree, in nats."""
    scores = arrays.scores if arrays.scores is not None else arrays.masked_scores
    size = float(np.abs(scores[np.isfinite(scores)]).max(initial=1.0)) if scores is not None else 1.0
    stored = 2.0**-9 if scores is not None and scores.dtype == np.float16 else 2.0**-11
    return min(0.2, 0.02 + 4 * evidence.precision.relative + stored * size)


def soft_mask_cells(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H, Q, K): cells that a mask of zeros and ones lowered by a step of 1 or 2, or None."""
    steps, near = _steps(arrays, evidence), tolerance(arrays, evidence)
    if steps is not None:
        low = np.isfinite(steps) & (np.abs(steps - np.round(steps)) <= near) & (np.round(steps) >= -2)
        fits = (low | np.isnan(steps)).all((-1, -2))
        lowered = low & (np.round(steps) < 0) & fits[..., None, None]
        return lowered if lowered.any() else None
    if arrays.bias is None or arrays.mask is None:
        return None
    if np.isin(arrays.bias, (0, 1)).all() and arrays.mask.any() and not arrays.mask.all():
        lowered = np.broadcast_to(~arrays.mask, evidence.nonzero.shape) & evidence.nonzero
        blocks = not (lowered.any() and (evidence.nonzero | ~arrays.mask).all())
        return None if blocks else lowered
    return None


def _steps(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return what was added, by masked scores where they are given, else by the weights; the largest of a row is 0."""
    if arrays.scores is None:
        return None
    scores = arrays.scores.astype(np.float64)
    if arrays.masked_scores is None:
        return offsets(scores, arrays, evidence)
    with np.errstate(invalid="ignore"):
        added = arrays.masked_scores.astype(np.float64) - scores
    added = np.where(np.isfinite(added) & (added > -10), added, np.nan)
    largest = np.where(np.isnan(added), -np.inf, added).max(-1, keepdims=True)
    return added - np.where(np.isfinite(largest), largest, 0)


def unmasked_heads(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H): heads whose weights are the plain softmax of their scores; None without scores."""
    if arrays.scores is None:
        return None
    scores = arrays.scores.astype(np.float64)
    added, rough = offsets(scores, arrays, evidence), offsets(scores, arrays, evidence, ROUGH)
    near = (np.abs(added) <= tolerance(arrays, evidence)) | (np.isnan(added) & (np.abs(rough) <= _LOOSE))
    return (near | np.isnan(rough)).all((-1, -2))


def underflow_cells(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H, Q, K): zeros that the scores alone explain, as too small to be stored; None if they cannot."""
    scores = _unfilled_scores(arrays)
    if scores is None:
        return None
    added = offsets(scores, arrays, evidence)
    fills_only = (evidence.uniform | evidence.uniform_nonzero)[..., None]
    if not ((np.abs(added) <= _LOOSE) | np.isnan(added) | fills_only).all():
        return None
    present = np.where(evidence.nonzero & np.isfinite(scores), scores, -np.inf)
    largest = present.max(-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0)
    with np.errstate(divide="ignore", over="ignore"):
        log_total = largest + np.log(np.exp(present - largest).sum(-1, keepdims=True))
    return np.asarray(~evidence.nonzero & (scores - log_total < 1.5 - evidence.precision.limit))


def _unfilled_scores(arrays: Arrays) -> np.ndarray | None:
    """Return (B, L, H, Q, K) float64: the scores, or those after the mask with +inf in place of fills; or None."""
    if arrays.scores is not None:
        return arrays.scores.astype(np.float64)
    if arrays.masked_scores is None:
        return None
    masked = arrays.masked_scores.astype(np.float64)
    return np.where(is_blocked(masked), np.inf, masked)


def positive_fill_cells(arrays: Arrays) -> np.ndarray | None:
    """Return (B, L, H, Q, K), axes possibly 1: cells of an additive mask that hold +inf; None where there are none."""
    positive = None if arrays.bias is None else np.isposinf(arrays.bias)
    return positive if positive is not None and positive.any() else None


def overflow_cells(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H, Q, K): cells whose fill is finite but beyond float16, where the softmax ran in it; or None."""
    if not _in_float16(arrays, evidence):
        return None
    largest = float(np.finfo(np.float16).max)
    for fill in (arrays.bias, arrays.masked_scores):
        if fill is not None:
            with np.errstate(invalid="ignore"):
                beyond = np.isfinite(fill) & (np.abs(fill.astype(np.float64)) > largest)
            if beyond.any():
                return np.broadcast_to(beyond, evidence.nonzero.shape)
    return None


def _in_float16(arrays: Arrays, evidence: Evidence) -> bool:
    """Whether the softmax ran in float16; float32 masked scores beside sound float16 weights say it did not."""
    if arrays.scores is not None:
        return arrays.scores.dtype == np.float16
    wide = arrays.masked_scores is not None and arrays.masked_scores.dtype != np.float16
    return arrays.weights.dtype == np.float16 and not (wide and arrays.bias is None and not evidence.nan.any())
