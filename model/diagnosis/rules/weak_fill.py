"""Fills that are finite and too small: blocked cells that keep a little weight."""

from __future__ import annotations

import numpy as np

from ..inputs.arrays import Arrays
from ..inputs.evidence import Evidence, depth
from .score_checks import ROUGH, offsets

_WEAK = 1e-2
"""Blocked cells below this weight are a weak fill rather than an open mask."""
_FAR = 1e9
"""Of two cells that one fill lowered, one is hardly ever so many times larger than the other."""
_LOWER = 0.9
"""Part of the rows in which a fill lies below every allowed cell; equal scores, as of an unfilled cache, need not."""
_SUPPRESSED = 5.0
"""Nats by which a fill, however weak, lowers a cell."""


def weak_fill_cells(arrays: Arrays, evidence: Evidence, allowed: np.ndarray) -> np.ndarray | None:
    """Return (B, L, H, Q, K): blocked cells that a finite fill left with some weight, or None."""
    live = allowed.any(-1, keepdims=True)
    leaking = evidence.nonzero & ~allowed & live & ~evidence.uniform[..., None]
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
            usual = np.median(after[evidence.nonzero & allowed])
            return bool(_is_constant(after[leaking]) and after[leaking].max() < usual - 1)
        before = arrays.scores.astype(np.float64)
        changed = np.abs(after - before)[leaking] > 1.5
        return bool(changed.all())
    if arrays.scores is None:
        return False
    scores = arrays.scores.astype(np.float64)
    added = offsets(scores, arrays, evidence, ROUGH)
    anchor = np.where(np.broadcast_to(allowed, added.shape), added, -np.inf)
    anchor = np.where(np.isnan(anchor), -np.inf, anchor).max(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        lowered = (added - anchor)[leaking]
    known = np.isfinite(lowered)
    if not known.any():
        return bool(arrays.weights[leaking].max() < _WEAK)
    filled, lowered = (scores[leaking] + lowered)[known], lowered[known]
    return bool((lowered < -_SUPPRESSED).all() or (_is_constant(filled) and np.abs(lowered).max() > _SUPPRESSED))


def _is_constant(values: np.ndarray) -> bool:
    """Whether there are two or more values, all the same within a thousandth."""
    return values.size > 1 and float(np.ptp(values)) <= 1e-3 * max(1.0, float(np.abs(values).max()))


def _equal_in_rows(arrays: Arrays, allowed: np.ndarray, leaking: np.ndarray) -> bool:
    """Whether the blocked cells of every leaking row hold one value and the allowed ones do not: the mark of a fill."""
    rows = leaking.sum(-1) > 1
    if not rows.any() or (leaking.any(-1) & ~rows).sum() > rows.sum():
        return False
    cells = arrays.weights[rows]
    inside = np.broadcast_to(allowed, leaking.shape)[rows] & (cells > 0)
    outside = leaking[rows]
    high, low = np.where(outside, cells, -np.inf).max(-1), np.where(outside, cells, np.inf).min(-1)
    best = np.where(inside, cells, -np.inf).max(-1)
    worst = np.where(inside, cells, np.inf).min(-1)
    same = high - low <= 1e-3 * high
    varied = (inside.sum(-1) > 1) & (best - worst > 1e-2 * best)
    return bool(same.all() and varied.any() and np.mean(high <= worst) > _LOWER)


def _all_weak(arrays: Arrays, evidence: Evidence, allowed: np.ndarray, leaking: np.ndarray) -> bool:
    """Whether little leaks, and where some of it is far from vanishing the rest of its row leaks as well."""
    if arrays.weights[leaking].max() >= _WEAK or not depth(evidence, arrays.weights, allowed, leaking).beyond:
        return False
    far = arrays.weights > evidence.precision.smallest * _FAR
    closed = (~allowed & ~evidence.nonzero).any(-1, keepdims=True)
    return not (leaking & far & closed).any()
