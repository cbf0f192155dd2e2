"""What sums to 1? Rows must. Where another axis does, or none, the softmax or what came after it is at fault."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .evidence import rows_that_sum
from .inputs import Arrays, softmax
from .precision import precision


@dataclass(frozen=True, eq=False)
class SumFault:
    """Codes that explain the sums, the likeliest first, and the rows (B, L, H, Q) that do not sum to 1."""

    codes: tuple[str, ...]
    rows: np.ndarray
    detail: str


def check_sums(arrays: Arrays, allowed: np.ndarray | None) -> SumFault | None:
    """The fault of the sums, or None. ``allowed`` (B, L, H, Q, K) is what was meant, where that is known."""
    tolerance = precision(arrays.weights).row_tolerance(max(arrays.sizes[3:]))
    rows = ~rows_that_sum(arrays.weights, tolerance) | _striped(arrays.weights)[..., None]
    if arrays.transposed and _sum_to_one(arrays.weights, -1, tolerance).all():
        return SumFault(("transposed",), np.ones_like(rows), "")
    if not rows.any():
        return None
    units = rows.any(-1)
    if _sum_to_one(arrays.weights, -2, tolerance)[units].all():
        return SumFault(_which_way(arrays, allowed, units), rows, "")
    for axis, name in ((2, "heads"), (0, "samples"), (1, "layers")):
        if arrays.weights.shape[axis] > 1 and _sum_to_one(arrays.weights, axis, tolerance).all():
            return SumFault(("softmax-axis",), rows, f"it ran over the {name}")
    return _after_softmax(arrays, allowed, rows, tolerance)


def _striped(weights: np.ndarray) -> np.ndarray:
    """(B, L, H): some columns are NaN from top to bottom and the others are not: a softmax down blocked columns."""
    nan = np.isnan(weights)
    columns = nan.all(-2)
    clean = (nan == columns[..., None, :]).all((-1, -2))
    return clean & columns.any(-1) & ~columns.all(-1)


def _sum_to_one(weights: np.ndarray, axis: int, tolerance: float) -> np.ndarray:
    """Units (or anything, reduced to what is left) whose sums along ``axis`` are 1, 0 or NaN, and not all 0."""
    total = weights.sum(axis, dtype=np.float64)
    fine = (np.abs(total - 1) <= tolerance) | (total == 0) | np.isnan(total)
    some = np.abs(total - 1) <= tolerance
    return (fine.all(-1) & some.any(-1)) if axis in (-1, -2) else (fine.all() & some.any())[None]


def _which_way(arrays: Arrays, allowed: np.ndarray | None, units: np.ndarray) -> tuple[str, ...]:
    """Columns sum to 1: was the softmax wrong, or the picture turned?"""
    if _striped(arrays.weights).any():
        return ("softmax-axis",)
    by_scores = _by_scores(arrays, units)
    if by_scores:
        return (by_scores,)
    lit = arrays.weights > 0
    queries, keys = arrays.sizes[3:]
    if queries == keys:
        masks = [allowed] if allowed is not None else [np.tri(queries, dtype=bool)[None, None, None]]
        straight = any(not (lit & ~mask)[units].any() for mask in masks)
        turned = any(not (np.swapaxes(lit, -1, -2) & ~mask)[units].any() for mask in masks)
        if turned != straight:
            return ("transposed",) if turned else ("softmax-axis",)
        if not turned and allowed is not None and not allowed.all():
            return ("softmax-axis",)
    return "softmax-axis", "transposed"


def _by_scores(arrays: Arrays, units: np.ndarray) -> str:
    """The answer of the scores, where they are given: which softmax makes these weights."""
    scores = arrays.masked_scores if arrays.masked_scores is not None else arrays.scores
    if scores is None:
        return ""
    scores = scores.astype(np.float64)
    down = np.swapaxes(softmax(np.swapaxes(scores, -1, -2)), -1, -2)
    if _near(arrays.weights, down, units):
        return "softmax-axis"
    across = softmax(scores)
    if scores.shape[-1] == scores.shape[-2] and _near(np.swapaxes(arrays.weights, -1, -2), across, units):
        return "transposed"
    return ""


def _near(weights: np.ndarray, expected: np.ndarray, units: np.ndarray) -> bool:
    return bool(np.allclose(np.nan_to_num(weights[units]), np.nan_to_num(expected[units]), atol=6e-3))


def _after_softmax(arrays: Arrays, allowed: np.ndarray | None, rows: np.ndarray, tolerance: float) -> SumFault | None:
    """No axis sums to 1: something happened to the weights after the softmax."""
    weights = np.nan_to_num(arrays.weights)
    total = weights.sum(-1, dtype=np.float64)
    if (total > 1 + tolerance).any():
        return SumFault(("dropout-on",), rows, f"row sums go from {total.min():.2f} to {total.max():.2f}")
    shown = np.broadcast_to(weights.__gt__(0).any((0, 1, 2)) if allowed is None else allowed, weights.shape)
    holes = (shown & (weights == 0)).any(-1) & rows
    if holes.any():
        return SumFault(("dropout-on",), rows, f"row sums go from {total.min():.2f} to {total.max():.2f}")
    whole = shown.all(-1)
    if rows[~whole & (total > 0)].all() and not rows[whole].any() and not whole.all():
        return SumFault(
            ("over-blocked",), rows, "rows sum to less than 1: the mask was multiplied in after the softmax"
        )
    return None
