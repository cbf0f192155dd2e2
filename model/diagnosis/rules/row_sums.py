"""What sums to 1: rows must. Where another axis does, or none, the softmax or what came after it is at fault."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...language.say import say, to_say
from ...masking.softmax import softmax
from ...masking.structure import CAUSAL
from ..inputs.arrays import Arrays
from ..inputs.evidence import precision
from .fault_catalogue import Level

_MOST, _SEVERAL = 0.8, 3
"""Part of the rows with blocked keys that lack weight where a mask is multiplied in; rows that show it for certain."""
_FEW_ROWS = 6
"""Dropout leaves so many rows without a sum above 1 hardly ever."""
_OTHER_AXES = (
    (2, to_say("it ran over the heads")),
    (0, to_say("it ran over the samples")),
    (1, to_say("it ran over the layers")),
)


@dataclass(frozen=True, eq=False)
class SumFault:
    """A fault of the sums."""

    codes: tuple[str, ...]
    """Codes that explain the sums, the likeliest first."""
    rows: np.ndarray
    """(B, L, H, Q) bool: rows that do not sum to 1."""
    detail: str
    level: Level = "certain"


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
    for axis, over in _OTHER_AXES:
        if arrays.weights.shape[axis] > 1 and _sum_to_one(arrays.weights, axis, tolerance).all():
            return SumFault(("softmax-axis",), rows, say(over))
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
    """Return what happened to the weights after the softmax, where no axis sums to 1.

    Dropout scales the cells that it leaves, so that some rows exceed 1; a mask multiplied in leaves rows that allow
    every key at 1; a sink in the denominator, or softmax1, takes something from every row.
    """
    weights = np.nan_to_num(arrays.weights)
    total = weights.sum(-1, dtype=np.float64)
    if _is_multiplied(arrays, weights):
        return SumFault(("applied-late",), rows, say("the weights are the softmax of the scores, times the mask"))
    if (total > 1 + tolerance).any():
        return SumFault(("dropout-on",), rows, _range(total.min(), total.max()))
    expected = np.broadcast_to((weights > 0).any((0, 1, 2)) if allowed is None else allowed, weights.shape)
    whole = (weights > 0).all(-1)
    live = total > 0
    blocked = ~whole & live
    if whole.any() and not rows[whole].any() and rows[blocked].any() and rows[blocked].mean() > _MOST:
        detail = say("rows with blocked keys sum to less than 1, the others to 1")
        return SumFault(("applied-late",), rows, detail, "certain" if whole.sum() >= _SEVERAL else "likely")
    if int(rows.sum()) < _FEW_ROWS and (expected & (weights == 0)).any(-1)[rows].any():
        return SumFault(("dropout-on",), rows, _range(total.min(), total.max()))
    sums = _range(total[live].min(initial=1.0), total.max())
    codes = ("extra-mass", "applied-late") if not whole.any() and (~whole & live).any() else ("extra-mass",)
    return SumFault(codes, rows, sums)


def _range(least: float, most: float) -> str:
    return say("row sums go from {least:.2f} to {most:.2f}", least=float(least), most=float(most))


def _is_multiplied(arrays: Arrays, weights: np.ndarray) -> bool:
    """Whether the weights are the softmax of the scores with some cells set to zero, and not shared out again."""
    scores = arrays.scores
    if scores is None:
        return False
    plain = softmax(scores.astype(np.float64))
    kept = weights > 0
    return bool((~kept).any() and np.allclose(weights[kept], plain[kept], rtol=2e-2, atol=1e-4))
