"""Whether the weights are the softmax of the scores given with them, and what would explain those that are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..language import say, to_say
from .arrays import Arrays
from .evidence import Evidence
from .index_ranges import format_key_ranges, format_query_ranges
from .scores import compute_score_tolerance, has_bias, measure_row_spread
from .softmax import is_blocked

# One residual shows it: log(weights) - scores, which within a row is one number, the logarithm of its normaliser. It is
# taken over the allowed cells that have weight; what leaks beside them is for the mask to explain.


_READABLE = 2e3
"""A weight of so many of the smallest number is read to within a thousandth."""
_CLEAR = 4
"""Scores in a row differ clearly where they do by so many times what rounding may."""
_LARGEST_SCORE = 1e6
"""Scores of attention are smaller; a number beyond was added to them."""
_NEVER_SCALE = 1e-2
"""A scale below this is none: the scores have no part in the weights."""


@dataclass(frozen=True, eq=False)
class ScoreMismatch:
    """Rows whose weights do not follow from the scores, and what would explain them."""

    rows: np.ndarray
    """(B, L, H, Q) bool."""
    words: str
    """In the reader's language, without the end of the sentence."""
    sound: bool = False
    """Whether what explains them is common practice rather than a mistake."""


def find_score_mismatch(arrays: Arrays, evidence: Evidence, allowed: np.ndarray) -> ScoreMismatch | None:
    """Return the rows whose weights on ``allowed`` cells are not the softmax of the scores given; None without any.

    ``allowed`` is (B, L, H, Q, K) bool, axes possibly 1: what was meant. Masked scores go before scores, to which an
    additive mask is added.
    """
    given = arrays.masked_scores if arrays.masked_scores is not None else arrays.scores
    if given is None or "weights" not in arrays.given or arrays.weights.dtype.itemsize < 4 > given.dtype.itemsize:
        return None
    given = given.astype(np.float64)
    bias = np.zeros((1, 1, 1, 1, 1))
    if arrays.masked_scores is None and has_bias(arrays) and arrays.bias is not None and arrays.mask is not None:
        bias = np.where(arrays.mask, arrays.bias, 0.0).astype(np.float64)
    readable = arrays.weights > max(1e-12, _READABLE * evidence.precision.smallest)
    cells = readable & allowed & np.isfinite(given) & ~is_blocked(np.where(np.abs(given) > _LARGEST_SCORE, 0, given))
    drowned = _find_precision_loss_rows(arrays, evidence, cells)
    if drowned is not None:
        return drowned
    cells &= ~is_blocked(given)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(arrays.weights.astype(np.float64))
    logs, given = np.where(cells, logs, 0.0), np.where(cells, given, 0.0)
    fit = _RowFit(logs, given, np.broadcast_to(bias, logs.shape), cells, 2 * compute_score_tolerance(arrays, evidence))
    rows = fit.misses(given + fit.bias)
    if not rows.any():
        return None
    for explain in _EXPLANATIONS:
        for words, sound in explain(fit, rows):
            return ScoreMismatch(rows, words, sound)
    residual = float(fit.spread(given + fit.bias)[rows].max())
    return ScoreMismatch(rows, say(_UNEXPLAINED_TEXT, nats=residual))


@dataclass(frozen=True, eq=False)
class _RowFit:
    """The logarithms of weights beside scores, over (B, L, H, Q, K) cells that count."""

    logs: np.ndarray
    scores: np.ndarray
    bias: np.ndarray
    cells: np.ndarray
    near: float

    def spread(self, scores: np.ndarray) -> np.ndarray:
        """Return (B, L, H, Q): by how many nats the weights of a row miss the softmax of these scores."""
        return measure_row_spread(self.logs - scores, self.cells)

    def misses(self, scores: np.ndarray) -> np.ndarray:
        """Return (B, L, H, Q): rows that are not the softmax of these scores."""
        return np.asarray(self.spread(scores) > self.near)

    def explains(self, scores: np.ndarray, rows: np.ndarray) -> bool:
        """Whether the ``rows`` are the softmax of these scores."""
        return not self.misses(scores)[rows].any()


