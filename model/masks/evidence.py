"""What the weights show by themselves: nonzero cells, empty and uniform rows, number format, sink column."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from .arrays import Arrays

_ONE_HOT, _SHORT_RANGE = 0.9, 20.0
"""In formats that span fewer nats than _SHORT_RANGE, rows whose largest weight exceeds _ONE_HOT may lose the others."""
_ONE_HOT_RATIO = 2
"""So many times more rows with one weight than with several make a head sharp, however little those few spread."""
_CALM, _FEW_ROWS = 0.1, 3
"""A head that spreads less than this part of the range in all of so many rows has no row in which weights vanish."""
_DEEP = 0.5
"""A row that spreads more than this part of such a format's range may go beyond it."""
_RARE = 1e-3
"""A head is too calm for rounding where fewer cells than this would be expected to vanish."""


@dataclass(frozen=True)
class Precision:
    """How finely the weights were stored, judged by their values, since files often widen them."""

    relative: float
    """Half a unit in the last place."""
    smallest: float
    """Below this a weight becomes zero."""
    prior: float
    """Chance that an allowed cell became zero, before any is seen."""

    @property
    def limit(self) -> float:
        """Range of log weights that the format can hold below 1."""
        return float(-np.log(self.smallest))

    def row_sum_tolerance(self, keys: int) -> float:
        """How far from 1 a correct row may sum."""
        rounding = self.smallest * keys if self.smallest > 1e-9 else 0.0
        return 2e-3 + 2 * self.relative + rounding


_FLOAT16 = Precision(2.0**-11, 6e-8, 0.2)
_BFLOAT16 = Precision(2.0**-8, 1e-38, 0.005)
_FLOAT32 = Precision(2.0**-24, 1e-38, 0.005)
_FLOAT64 = Precision(2.0**-53, 1e-308, 0.001)


def detect_precision(weights: np.ndarray) -> Precision:
    """Return the most forgiving of all formats that hold every weight exactly; ``weights`` of any shape."""
    values = _list_distinct_weights(weights)
    fits = [_FLOAT64, *_find_exact_formats(values)]
    if weights.dtype == np.float16:
        fits.append(_FLOAT16)
    if values.size > 3:
        fits += [
            Precision(unit / 2, unit / 2, 0.3) for unit in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6) if _is_rounded(values, unit)
        ]
    worst = (max(getattr(fit, name) for fit in fits) for name in ("relative", "smallest", "prior"))
    return Precision(*worst)


def _list_distinct_weights(weights: np.ndarray) -> np.ndarray:
    """Return the finite weights above 0, each once; of rows that hold one value alone, one cell is looked at."""
    with np.errstate(invalid="ignore"):
        largest = weights.max(-1)
        other = weights != 0
        other &= weights != largest[..., None]
        level = np.isfinite(largest) & ~other.any(-1)
    values = np.concatenate([largest[level], weights[~level].ravel()])
    return np.unique(values[np.isfinite(values) & (values > 0)])


def _find_exact_formats(values: np.ndarray) -> list[Precision]:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
        half = np.array_equal(values.astype(np.float16).astype(values.dtype), values)
    if not np.array_equal(single.astype(values.dtype), values):
        return []
    brain = not (single.view(np.uint32) & 0xFFFF).any()
    return [_FLOAT32] + [_FLOAT16] * half + [_BFLOAT16] * brain


