"""What sums to 1: rows must. Where another axis does, or none, the softmax or what came after it is at fault."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...masking.softmax import softmax
from ...masking.structure import CAUSAL
from ..inputs.arrays import Arrays
from ..inputs.evidence import precision


@dataclass(frozen=True, eq=False)
class SumFault:
    """A fault of the sums."""

    codes: tuple[str, ...]
    """Codes that explain the sums, the likeliest first."""
    rows: np.ndarray
    """(B, L, H, Q) bool: rows that do not sum to 1."""
    detail: str


def check_sums(arrays: Arrays, allowed: np.ndarray | None) -> SumFault | None:
    """Return the fault of the sums, or None. ``allowed`` (B, L, H, Q, K) is what was meant, where that is known."""
    tolerance = precision(arrays.weights).row_tolerance(max(arrays.sizes[3:]))
    rows = ~_acceptable_sums(arrays.weights, -1, tolerance) | _nan_columns(arrays.weights)[..., None]
    if arrays.transposed and _sum_to_one(arrays.weights, -1, tolerance).all():
        return SumFault(("transposed",), np.ones_like(rows), "")
    if not rows.any():
        return None
    units = rows.any(-1)
    if _sum_to_one(arrays.weights, -2, tolerance)[units].all():
        return SumFault(_softmax_or_transposed(arrays, allowed, units), rows, "")
    for axis, name in ((2, "heads"), (0, "samples"), (1, "layers")):
        if arrays.weights.shape[axis] > 1 and _sum_to_one(arrays.weights, axis, tolerance).all():
            return SumFault(("softmax-axis",), rows, f"it ran over the {name}")
    return _after_softmax(arrays, allowed, rows, tolerance)


def _nan_columns(weights: np.ndarray) -> np.ndarray:
    """Return (B, L, H): some columns are NaN from top to bottom, the others not: a softmax down blocked columns."""
    nan = np.isnan(weights)
    columns = nan.all(-2)
    clean = (nan == columns[..., None, :]).all((-1, -2))
    return clean & columns.any(-1) & ~columns.all(-1)


def _acceptable_sums(weights: np.ndarray, axis: int, tolerance: float) -> np.ndarray:
    """Return True where the sum along ``axis`` is 1, 0 or NaN; of the shape of the weights without that axis."""
    total = weights.sum(axis, dtype=np.float64)
    return (np.abs(total - 1) <= tolerance) | (total == 0) | np.isnan(total)


def _sum_to_one(weights: np.ndarray, axis: int, tolerance: float) -> np.ndarray:
    """Return (B, L, H), or (1,) for another axis than queries and keys: all sums are 1, 0 or NaN, and some are 1."""
    acceptable = _acceptable_sums(weights, axis, tolerance)
    some = np.abs(weights.sum(axis, dtype=np.float64) - 1) <= tolerance
    return (acceptable.all(-1) & some.any(-1)) if axis in (-1, -2) else (acceptable.all() & some.any())[None]


def _softmax_or_transposed(arrays: Arrays, allowed: np.ndarray | None, units: np.ndarray) -> tuple[str, ...]:
    """Return what made the columns sum to 1: a softmax over the queries, or the exchange of queries and keys."""
    if _nan_columns(arrays.weights).any():
        return ("softmax-axis",)
    by_scores = _by_scores(arrays, units)
    if by_scores:
        return (by_scores,)
    nonzero = arrays.weights > 0
    queries, keys = arrays.sizes[3:]
    if queries == keys:
        mask = allowed if allowed is not None else CAUSAL.allowed(queries, keys)[None, None, None]
        straight = not (nonzero & ~mask)[units].any()
        transposed = not (np.swapaxes(nonzero, -1, -2) & ~mask)[units].any()
        if transposed != straight:
            return ("transposed",) if transposed else ("softmax-axis",)
        if not transposed and allowed is not None and not allowed.all():
            return ("softmax-axis",)
    return "softmax-axis", "transposed"


def _by_scores(arrays: Arrays, units: np.ndarray) -> str:
    """Return the code of which softmax of the scores makes these weights; empty without scores, or for neither."""
    scores = arrays.masked_scores if arrays.masked_scores is not None else arrays.scores
    if scores is None:
        return ""
    scores = scores.astype(np.float64)
    over_queries = np.swapaxes(softmax(np.swapaxes(scores, -1, -2)), -1, -2)
    if _close(arrays.weights, over_queries, units):
        return "softmax-axis"
    over_keys = softmax(scores)
    if scores.shape[-1] == scores.shape[-2] and _close(np.swapaxes(arrays.weights, -1, -2), over_keys, units):
        return "transposed"
    return ""


def _close(weights: np.ndarray, expected: np.ndarray, units: np.ndarray) -> bool:
    return bool(np.allclose(np.nan_to_num(weights[units]), np.nan_to_num(expected[units]), atol=6e-3))


def _after_softmax(arrays: Arrays, allowed: np.ndarray | None, rows: np.ndarray, tolerance: float) -> SumFault | None:
    """Return what happened to the weights after the softmax, where no axis sums to 1."""
    weights = np.nan_to_num(arrays.weights)
    total = weights.sum(-1, dtype=np.float64)
    dropout = SumFault(("dropout-on",), rows, f"row sums go from {total.min():.2f} to {total.max():.2f}")
    if (total > 1 + tolerance).any():
        return dropout
    expected = np.broadcast_to((weights > 0).any((0, 1, 2)) if allowed is None else allowed, weights.shape)
    holes = (expected & (weights == 0)).any(-1) & rows
    if holes.any():
        return dropout
    whole = expected.all(-1)
    if rows[~whole & (total > 0)].all() and not rows[whole].any() and not whole.all():
        detail = "rows sum to less than 1: the mask was multiplied in after the softmax"
        return SumFault(("over-blocked",), rows, detail)
    return None