_Explanations = Iterator[tuple[str, bool]]
_DROWNED_TEXT = to_say(
    "the weights are equal where the scores differ: the scores after the mask lie at {value:.3g}, where {format} has "
    "steps of {step:.3g}, in which the scores drown: a large number was added where a query may attend"
)
_EQUAL_TEXT = to_say("in {queries} the weights are equal over the keys that are left: the scores have no part in them")
_SCALE_TEXT = to_say("they are the softmax of {scale:.3g} times these scores: the scale is missing, or applied twice")
_SCALE_BIAS_TEXT = to_say(
    "they are the softmax of {scale:.3g} times these scores and the bias given: the scale is missing, or applied twice"
)
_LATER_BIAS_TEXT = to_say("in {queries} the bias given is missing")
_OTHER_BIAS_TEXT = to_say("they have the bias of another sample")
_OTHER_HEAD_TEXT = to_say("they are the softmax of the scores of another head")
_OTHER_SAMPLE_TEXT = to_say("they are the softmax of the scores of another sample")
_DISTANCE_TEXT = to_say(
    "a bias by the distance of the keys was added that is not among the arrays, as ALiBi and T5 have it"
)
_CAP_TEXT = to_say("the scores were capped at {cap:.3g} by tanh, which these scores do not show yet")
_KEYS_TEXT = to_say("{keys} moved by the same amount in every row, by {nats:.2g} nats: a bias on these keys, or a sink")
_BLOCKS_TEXT = to_say("{keys} have a normaliser of their own in each row: the softmax was taken in parts")
_UNEXPLAINED_TEXT = to_say("they miss it by up to {nats:.2g} nats, and no known mistake explains it")


def _find_precision_loss_rows(arrays: Arrays, evidence: Evidence, cells: np.ndarray) -> ScoreMismatch | None:
    """Return the rows whose masked scores on allowed cells are so large that the scores beside them are lost."""
    masked = arrays.masked_scores if arrays.masked_scores is not None else arrays.bias
    if masked is None or arrays.scores is None:
        return None
    step = np.spacing(np.abs(np.where(np.isfinite(masked), masked, 0)).astype(masked.dtype)).astype(np.float64)
    near = 2 * compute_score_tolerance(arrays, evidence)
    deep = cells & (step > near) & (masked < 0)
    scores = arrays.scores.astype(np.float64)
    rows = (measure_row_spread(np.where(cells, scores, 0), cells) > _CLEAR * near) & (deep | ~cells).all(-1)
    if not rows.any():
        return None
    values = np.broadcast_to(masked, deep.shape)[deep & rows[..., None]]
    kind = str(masked.dtype)
    text = say(_DROWNED_TEXT, value=float(np.median(values)), step=float(np.spacing(np.abs(values).max())), format=kind)
    return ScoreMismatch(rows, text)


def _explain_by_score_scale(fit: _RowFit, rows: np.ndarray) -> _Explanations:
    varied = (
        rows & (fit.spread(np.zeros(())) <= fit.near) & (measure_row_spread(fit.scores, fit.cells) > _CLEAR * fit.near)
    )
    if varied.any() and not (rows & ~varied).any():
        yield say(_EQUAL_TEXT, queries=format_query_ranges(np.flatnonzero(rows.any((0, 1, 2))))), False
    biased = bool(fit.bias.any())
    for base in (fit.bias, np.zeros_like(fit.bias)):
        scale = _fit_scale(fit.logs - base, fit.scores, fit.cells & rows[..., None])
        if (
            abs(scale) > _NEVER_SCALE
            and abs(scale - 1) > _NEVER_SCALE
            and fit.explains(scale * fit.scores + base, rows)
        ):
            yield say(_SCALE_BIAS_TEXT if biased and base is fit.bias else _SCALE_TEXT, scale=scale), False


def _fit_scale(logs: np.ndarray, scores: np.ndarray, cells: np.ndarray) -> float:
    """Return by what number scores are multiplied in the logarithms, rows apart, by least squares."""
    count = np.maximum(cells.sum(-1, keepdims=True), 1)
    x, y = (
        np.where(cells, values - np.where(cells, values, 0).sum(-1, keepdims=True) / count, 0)
        for values in (scores, logs)
    )
    return float((x * y).sum() / max(float((x * x).sum()), 1e-12))


def _explain_by_misapplied_bias(fit: _RowFit, rows: np.ndarray) -> _Explanations:
    if not fit.bias.any():
        return
    if fit.explains(fit.scores, rows):
        yield say(_LATER_BIAS_TEXT, queries=format_query_ranges(np.flatnonzero(rows.any((0, 1, 2))))), False
    for step in range(1, fit.bias.shape[0]):
        if fit.explains(fit.scores + np.roll(fit.bias, step, 0), rows):
            yield say(_OTHER_BIAS_TEXT), False


def _explain_by_misplaced_heads_samples(fit: _RowFit, rows: np.ndarray) -> _Explanations:
    for axis, text in ((2, _OTHER_HEAD_TEXT), (0, _OTHER_SAMPLE_TEXT)):
        for step in range(1, fit.scores.shape[axis]):
            both = np.roll(fit.cells, step, axis) & fit.cells
            other = np.roll(fit.scores + fit.bias, step, axis)
            compared = (both.sum(-1) > 1)[rows].mean() > 0.5  # A row of one key in common fits any scores.
            if compared and not (measure_row_spread(fit.logs - other, both) > fit.near)[rows].any():
                yield say(text), False