def _is_rounded(values: np.ndarray, unit: float) -> bool:
    digits = round(-np.log10(unit))
    return np.array_equal(np.round(values.astype(np.float64), digits).astype(values.dtype), values)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Facts about one set of weights, each over (B, L, H, ...)."""

    nonzero: np.ndarray
    """(B, L, H, Q, K): above zero."""
    all_zero: np.ndarray
    """(B, L, H, Q): rows of zeros."""
    nan: np.ndarray
    """(B, L, H, Q): rows with NaN somewhere."""
    uniform: np.ndarray
    """(B, L, H, Q): the same value in every column, two columns at least."""
    uniform_nonzero: np.ndarray
    """(B, L, H, Q): the same value in every nonzero column, three at least, in a head that has uneven rows too. In a
    head without uneven rows all scores are equal, and such rows say nothing."""
    maybe_underflow: np.ndarray
    """(B, L, H, Q, K or 1): cells whose zero may be nothing but rounding, as the head or the row is so sharp."""
    precision: Precision
    from_scores: bool = False
    """Whether the scores were given and tell ``maybe_underflow`` cell by cell."""

    def take_rows(self, at: np.ndarray) -> Evidence:
        """Return the facts about the queries ``at``."""
        cells = self.maybe_underflow
        return Evidence(
            self.nonzero[..., at, :],
            self.all_zero[..., at],
            self.nan[..., at],
            self.uniform[..., at],
            self.uniform_nonzero[..., at],
            cells[..., at, :] if cells.shape[3] > 1 else cells,
            self.precision,
            self.from_scores,
        )

    @property
    def informative_rows(self) -> np.ndarray:
        """(B, L, H, Q): rows that show a mask: neither all zero, nor NaN, nor uniform where other rows are not."""
        return ~(self.all_zero | self.nan | self.uniform_nonzero)


def gather_evidence(weights: np.ndarray, real_queries: np.ndarray, has_even_rows: bool = False) -> Evidence:
    """Return the facts that (B, L, H, Q, K) weights show.

    How sharp a head is, ``real_queries`` (B, Q) tell: rows of padding, of nothing but fills, are as even as it gets.
    Rows that are even since a mask alone implies them (``has_even_rows``) are not measured: nothing is rounded.
    """
    if has_even_rows:
        return _gather_uniform_row_evidence(weights)
    nan = np.isnan(weights).any(-1)
    clean = np.where(nan[..., None], 0, weights) if nan.any() else weights
    clean = clean if clean.dtype.kind == "f" else clean.astype(np.float64)  # A file may hold whole numbers.
    nonzero = clean > 0
    largest, smallest = clean.max(-1), clean.min(-1)
    stored = detect_precision(weights)
    uniform = ~nan & (largest > 0) & (largest - smallest <= 2 * stored.relative * largest) & (weights.shape[-1] > 1)
    smallest_nonzero = np.min(clean, -1, where=nonzero, initial=np.inf)
    level = largest - smallest_nonzero <= 2 * stored.relative * largest
    uneven_heads = (~level & ~nan).any((0, 3))[None, :, :, None]
    uniform_nonzero = level & ((nonzero.sum(-1) > 2) | uniform) & uneven_heads
    real = np.broadcast_to(real_queries[:, None, None], largest.shape)
    maybe_underflow = _find_sharp_rows(nonzero, largest, smallest_nonzero, stored, real)[..., None]
    return Evidence(nonzero, ~nan & ~nonzero.any(-1), nan, uniform, uniform_nonzero, maybe_underflow, stored)


def _gather_uniform_row_evidence(weights: np.ndarray) -> Evidence:
    """Return the facts that (B, L, H, Q, K) weights show whose rows hold one value besides zero, or NaN alone."""
    nan = np.isnan(weights[..., 0])
    nonzero = weights > 0
    none = np.zeros_like(nan)
    uniform = nonzero.all(-1) & (weights.shape[-1] > 1)
    return Evidence(nonzero, ~nan & ~nonzero.any(-1), nan, uniform, none, none[..., None], _FLOAT32)


def _find_sharp_rows(
    nonzero: np.ndarray, largest: np.ndarray, smallest: np.ndarray, stored: Precision, real: np.ndarray
) -> np.ndarray:
    """Return (B, L, H, Q): rows of heads so sharp that weights vanish, or with hardly any but one-hot rows.

    In short formats also any nearly one-hot row. With exponential tails, of n weights whose smallest lies m nats below
    the largest of its row, one would lie ``limit`` nats below it with a chance of n ^ (-limit / m).
    """
    count = nonzero.sum(-1)
    several = count > 1
    shown = several & real
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = np.log(largest.astype(np.float64)) - np.log(smallest.astype(np.float64))
        spread = np.where(shown, logs, 0).max(-1)
        vanishing = (1.0 + np.where(shown, count - 1, 0).sum(-1)) ** (1 - stored.limit / spread)
    zeros = (~nonzero).any((-1, -2))
    one_hot = ((count == 1) & real).sum(-1) >= _ONE_HOT_RATIO * shown.sum(-1)
    heads = zeros & ((vanishing > _RARE) | one_hot)
    restless = (spread > _CALM * stored.limit) | (shown.sum(-1) < _FEW_ROWS)
    rows = (largest > _ONE_HOT) & restless[..., None] | (several & (logs > _DEEP * stored.limit))
    return heads[..., None] | (rows & (stored.limit < _SHORT_RANGE))


@dataclass(frozen=True)
class CellDepth:
    """How far some cells lie below the largest weight of their row, compared with the allowed ones of their head."""

    beyond: bool
    """Whether they lie deeper on average than any allowed one."""
    log_chance: float
    """The logarithm of the chance to find them so deep without a fill."""


def measure_nonzero_cell_depth(
    evidence: Evidence, weights: np.ndarray, allowed: np.ndarray, cells: np.ndarray
) -> CellDepth:
    """Return the depth of nonzero ``cells``; all arrays are (B, L, H, Q, K), ``allowed`` may have axes of 1.

    Of n allowed weights the deepest of which lies m nats down, one lies g nats down with a chance of n ^ (-g / m), if
    tails are exponential; over several cells the exponents add up to a Gamma variable, here under Chernoff's bound.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.log(weights.max(-1, keepdims=True).astype(np.float64)) - np.log(weights.astype(np.float64))
    usual = evidence.nonzero & allowed & (gaps > 0)
    deepest = np.where(usual, gaps, 0).max((-1, -2))
    total = np.where(cells, gaps, 0).sum((-1, -2))
    surprise = float((np.log1p(usual.sum((-1, -2))) * total / np.maximum(deepest, 1e-3)).sum())
    count = int(cells.sum())
    log_chance = count + count * float(np.log(surprise / count)) - surprise if surprise > count else 0.0
    return CellDepth(bool(total.sum() > (deepest * cells.sum((-1, -2))).sum()), log_chance)


