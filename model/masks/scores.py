"""What the scores show: masks added in place of filling, biases without effect, underflow, weak fills."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..language import say, to_say
from .arrays import Arrays
from .evidence import Evidence, measure_nonzero_cell_depth
from .softmax import is_blocked

# Masks added in place of filling, masks without effect, underflow, fills that overflow.


FILL_ROW_LIMIT = -1e8
"""A row whose largest masked score is at or below this has nothing but fills in it."""
_LOOSE_TOLERANCE = 0.3
"""Nats by which weights may miss their scores where rough agreement is enough."""
_EXACT_UNITS, ROUGH_UNITS = 2e3, 4.0
"""So many of the smallest number can be read to within a thousandth, or to within an eighth."""


def compute_score_offsets(
    scores: np.ndarray, arrays: Arrays, evidence: Evidence, units: float = _EXACT_UNITS
) -> np.ndarray:
    """Return (B, L, H, Q, K): what turns ``scores`` into the logarithm of the weights, the largest of a row being 0.

    NaN for weights of fewer than ``units`` of the smallest number, which are rounded too much to be read.
    """
    floor = max(1e-12 if units == _EXACT_UNITS else 0.0, units * evidence.precision.smallest)
    known = (arrays.weights > floor) & np.isfinite(scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        added = np.where(known, np.log(arrays.weights.astype(np.float64)) - scores, np.nan)
    largest = np.where(known, added, -np.inf).max(-1, keepdims=True)
    return added - np.where(np.isfinite(largest), largest, 0)


def compute_score_tolerance(arrays: Arrays, evidence: Evidence) -> float:
    """Return how exactly log weights and scores can agree, in nats."""
    scores = arrays.scores if arrays.scores is not None else arrays.masked_scores
    size = float(np.abs(scores[np.isfinite(scores)]).max(initial=1.0)) if scores is not None else 1.0
    stored = 2.0**-9 if scores is not None and scores.dtype == np.float16 else 2.0**-11
    return min(0.2, 0.02 + 4 * evidence.precision.relative + stored * size)


def find_added_boolean_mask_cells(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H, Q, K): cells that a mask of zeros and ones lowered by a step of 1 or 2, or None."""
    steps, near = _compute_added_scores(arrays, evidence), compute_score_tolerance(arrays, evidence)
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


