"""What can be read off the weights without knowing what was meant: lit cells, dead rows, number format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .precision import Precision, precision

_ONE_HOT, _SHORT = 0.9, 20.0
"""In formats that span fewer nats than this, what a row above the other leaves to its keys may vanish."""
_HOT = 2
"""So many times more rows with one weight than with several make a head sharp, however little those few spread."""
_TAME, _FEW = 0.1, 3
"""A head that spreads less than this part of the range in all of so many rows has no row in which weights vanish."""
_RARE = 1e-3
"""A head is too calm for rounding where fewer cells than this would be expected to vanish."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Facts about one set of weights, each over (B, L, H, ...)."""

    lit: np.ndarray
    """(B, L, H, Q, K): above zero."""
    dead: np.ndarray
    """(B, L, H, Q): all zero."""
    nan: np.ndarray
    """(B, L, H, Q): not a number somewhere."""
    flat: np.ndarray
    """(B, L, H, Q): the same value in every column, two columns at least."""
    odd: np.ndarray
    """(B, L, H, Q): the same value in every lit column, three at least, in a head that has uneven rows too. In a head
    without uneven rows all scores are equal, and such rows say nothing."""
    faint: np.ndarray
    """(B, L, H, Q, K or 1): cells whose zero may be nothing but rounding, as the head or the row is so sharp."""
    precision: Precision
    told: bool = False
    """Whether the scores were given and tell ``faint`` cell by cell."""


def gather(weights: np.ndarray) -> Evidence:
    """Read the facts off (B, L, H, Q, K) weights."""
    nan = np.isnan(weights).any(-1)
    clean = np.where(nan[..., None], 0, weights) if nan.any() else weights
    lit = clean > 0
    top, low = clean.max(-1), clean.min(-1)
    fine = precision(weights)
    flat = ~nan & (top > 0) & (top - low <= 2 * fine.relative * top) & (weights.shape[-1] > 1)
    low_lit = np.where(lit, clean, np.inf).min(-1)
    level = top - low_lit <= 2 * fine.relative * top
    odd = level & ((lit.sum(-1) > 2) | flat) & (~level & ~nan).any((0, 3))[None, :, :, None]
    return Evidence(lit, ~nan & ~lit.any(-1), nan, flat, odd, _peaked(lit, top, low_lit, fine)[..., None], fine)


def _peaked(lit: np.ndarray, top: np.ndarray, low: np.ndarray, fine: Precision) -> np.ndarray:
    """(B, L, H, Q): rows of heads so sharp that weights vanish, or with hardly any but one-hot rows; in short formats
    any nearly one-hot row.

    With exponential tails, of n weights whose smallest lies m nats below the largest of its row, one would lie
    ``limit`` nats below it with a chance of n ^ (-limit / m).
    """
    several = lit.sum(-1) > 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = np.where(several, np.log(top.astype(np.float64)) - np.log(low.astype(np.float64)), 0).max(-1)
        vanishing = (1.0 + np.maximum(lit.sum(-1) - 1, 0).sum(-1)) ** (1 - fine.limit / spread)
    zeros = (~lit).any((-1, -2))
    hot = (lit.sum(-1) == 1).sum(-1) >= _HOT * several.sum(-1)
    heads = zeros & ((vanishing > _RARE) | hot)
    wild = (spread > _TAME * fine.limit) | (several.sum(-1) < _FEW)
    alone = (top > _ONE_HOT) & (fine.limit < _SHORT) & wild[..., None]
    return heads[..., None] | alone


@dataclass(frozen=True)
class Depth:
    """How far some cells lie below the largest weight of their row, beside the allowed ones of their head."""

    beyond: bool
    """On average deeper than any allowed one."""
    luck: float
    """The logarithm of the chance to find them so deep without a fill."""


def depth(evidence: Evidence, weights: np.ndarray, allowed: np.ndarray, cells: np.ndarray) -> Depth:
    """Of lit ``cells``; all arrays are (B, L, H, Q, K), ``allowed`` may have axes of 1.

    Of n allowed weights the deepest of which lies m nats down, one lies g nats down with a chance of n ^ (-g / m), if
    tails are exponential; over several cells the exponents add up to a Gamma variable, here under Chernoff's bound.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.log(weights.max(-1, keepdims=True).astype(np.float64)) - np.log(weights.astype(np.float64))
    usual = evidence.lit & allowed & (gaps > 0)
    deepest = np.where(usual, gaps, 0).max((-1, -2))
    found = np.where(cells, gaps, 0).sum((-1, -2))
    surprise = float((np.log1p(usual.sum((-1, -2))) * found / np.maximum(deepest, 1e-3)).sum())
    count = int(cells.sum())
    luck = count + count * float(np.log(surprise / count)) - surprise if surprise > count else 0.0
    return Depth(bool(found.sum() > (deepest * cells.sum((-1, -2))).sum()), luck)


def rows_that_sum(weights: np.ndarray, tolerance: float) -> np.ndarray:
    """(B, L, H, Q): rows that sum to 1, or to nothing at all, or are not numbers."""
    total = weights.sum(-1, dtype=np.float64)
    return (np.abs(total - 1) <= tolerance) | (total == 0) | np.isnan(total)