# A sink that was recorded as a key: one more column at the end, to which every query attends, as in gpt-oss.


def has_sink_column(arrays: Arrays) -> bool:
    """Whether the last of Q + 1 keys is a sink: the others are causal from the top left, and every query attends to it.

    A cache of one token would let the first query see two keys.
    """
    _, _, _, queries, keys = arrays.sizes
    if keys != queries + 1 or queries < 3 or arrays.map in ("encoder", "cross") or arrays.meant is not None:
        return False
    if "weights" not in arrays.given or np.isnan(arrays.weights).any():
        return False
    nonzero = arrays.weights > 0
    later = np.triu(np.ones((queries, queries), bool), 1)
    own = nonzero[..., :-1]
    diagonal = own[..., np.eye(queries, dtype=bool)]
    return bool(nonzero[..., -1].all() and not (own & later).any() and diagonal.mean() > 0.5)


def drop_last_keys(arrays: Arrays, count: int) -> Arrays:
    """Return the arrays without their last keys."""
    names = ("weights", "scores", "masked_scores", "bias", "mask", "meant", "key_keep")
    changed = {
        name: array[..., :-count]
        for name in names
        if (array := getattr(arrays, name)) is not None and array.shape[-1] == arrays.sizes[4]
    }
    return dataclasses.replace(arrays, **changed)