def _compute_added_scores(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return what was added, by masked scores where they are given, else by the weights; the largest of a row is 0."""
    if arrays.scores is None:
        return None
    scores = arrays.scores.astype(np.float64)
    if arrays.masked_scores is None:
        return compute_score_offsets(scores, arrays, evidence)
    with np.errstate(invalid="ignore"):
        added = arrays.masked_scores.astype(np.float64) - scores
    added = np.where(np.isfinite(added) & (added > -10), added, np.nan)
    largest = np.where(np.isnan(added), -np.inf, added).max(-1, keepdims=True)
    return added - np.where(np.isfinite(largest), largest, 0)


def find_plain_softmax_heads(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H): heads whose weights are the plain softmax of their scores; None without scores."""
    if arrays.scores is None:
        return None
    scores = arrays.scores.astype(np.float64)
    added, rough = (
        compute_score_offsets(scores, arrays, evidence),
        compute_score_offsets(scores, arrays, evidence, ROUGH_UNITS),
    )
    near = (np.abs(added) <= compute_score_tolerance(arrays, evidence)) | (
        np.isnan(added) & (np.abs(rough) <= _LOOSE_TOLERANCE)
    )
    return (near | np.isnan(rough)).all((-1, -2))


def find_underflow_cells(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H, Q, K): zeros that the scores alone explain, as too small to be stored; None if they cannot."""
    scores = _remove_fills(arrays)
    if scores is None:
        return None
    added = compute_score_offsets(scores, arrays, evidence)
    fills_only = (evidence.uniform | evidence.uniform_nonzero)[..., None]
    if not ((np.abs(added) <= _LOOSE_TOLERANCE) | np.isnan(added) | fills_only).all():
        return None
    present = np.where(evidence.nonzero & np.isfinite(scores), scores, -np.inf)
    largest = present.max(-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0)
    with np.errstate(divide="ignore", over="ignore"):
        log_total = largest + np.log(np.exp(present - largest).sum(-1, keepdims=True))
    return np.asarray(~evidence.nonzero & (scores - log_total < 1.5 - evidence.precision.limit))


def _remove_fills(arrays: Arrays) -> np.ndarray | None:
    """Return (B, L, H, Q, K) float64: the scores, or those after the mask with +inf in place of fills; or None."""
    if arrays.scores is not None:
        return arrays.scores.astype(np.float64)
    if arrays.masked_scores is None:
        return None
    masked = arrays.masked_scores.astype(np.float64)
    return np.where(is_blocked(masked), np.inf, masked)


def find_positive_fill_cells(arrays: Arrays) -> np.ndarray | None:
    """Return (B, L, H, Q, K), axes possibly 1: cells of an additive mask that hold +inf; None where there are none."""
    if arrays.bias is None or arrays.bias.max() < np.inf:
        return None
    return np.isposinf(arrays.bias)


def find_overflow_cells(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H, Q, K): cells whose fill is finite but beyond float16, where the softmax ran in it; or None."""
    if not _is_softmax_in_float16(arrays, evidence):
        return None
    largest = float(np.finfo(np.float16).max)
    for fill in (arrays.bias, arrays.masked_scores):
        if fill is not None:
            with np.errstate(invalid="ignore"):
                beyond = np.isfinite(fill) & (np.abs(fill.astype(np.float64)) > largest)
            if beyond.any():
                return np.broadcast_to(beyond, evidence.nonzero.shape)
    return None


def _is_softmax_in_float16(arrays: Arrays, evidence: Evidence) -> bool:
    """Whether the softmax ran in float16; float32 masked scores beside sound float16 weights say it did not."""
    if arrays.scores is not None:
        return arrays.scores.dtype == np.float16
    wide = arrays.masked_scores is not None and arrays.masked_scores.dtype != np.float16
    given = "weights" in arrays.given
    return (
        given and arrays.weights.dtype == np.float16 and not (wide and arrays.bias is None and not evidence.nan.any())
    )


# Position biases that did not take effect as they were given: missing, of the wrong sign, of another head.


_MIN_SLOPE_KEYS = 4
"""Keys of a row from which a slope is told from chance."""
_MIN_BIAS_RATIO = 8
"""A bias is told from none where it moves scores by so many times what rounding may."""

BiasEffect = tuple[np.ndarray, str]
"""(B, L, H) units and what became of their bias, in words."""


def has_bias(arrays: Arrays) -> bool:
    """Whether an additive mask holds more than two values: a bias beside what it blocks."""
    return arrays.bias is not None and arrays.mask is not None and np.unique(arrays.bias[arrays.mask]).size > 1


def find_bias_effects(arrays: Arrays, evidence: Evidence) -> tuple[np.ndarray, list[BiasEffect]]:
    """Return (B, L, H) units whose weights are as the bias given makes them, and what became of it in others."""
    if not has_bias(arrays) or arrays.scores is None or arrays.bias is None or arrays.mask is None:
        return np.zeros(arrays.sizes[:3], bool), []
    added = compute_score_offsets(arrays.scores.astype(np.float64), arrays, evidence)
    allowed = np.broadcast_to(arrays.mask, arrays.sizes)
    judged = ~(evidence.nonzero & ~allowed & allowed.any(-1, keepdims=True)).any((-1, -2))
    cells = allowed & np.isfinite(added)
    bias = np.broadcast_to(np.where(arrays.mask, arrays.bias, 0.0).astype(np.float64), arrays.sizes)
    near = 2 * compute_score_tolerance(arrays, evidence)
    judged = judged & (measure_row_spread(bias, cells).max(-1) > _MIN_BIAS_RATIO * near)
    fits = measure_row_spread(added - bias, cells).max(-1) <= near
    found: list[BiasEffect] = []
    left = judged & ~fits
    for words, other in _generate_bias_variants(bias):
        wrong = left & (measure_row_spread(added - other, cells).max(-1) <= near)
        if wrong.any():
            found.append((wrong, say(words)))
        left = left & ~wrong
    return judged & fits, found


def _generate_bias_variants(bias: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what may have been added in the place of a bias (B, L, H, Q, K), the message of it first."""
    never = to_say("the bias given never arrived: the weights are the softmax of the scores without it")
    yield never, np.zeros_like(bias)
    yield to_say("the bias given has taken effect with the opposite sign"), -bias
    for step in range(1, bias.shape[2]):
        yield to_say("the bias given is that of another head"), np.roll(bias, step, 2)


def find_reversed_distance_bias_heads(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H): heads whose scores were raised in proportion to the distance of the key; None for none.

    ALiBi lowers them (Press et al. 2022); nobody wants tokens to be looked for the more the farther away they are.
    """
    queries, keys = arrays.sizes[3:]
    if arrays.scores is None or has_bias(arrays) or min(queries, keys) < _MIN_SLOPE_KEYS:
        return None
    added = compute_score_offsets(arrays.scores.astype(np.float64), arrays, evidence)
    distance = np.abs(np.arange(keys) - np.arange(queries)[:, None] - (keys - queries)).astype(np.float64)
    cells = np.isfinite(added)
    far = np.broadcast_to(distance, added.shape)
    slope = _fit_distance_slope(added, far, cells)
    near = 2 * compute_score_tolerance(arrays, evidence)
    straight = measure_row_spread(added - slope[..., None, None] * far, cells).max(-1) <= near
    long = (cells.sum(-1) >= _MIN_SLOPE_KEYS).any(-1)
    found = straight & long & (slope * (_MIN_SLOPE_KEYS - 1) > _MIN_BIAS_RATIO * near)
    return found if found.any() else None


def _fit_distance_slope(added: np.ndarray, distance: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return (B, L, H): the slope of what was added over the distance, rows apart, by least squares."""
    count = np.maximum(cells.sum(-1, keepdims=True), 1)

    def centre_rows(values: np.ndarray) -> np.ndarray:
        kept = np.where(cells, values, 0.0)
        return np.where(cells, kept - kept.sum(-1, keepdims=True) / count, 0.0)

    x, y = centre_rows(distance), centre_rows(added)
    return (x * y).sum((-1, -2)) / np.maximum((x * x).sum((-1, -2)), 1e-12)


def measure_row_spread(values: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return (B, L, H, Q): the largest difference of two values of a row, among the cells that count."""
    high, low = np.where(cells, values, -np.inf).max(-1), np.where(cells, values, np.inf).min(-1)
    return np.where(cells.any(-1), high - low, 0.0)


# Fills that are finite and too small: blocked cells that keep a little weight.


_MAX_WEAK_WEIGHT = 1e-2
"""Blocked cells below this weight are a weak fill rather than an open mask."""
_HARMLESS_WEIGHT, _HARMLESS_RATIO = 1e-30, 1e-20
"""Blocked cells below this weight, and this part of every allowed one of their row, are worth nothing: scores 40 larger
would change no sum. So lie the cells that Swin (Liu et al. 2021) fills with -100, unless the scores are extreme."""
_MAX_FILL_RATIO = 1e9
"""Of two cells that one fill lowered, one is hardly ever so many times larger than the other."""
_LOWER_ROWS_PART = 0.9
"""Part of the rows in which a fill lies below every allowed cell; equal scores, as of an unfilled cache, need not."""
_MIN_FILL_DEPTH = 5.0
"""Nats by which a fill, however weak, lowers a cell."""


def find_weak_fill_cells(arrays: Arrays, evidence: Evidence, allowed: np.ndarray) -> np.ndarray | None:
    """Return (B, L, H, Q, K): blocked cells that a finite fill left with some weight, or None."""
    if arrays.bias is None and not arrays.given & {"weights", "masked_scores"}:
        return None  # a mask of booleans fills nothing
    if arrays.has_even_rows:
        return None  # its fills leave nothing
    live = allowed.any(-1, keepdims=True)
    leaking = evidence.nonzero & ~allowed & live & ~evidence.uniform[..., None]
    if not leaking.any():
        return None
    if _is_fill_in_scores(arrays, evidence, allowed, leaking) or _has_constant_leaks_in_rows(arrays, allowed, leaking):
        return leaking
    return leaking if arrays.scores is None and _are_leaks_weak(arrays, evidence, allowed, leaking) else None


def is_fill_harmless(weights: np.ndarray, allowed: np.ndarray, cells: np.ndarray) -> bool:
    """Whether the blocked ``cells`` (B, L, H, Q, K) lie far below 1, and below every allowed cell of their rows."""
    rows = cells.any(-1)
    least = np.where(allowed, weights, np.inf).min(-1)
    largest = np.where(cells, weights, 0).max(-1)
    deep = (largest < _HARMLESS_WEIGHT) & (largest < _HARMLESS_RATIO * least)
    return bool(deep[rows].all())


def _is_fill_in_scores(arrays: Arrays, evidence: Evidence, allowed: np.ndarray, leaking: np.ndarray) -> bool:
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
    added = compute_score_offsets(scores, arrays, evidence, ROUGH_UNITS)
    anchor = np.where(np.broadcast_to(allowed, added.shape), added, -np.inf)
    anchor = np.where(np.isnan(anchor), -np.inf, anchor).max(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        lowered = (added - anchor)[leaking]
    known = np.isfinite(lowered)
    if not known.any():
        return bool(arrays.weights[leaking].max() < _MAX_WEAK_WEIGHT)
    filled, lowered = (scores[leaking] + lowered)[known], lowered[known]
    return bool(
        (lowered < -_MIN_FILL_DEPTH).all() or (_is_constant(filled) and np.abs(lowered).max() > _MIN_FILL_DEPTH)
    )


def _is_constant(values: np.ndarray) -> bool:
    """Whether there are two or more values, all the same within a thousandth."""
    return values.size > 1 and float(np.ptp(values)) <= 1e-3 * max(1.0, float(np.abs(values).max()))


def _has_constant_leaks_in_rows(arrays: Arrays, allowed: np.ndarray, leaking: np.ndarray) -> bool:
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
    return bool(same.all() and varied.any() and np.mean(high <= worst) > _LOWER_ROWS_PART)


def _are_leaks_weak(arrays: Arrays, evidence: Evidence, allowed: np.ndarray, leaking: np.ndarray) -> bool:
    """Whether little leaks, and where some of it is far from vanishing the rest of its row leaks as well."""
    if (
        arrays.weights[leaking].max() >= _MAX_WEAK_WEIGHT
        or not measure_nonzero_cell_depth(evidence, arrays.weights, allowed, leaking).beyond
    ):
        return False
    far = arrays.weights > evidence.precision.smallest * _MAX_FILL_RATIO
    closed = (~allowed & ~evidence.nonzero).any(-1, keepdims=True)
    return not (leaking & far & closed).any()
