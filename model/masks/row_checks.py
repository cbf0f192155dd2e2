"""Rows without an allowed key, and rows whose weights do not sum to 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..language import say, to_say
from .arrays import Arrays
from .evidence import Evidence, detect_precision
from .fault_catalogue import FAULTS, NOTHING_TO_FIX, Level
from .findings import DiagnosisCase
from .intent import IntendedMask
from .scores import FILL_ROW_LIMIT
from .softmax import softmax
from .structure import CAUSAL

# Rows without an allowed key: zeros are right, NaN and a uniform row are not; doubled fills have their own look.


_KEYLESS_FIX = "mask = ~mask  # if these tokens are real: nn.MultiheadAttention blocks where True"
_CAUSE_CODES = tuple(code for code in FAULTS if code not in ("pad-query", "weak-fill", "dropout-on"))
"""Faults that may themselves have made a row NaN or uniform."""


@dataclass(frozen=True, eq=False)
class EmptyRows:
    """Rows (B, L, H, Q) in which no key is allowed, by what they show."""

    nan: np.ndarray
    uniform: np.ndarray
    all_zero: np.ndarray
    double_fill: np.ndarray
    """Rows whose weight lies on the cells that only one of two masks blocks."""
    fills_only: np.ndarray
    """Rows whose masked scores hold nothing but fills, and nothing shows how many."""


def find_empty_rows(arrays: Arrays, evidence: Evidence, intent: IntendedMask, padding: np.ndarray) -> EmptyRows:
    """Return the empty rows of an intent by what they show. ``padding`` (B, Q) marks padding queries."""
    empty = np.broadcast_to(~intent.allowed.any(-1), evidence.all_zero.shape)
    uniform = evidence.uniform & empty
    if uniform.any():  # Few masks have such rows, and all cells are looked at.
        uniform &= (evidence.nonzero & ~intent.columns).any(-1) | ~padding[:, None, None]
    double = (
        _find_double_fill_rows(arrays, evidence, intent)
        & empty
        & ~_find_keyless_padding_rows(intent, padding)[:, None, None]
    )
    if double.any():  # its sibling rows, in which no cell is blocked twice, come from the same two fills
        double |= evidence.uniform & empty
    return EmptyRows(
        nan=evidence.nan & empty,
        uniform=uniform & ~double,
        all_zero=evidence.all_zero & empty,
        double_fill=double,
        fills_only=find_fill_rows(arrays) & empty & ~double & (evidence.uniform | evidence.nonzero.any(-1)),
    )


def _find_keyless_padding_rows(intent: IntendedMask, padding: np.ndarray) -> np.ndarray:
    """Return (B, Q): padding queries after all real tokens, which only a window leaves without a key.

    Nothing reads them, and two fills in them spoil nothing.
    """
    queries, keys = intent.base.shape[-2:]
    places = np.arange(queries) + keys - queries
    last = keys - 1 - np.argmax(intent.keep[:, ::-1], -1)
    return padding & (places > last[:, None])


def _find_double_fill_rows(arrays: Arrays, evidence: Evidence, intent: IntendedMask) -> np.ndarray:
    """Return (B, L, H, Q): rows nonzero exactly where one of padding and structure blocks and the other does not."""
    if not intent.has_padding:
        return np.zeros_like(evidence.all_zero)
    keep = np.broadcast_to(intent.columns, intent.allowed.shape)
    once = intent.base ^ keep
    twice = ~intent.base & ~keep
    pattern = (evidence.nonzero == once).all(-1) & twice.any(-1)
    if arrays.masked_scores is None:
        return pattern
    return pattern | (find_fill_rows(arrays) & _find_heads_with_two_fill_levels(arrays.masked_scores))


def find_fill_rows(arrays: Arrays) -> np.ndarray:
    """Return (B, L, H, Q), axes possibly 1: rows whose largest masked score is a large finite fill."""
    if arrays.masked_scores is None:
        return np.zeros((1, 1, 1, 1), bool)
    largest = arrays.masked_scores.max(-1).astype(np.float64)
    return np.isfinite(largest) & (largest <= FILL_ROW_LIMIT)


def _find_heads_with_two_fill_levels(masked: np.ndarray) -> np.ndarray:
    """Return (B, L, H, 1): heads in which some cell is filled about twice as deep as another."""
    masked = masked.astype(np.float64)
    fills = np.where(np.isfinite(masked) & (masked <= FILL_ROW_LIMIT), masked, np.nan)
    with np.errstate(invalid="ignore"):
        high = np.where(np.isnan(fills), -np.inf, fills).max((-1, -2))
        low = np.where(np.isnan(fills), np.inf, fills).min((-1, -2))
        return (np.isfinite(low) & (low < 1.5 * high))[..., None]


def find_fully_masked_samples(case: DiagnosisCase) -> np.ndarray:
    """Return (B,): samples in which no query has a key, although some token is real as far as the arrays say."""
    keep, evidence = case.arrays.key_keep, case.evidence
    blank = (evidence.all_zero | evidence.nan).all((1, 2, 3)) & evidence.all_zero.any((1, 2, 3))
    return np.asarray(blank if keep is None else blank & keep.any(-1))


def report_keyless_samples(case: DiagnosisCase) -> None:
    """Add samples without any key, where no mistake was found that may have caused it."""
    if not any(finding.severity == "error" for finding in case.findings):
        where = find_fully_masked_samples(case)[:, None, None, None, None]
        case.add("empty-row", where, looks=say("no query may attend to any key"), fix=_KEYLESS_FIX, level="certain")


def find_uniform_keyless_samples(case: DiagnosisCase) -> np.ndarray:
    """Return (B,): samples of which every row is uniform over all keys, because no key is allowed in them.

    That is said by the padding, the mask or the meant mask; where none is given, by other samples whose rows differ.
    """
    evidence, given = case.evidence, case.arrays
    uniform = evidence.uniform.all((1, 2, 3))
    known = [array.any(tuple(range(1, array.ndim))) for array in _list_given_masks(given)]
    if known:
        return uniform & np.any([~np.broadcast_to(keys, uniform.shape) for keys in known], axis=0)
    return np.asarray(uniform & (evidence.uniform & evidence.uniform_nonzero).all((1, 2, 3)) & (given.sizes[3] > 1))


def _list_given_masks(arrays: Arrays) -> list[np.ndarray]:
    return [array for array in (arrays.key_keep, arrays.mask, arrays.meant) if array is not None]


def report_uniform_samples(case: DiagnosisCase) -> None:
    """Add samples without an allowed key that attend to every key alike, and look for nothing more in them."""
    samples = find_uniform_keyless_samples(case)
    arrays = case.arrays
    looks = say("no key of this sample may be attended to, and its rows are uniform over all of them, padding included")
    own = arrays.key_keep is not None and arrays.sizes[3] == arrays.sizes[4] and arrays.self_or_cross != "cross"
    said = [array for array in (arrays.mask, arrays.meant) if array is not None] or (
        _list_given_masks(arrays) and not own
    )
    level: Level = "certain" if said else "likely"
    case.add("empty-row", samples[:, None, None, None, None], looks=looks, level=level)
    case.exclude_units(np.broadcast_to(samples[:, None, None], arrays.sizes[:3]))


def report_empty_rows(case: DiagnosisCase, intent: IntendedMask) -> None:
    """Add rows without keys, and padding queries."""
    evidence = case.evidence
    padding = case.find_padding_queries(intent)
    rows = find_empty_rows(case.arrays, evidence, intent, padding)
    blank = rows.nan | rows.uniform
    if not case.has(*_CAUSE_CODES):  # a padding query whose row was emptied as well
        spare = padding[:, None, None]
        blank |= evidence.nan & spare
        blank |= evidence.uniform & spare & (evidence.nonzero & ~intent.allowed).any(-1) & ~rows.double_fill
    case.add_row_finding("double-fill", rows.double_fill)
    if not case.has("fill-overflow"):
        case.add_row_finding("empty-row", blank & evidence.nan, say("its row is NaN, and NaN spreads"))
    uniform = blank & ~evidence.nan & ~find_uniform_keyless_samples(case)[:, None, None, None]
    idle = padding[:, None, None] & uniform
    case.add_row_finding(
        "empty-row", uniform & ~idle, say("its row is uniform over all keys, future and padding included")
    )
    unread = say("its row is uniform, and nothing reads it: a padding query")
    case.add_row_finding("empty-row", idle, unread, "info", NOTHING_TO_FIX)
    untold = say("these masked scores do not show whether there was one fill or two")
    case.add_row_finding("double-fill", rows.fills_only, untold, "warning")
    case.add_row_finding("empty-row", rows.all_zero, say("its row is all zero, which is right"), "info", NOTHING_TO_FIX)
    if not case.findings:  # A guess leaves rows without a key out, so they contradict nothing.
        unlike = evidence.all_zero & intent.allowed.any(-1) & _find_queries_between_rows(~evidence.all_zero)
        looks = say("in the pattern of the other queries it would have some")
        case.add_row_finding("empty-row", unlike, looks, "info", NOTHING_TO_FIX)
    with_weight = padding[:, None, None] & evidence.nonzero.any(-1) & ~evidence.nan
    case.add_row_finding("pad-query", with_weight)


def _find_queries_between_rows(rows: np.ndarray) -> np.ndarray:
    """Return (..., Q): queries with some of the `rows` (..., Q) before and some after them; at the ends is padding."""
    return np.logical_or.accumulate(rows, -1) & np.logical_or.accumulate(rows[..., ::-1], -1)[..., ::-1]


# Rows must sum to 1. Where another axis does, or none, the softmax or what came after it is at fault.


_MOST_ROWS, _SEVERAL_ROWS = 0.8, 3
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


def check_row_sums(arrays: Arrays, allowed: np.ndarray | None, is_said: bool = False) -> SumFault | None:
    """Return the fault of the sums, or None. ``allowed`` (B, L, H, Q, K) is what was meant, where that is known.

    ``is_said`` tells whether somebody said it; else the mask may be narrower, as windows are.
    """
    tolerance = detect_precision(arrays.weights).row_sum_tolerance(max(arrays.sizes[3:]))
    rows = (
        ~_find_acceptable_sums(arrays.weights, -1, tolerance) | _find_heads_with_nan_columns(arrays.weights)[..., None]
    )
    if arrays.transposed and _find_heads_with_unit_sums(arrays.weights, -1, tolerance).all():
        return SumFault(("transposed",), np.ones_like(rows), "")
    if not rows.any():
        return None
    units = rows.any(-1)
    if _find_heads_with_unit_sums(arrays.weights, -2, tolerance)[units].all():
        return SumFault(_identify_column_sum_faults(arrays, allowed, units), rows, "")
    for axis, over in _OTHER_AXES:
        if arrays.weights.shape[axis] > 1 and _find_heads_with_unit_sums(arrays.weights, axis, tolerance).all():
            return SumFault(("softmax-axis",), rows, say(over))
    return _find_post_softmax_fault(arrays, allowed, rows, tolerance, is_said)


def _find_heads_with_nan_columns(weights: np.ndarray) -> np.ndarray:
    """Return (B, L, H): some columns are NaN from top to bottom, the others not: a softmax down blocked columns."""
    nan = np.isnan(weights)
    columns = nan.all(-2)
    clean = (nan == columns[..., None, :]).all((-1, -2))
    return clean & columns.any(-1) & ~columns.all(-1)


def _find_acceptable_sums(weights: np.ndarray, axis: int, tolerance: float) -> np.ndarray:
    """Return True where the sum along ``axis`` is 1, 0 or NaN; of the shape of the weights without that axis."""
    total = weights.sum(axis, dtype=np.float64)
    return (np.abs(total - 1) <= tolerance) | (total == 0) | np.isnan(total)


def _find_heads_with_unit_sums(weights: np.ndarray, axis: int, tolerance: float) -> np.ndarray:
    """Return (B, L, H), or (1,) for another axis than queries and keys: all sums are 1, 0 or NaN, and some are 1."""
    acceptable = _find_acceptable_sums(weights, axis, tolerance)
    some = np.abs(weights.sum(axis, dtype=np.float64) - 1) <= tolerance
    return (acceptable.all(-1) & some.any(-1)) if axis in (-1, -2) else (acceptable.all() & some.any())[None]


def _identify_column_sum_faults(arrays: Arrays, allowed: np.ndarray | None, units: np.ndarray) -> tuple[str, ...]:
    """Return what made the columns sum to 1: a softmax over the queries, or the exchange of queries and keys."""
    if _find_heads_with_nan_columns(arrays.weights).any():
        return ("softmax-axis",)
    by_scores = _identify_score_softmax_axis(arrays, units)
    if by_scores:
        return (by_scores,)
    nonzero = arrays.weights > 0
    queries, keys = arrays.sizes[3:]
    if queries == keys:
        mask = allowed if allowed is not None else CAUSAL.build_mask(queries, keys)[None, None, None]
        straight = not (nonzero & ~mask)[units].any()
        transposed = not (np.swapaxes(nonzero, -1, -2) & ~mask)[units].any()
        if transposed != straight:
            return ("transposed",) if transposed else ("softmax-axis",)
        if not transposed and allowed is not None and not allowed.all():
            return ("softmax-axis",)
    return "softmax-axis", "transposed"


def _identify_score_softmax_axis(arrays: Arrays, units: np.ndarray) -> str:
    """Return the code of which softmax of the scores makes these weights; empty without scores, or for neither."""
    scores = arrays.masked_scores if arrays.masked_scores is not None else arrays.scores
    if scores is None:
        return ""
    scores = scores.astype(np.float64)
    over_queries = np.swapaxes(softmax(np.swapaxes(scores, -1, -2)), -1, -2)
    if _are_weights_close(arrays.weights, over_queries, units):
        return "softmax-axis"
    over_keys = softmax(scores)
    if scores.shape[-1] == scores.shape[-2] and _are_weights_close(
        np.swapaxes(arrays.weights, -1, -2), over_keys, units
    ):
        return "transposed"
    return ""


def _are_weights_close(weights: np.ndarray, expected: np.ndarray, units: np.ndarray) -> bool:
    return bool(np.allclose(np.nan_to_num(weights[units]), np.nan_to_num(expected[units]), atol=6e-3))


def _find_post_softmax_fault(
    arrays: Arrays, allowed: np.ndarray | None, rows: np.ndarray, tolerance: float, is_said: bool
) -> SumFault | None:
    """Return what happened to the weights after the softmax, where no axis sums to 1.

    Dropout scales the cells that it leaves, so that some rows exceed 1; a mask multiplied in leaves rows that allow
    every key at 1; a sink in the denominator, or softmax1, takes something from every row.
    """
    weights = np.nan_to_num(arrays.weights)
    total = weights.sum(-1, dtype=np.float64)
    if _is_mask_multiplied(arrays, weights):
        return SumFault(("applied-late",), rows, say("the weights are the softmax of the scores, times the mask"))
    if (total > 1 + tolerance).any():
        return SumFault(("dropout-on",), rows, _sum_range_text(total.min(), total.max()))
    seen = (weights > 0).any((0, 1, 2))
    expected = np.broadcast_to(seen if allowed is None else allowed, weights.shape)
    possible = expected if is_said else expected & seen
    whole = (weights > 0).all(-1)
    live = total > 0
    blocked = ~whole & live
    if whole.any() and not rows[whole].any() and rows[blocked].any() and rows[blocked].mean() > _MOST_ROWS:
        detail = say("rows with blocked keys sum to less than 1, the others to 1")
        return SumFault(("applied-late",), rows, detail, "certain" if whole.sum() >= _SEVERAL_ROWS else "likely")
    if int(rows.sum()) < _FEW_ROWS and (possible & (weights == 0)).any(-1)[rows].any():
        return SumFault(("dropout-on",), rows, _sum_range_text(total.min(), total.max()))
    sums = _sum_range_text(total[live].min(initial=1.0), total.max())
    late = not whole.any() and (~whole & live).any() and not _is_causal_window(possible)
    codes = ("extra-mass", "applied-late") if late else ("extra-mass",)
    return SumFault(codes, rows, sums)


def _is_causal_window(expected: np.ndarray) -> bool:
    """Whether a mask (B, L, H, Q, K) hides the future, and some key from later queries.

    Multiplied into causal weights it would leave the rows within the window at 1.
    """
    causal = CAUSAL.build_mask(*expected.shape[-2:])
    behind = causal & ~expected & expected.any(-2, keepdims=True)
    return not (expected & ~causal).any() and bool((behind & expected.any(-1, keepdims=True)).any())


def _sum_range_text(least: float, most: float) -> str:
    return say("row sums go from {least:.2f} to {most:.2f}", least=float(least), most=float(most))


def _is_mask_multiplied(arrays: Arrays, weights: np.ndarray) -> bool:
    """Whether the weights are the softmax of the scores with some cells set to zero, and not shared out again."""
    scores = arrays.scores
    if scores is None:
        return False
    plain = softmax(scores.astype(np.float64))
    kept = weights > 0
    return bool((~kept).any() and np.allclose(weights[kept], plain[kept], rtol=2e-2, atol=1e-4))
