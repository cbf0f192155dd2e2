"""What the scores tell: masks that were added in place of filling, fills that are too weak, too large, or doubled."""

from __future__ import annotations

import numpy as np

from .evidence import Evidence, depth
from .inputs import BLOCKS, Arrays

DOUBLE = -1e8
"""A row whose largest masked score is at or below this has nothing but fills in it."""
_WEAK = 1e-2
"""Blocked cells below this weight are a weak fill rather than an open mask."""
_FAR = 1e9
"""Of two cells that one fill lowered, one is hardly ever so many times larger than the other."""
_LOOSE = 0.3
"""Nats by which weights may miss their scores where only rough agreement is asked."""
_EXACT, _ROUGH = 2e3, 4.0
"""So many of the smallest number can be read to within a thousandth, or to within an eighth."""
_SUPPRESSED = 5.0
"""Nats by which a fill, however weak, lowers a cell."""


def offsets(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """(B, L, H, Q, K): what was added to each score, up to one constant a row (its largest is 0); NaN where unknown."""
    return None if arrays.scores is None else _added(arrays.scores.astype(np.float64), arrays, evidence)


def _unfilled(arrays: Arrays) -> np.ndarray | None:
    """(B, L, H, Q, K) float64: the scores, or those after the mask with +inf where they are fills; None without."""
    if arrays.scores is not None:
        return arrays.scores.astype(np.float64)
    if arrays.masked_scores is None:
        return None
    after = arrays.masked_scores.astype(np.float64)
    return np.where(after > BLOCKS, after, np.inf)


def _added(scores: np.ndarray, arrays: Arrays, evidence: Evidence, units: float = _EXACT) -> np.ndarray:
    """(B, L, H, Q, K): what turns ``scores`` into the logarithm of the weights, the largest of a row being 0.

    NaN for weights of fewer than ``units`` of the smallest number, which are rounded too much to be read.
    """
    floor = max(1e-12 if units == _EXACT else 0.0, units * evidence.precision.smallest)
    known = (arrays.weights > floor) & np.isfinite(scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        added = np.where(known, np.log(arrays.weights.astype(np.float64)) - scores, np.nan)
    top = np.where(known, added, -np.inf).max(-1, keepdims=True)
    return added - np.where(np.isfinite(top), top, 0)


def _tolerance(arrays: Arrays, evidence: Evidence) -> float:
    """How exactly log weights and scores can agree."""
    scores = arrays.scores if arrays.scores is not None else arrays.masked_scores
    size = float(np.abs(scores[np.isfinite(scores)]).max(initial=1.0)) if scores is not None else 1.0
    stored = 2.0**-9 if scores is not None and scores.dtype == np.float16 else 2.0**-11
    return min(0.2, 0.02 + 4 * evidence.precision.relative + stored * size)


def soft_mask(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """(B, L, H, Q, K): cells tinted by a mask of zeros and ones, or None."""
    steps, tolerance = _steps(arrays, evidence), _tolerance(arrays, evidence)
    if steps is not None:
        low = np.isfinite(steps) & (np.abs(steps - np.round(steps)) <= tolerance) & (np.round(steps) >= -2)
        fits = (low | np.isnan(steps)).all((-1, -2))
        tinted = low & (np.round(steps) < 0) & fits[..., None, None]
        return tinted if tinted.any() else None
    if arrays.bias is None or arrays.mask is None:
        return None
    if np.isin(arrays.bias, (0, 1)).all() and arrays.mask.any() and not arrays.mask.all():
        tinted = np.broadcast_to(~arrays.mask, evidence.lit.shape) & evidence.lit
        blocks = not (tinted.any() and (evidence.lit | ~arrays.mask).all())
        return None if blocks else tinted
    return None


def _steps(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """What was added, by masked scores where they are given, else as the weights imply; the largest of a row is 0."""
    if arrays.scores is None:
        return None
    if arrays.masked_scores is None:
        return offsets(arrays, evidence)
    with np.errstate(invalid="ignore"):
        added = arrays.masked_scores.astype(np.float64) - arrays.scores.astype(np.float64)
    added = np.where(np.isfinite(added) & (added > -10), added, np.nan)
    top = np.where(np.isnan(added), -np.inf, added).max(-1, keepdims=True)
    return added - np.where(np.isfinite(top), top, 0)


def unmasked(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """(B, L, H): heads whose weights are the plain softmax of their scores; None without scores."""
    added = offsets(arrays, evidence)
    if added is None:
        return None
    scores = np.asarray(arrays.scores, np.float64)
    rough = _added(scores, arrays, evidence, _ROUGH)
    near = (np.abs(added) <= _tolerance(arrays, evidence)) | (np.isnan(added) & (np.abs(rough) <= _LOOSE))
    return (near | np.isnan(rough)).all((-1, -2))


def too_small(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """(B, L, H, Q, K): zeros that the scores alone explain, as too small to be stored; None if they cannot say."""
    scores = _unfilled(arrays)
    if scores is None:
        return None
    added = _added(scores, arrays, evidence)
    filled = (evidence.flat | evidence.odd)[..., None]  # Rows of nothing but fills.
    if not ((np.abs(added) <= _LOOSE) | np.isnan(added) | filled).all():
        return None
    lit = np.where(evidence.lit & np.isfinite(scores), scores, -np.inf)
    top = lit.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore", over="ignore"):
        log_total = top + np.log(np.exp(lit - top).sum(-1, keepdims=True))
    return np.asarray(~evidence.lit & (scores - log_total < 1.5 - evidence.precision.limit))


def weak_fill(arrays: Arrays, evidence: Evidence, allowed: np.ndarray) -> np.ndarray | None:
    """(B, L, H, Q, K): blocked cells that a finite fill left with some weight, or None."""
    live = allowed.any(-1, keepdims=True)
    leaking = evidence.lit & ~allowed & live & ~evidence.flat[..., None]
    if not leaking.any():
        return None
    if _filled_by_scores(arrays, evidence, allowed, leaking) or _equal_in_rows(arrays, allowed, leaking):
        return leaking
    return leaking if arrays.scores is None and _all_weak(arrays, evidence, allowed, leaking) else None


def _filled_by_scores(arrays: Arrays, evidence: Evidence, allowed: np.ndarray, leaking: np.ndarray) -> bool:
    """Whether leaking cells were lowered, or set to one value, rather than left alone."""
    if arrays.masked_scores is not None:
        after = arrays.masked_scores.astype(np.float64)
        if arrays.scores is None:
            return bool(
                _constant(after[leaking]) and after[leaking].max() < np.median(after[evidence.lit & allowed]) - 1
            )
        before = arrays.scores.astype(np.float64)
        changed = np.abs(after - before)[leaking] > 1.5
        return bool(changed.all())
    if arrays.scores is None:
        return False
    scores = arrays.scores.astype(np.float64)
    added = _added(scores, arrays, evidence, _ROUGH)
    anchor = np.where(np.broadcast_to(allowed, added.shape), added, -np.inf)
    anchor = np.where(np.isnan(anchor), -np.inf, anchor).max(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        lowered = (added - anchor)[leaking]
    known = np.isfinite(lowered)
    if not known.any():
        return bool(arrays.weights[leaking].max() < _WEAK)
    filled, lowered = (scores[leaking] + lowered)[known], lowered[known]
    return bool((lowered < -_SUPPRESSED).all() or (_constant(filled) and np.abs(lowered).max() > _SUPPRESSED))


def _all_weak(arrays: Arrays, evidence: Evidence, allowed: np.ndarray, leaking: np.ndarray) -> bool:
    """Whether little leaks, and where some of it is far from vanishing the rest of its row leaks as well."""
    if arrays.weights[leaking].max() >= _WEAK or not depth(evidence, arrays.weights, allowed, leaking).beyond:
        return False
    far = arrays.weights > evidence.precision.smallest * _FAR
    closed = (~allowed & ~evidence.lit).any(-1, keepdims=True)
    return not (leaking & far & closed).any()


def _constant(values: np.ndarray) -> bool:
    """Two or more values, all the same within a thousandth."""
    return values.size > 1 and float(np.ptp(values)) <= 1e-3 * max(1.0, float(np.abs(values).max()))


def _equal_in_rows(arrays: Arrays, allowed: np.ndarray, leaking: np.ndarray) -> bool:
    """Whether the blocked cells of every leaking row hold one value and the allowed ones do not: the mark of a fill."""
    rows = leaking.sum(-1) > 1
    if not rows.any() or (leaking.any(-1) & ~rows).sum() > rows.sum():
        return False
    cells = arrays.weights[rows]
    inside = np.broadcast_to(allowed, leaking.shape)[rows] & (cells > 0)
    out = leaking[rows]
    high, low = np.where(out, cells, -np.inf).max(-1), np.where(out, cells, np.inf).min(-1)
    best = np.where(inside, cells, -np.inf).max(-1)
    worst = np.where(inside, cells, np.inf).min(-1)
    same = high - low <= 1e-3 * high
    varied = (inside.sum(-1) > 1) & (best - worst > 1e-2 * best)
    return bool(same.all() and varied.any())


def overflow(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """(B, L, H, Q, K): cells whose fill is finite but beyond float16, where float16 was computed in; or None."""
    if not _half(arrays, evidence):
        return None
    largest = float(np.finfo(np.float16).max)
    for fill in (arrays.bias, arrays.masked_scores):
        if fill is not None:
            with np.errstate(invalid="ignore"):
                beyond = np.isfinite(fill) & (np.abs(fill.astype(np.float64)) > largest)
            if beyond.any():
                return np.broadcast_to(beyond, evidence.lit.shape)
    return None


def _half(arrays: Arrays, evidence: Evidence) -> bool:
    """Whether the softmax ran in float16; float32 masked scores beside sound float16 weights say it did not."""
    if arrays.scores is not None:
        return arrays.scores.dtype == np.float16
    wide = arrays.masked_scores is not None and arrays.masked_scores.dtype != np.float16
    return arrays.weights.dtype == np.float16 and not (wide and arrays.bias is None and not evidence.nan.any())