def _explain_by_softcap(fit: _RowFit, rows: np.ndarray) -> _Explanations:
    largest = float(np.abs(fit.scores).max())
    for cap in np.geomspace(largest / 4, largest * 8, 200) if largest else ():
        if fit.explains(cap * np.tanh(fit.scores / cap) + fit.bias, rows):
            yield say(_CAP_TEXT, cap=float(cap)), True
            return


def _explain_by_distance_bias(fit: _RowFit, rows: np.ndarray) -> _Explanations:
    """Explain by a bias that depends, in each head, on the distance of the keys alone."""
    queries, keys = fit.cells.shape[-2:]
    distance = np.arange(keys)[None, :] - np.arange(queries)[:, None]
    for head in range(fit.cells.shape[2]):
        residual, cells = ((fit.logs - fit.scores - fit.bias)[:, :, head], fit.cells[:, :, head])
        if not _is_determined_by_index(np.broadcast_to(distance, cells.shape), residual, cells, fit.near):
            return
    yield say(_DISTANCE_TEXT), True


def _explain_by_shifted_keys(fit: _RowFit, rows: np.ndarray) -> _Explanations:
    """Some keys were moved, in every row by the same amount, or by an amount of its own: both leave a step."""
    keys = fit.cells.shape[-1]
    flat = (fit.logs - fit.scores - fit.bias).reshape(-1, keys)
    cells = fit.cells.reshape(-1, keys)
    groups = _group_keys_by_residual(flat, cells, fit.near)
    if not 2 <= len(groups) <= max(2, keys // 3):
        return
    groups.sort(key=len)
    moved, rest = np.concatenate(groups[:-1]), groups[-1]
    inside, outside = (np.where(cells[:, one], flat[:, one], np.nan) for one in (moved, rest))
    both = cells[:, moved].any(-1) & cells[:, rest].any(-1)
    steps = np.nanmedian(inside[both], -1) - np.nanmedian(outside[both], -1)
    where = format_key_ranges(np.sort(moved))
    if len(groups) == 2 and steps.size and np.ptp(steps) <= 2 * fit.near:
        yield say(_KEYS_TEXT, keys=where, nats=float(np.median(steps))), False
    else:
        yield say(_BLOCKS_TEXT, keys=where), False


def _group_keys_by_residual(residual: np.ndarray, cells: np.ndarray, near: float) -> list[np.ndarray]:
    """Return groups of keys that share a residual in every row; ``residual`` and ``cells`` are (rows, K)."""
    groups: list[list[int]] = []
    for key in np.flatnonzero(cells.any(0)):
        for group in groups:
            both = cells[:, key] & cells[:, group[-1]]
            if both.any() and (np.abs(residual[both, key] - residual[both, group[-1]]) <= near).all():
                group.append(int(key))
                break
        else:
            groups.append([int(key)])
    return [np.array(group) for group in groups]


def _is_determined_by_index(index: np.ndarray, values: np.ndarray, cells: np.ndarray, near: float) -> bool:
    """Whether, up to a number for each row, ``values`` depend on ``index`` alone; axes (B, L, Q, K)."""
    flat_values, flat_cells = (one.reshape(-1, one.shape[-1]) for one in (values, cells))
    flat_index = index.reshape(flat_cells.shape) - index.min()
    table = np.full(int(flat_index.max()) + 1, np.nan)
    order = np.argsort(-flat_cells.sum(-1))
    shared = 0
    for row in order:
        at = np.flatnonzero(flat_cells[row])
        known = at[~np.isnan(table[flat_index[row, at]])]
        if at.size and not known.size:
            if not np.isnan(table).all():
                return False
            shift = 0.0
        elif known.size:
            shift = float(np.median(flat_values[row, known] - table[flat_index[row, known]]))
            if (np.abs(flat_values[row, known] - shift - table[flat_index[row, known]]) > near).any():
                return False
            shared += known.size - 1
        else:
            continue
        fresh = at[np.isnan(table[flat_index[row, at]])]
        table[flat_index[row, fresh]] = flat_values[row, fresh] - shift
    return shared >= np.isfinite(table).sum()


_EXPLANATIONS: tuple[Callable[[_RowFit, np.ndarray], _Explanations], ...] = (
    _explain_by_misapplied_bias,
    _explain_by_score_scale,
    _explain_by_misplaced_heads_samples,
    _explain_by_softcap,
    _explain_by_distance_bias,
    _explain_by_shifted_keys,
)
"""Each yields (words, whether that is sound) of what explains the rows."""
