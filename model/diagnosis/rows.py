"""Rows without an allowed key: zeros are right, NaN and a uniform row are not; doubled fills have their own look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .case import Case
from .evidence import Evidence
from .findings import FAULTS
from .inputs import Arrays
from .intent import Intent
from .score_checks import DOUBLE


@dataclass(frozen=True, eq=False)
class EmptyRows:
    """Rows (B, L, H, Q) in which no key is allowed, by what they show."""

    nan: np.ndarray
    flat: np.ndarray
    zero: np.ndarray
    double: np.ndarray
    """The cells that only one of two masks blocks are lit."""
    filled: np.ndarray
    """The masked scores hold nothing but fills, and nothing shows how many."""


def empty_rows(arrays: Arrays, evidence: Evidence, intent: Intent, padding: np.ndarray) -> EmptyRows:
    """Sort the empty rows. ``padding`` (B, Q) marks padding queries."""
    empty = np.broadcast_to(~intent.allowed.any(-1), evidence.dead.shape)
    keep = intent.keep[:, None, None, None, :]
    stray = (evidence.lit & ~keep).any(-1) | ~padding[:, None, None]
    double = _twice(arrays, evidence, intent) & empty
    if double.any():  # its sibling rows, in which no cell is blocked twice, come from the same two fills
        double |= evidence.flat & empty
    filled = only_fills(arrays) & empty & ~double & (evidence.flat | evidence.lit.any(-1))
    return EmptyRows(
        evidence.nan & empty, evidence.flat & stray & empty & ~double, evidence.dead & empty, double, filled
    )


def _twice(arrays: Arrays, evidence: Evidence, intent: Intent) -> np.ndarray:
    """(B, L, H, Q): rows lit exactly where one mask blocks and the other does not."""
    keep = np.broadcast_to(intent.keep[:, None, None, None, :], intent.allowed.shape)
    once = intent.base ^ keep
    both = ~intent.base & ~keep
    pattern = (evidence.lit == once).all(-1) & both.any(-1)
    if arrays.masked_scores is None:
        return pattern
    return pattern | (only_fills(arrays) & _two_levels(arrays.masked_scores))


def only_fills(arrays: Arrays) -> np.ndarray:
    """(B, L, H, Q): rows whose largest masked score is a large finite fill."""
    if arrays.masked_scores is None:
        return np.zeros((1, 1, 1, 1), bool)
    top = arrays.masked_scores.max(-1).astype(np.float64)
    return np.isfinite(top) & (top <= DOUBLE)


def _two_levels(masked: np.ndarray) -> np.ndarray:
    """(B, L, H, Q): rows of heads in which some cell is filled about twice as deep as another."""
    masked = masked.astype(np.float64)
    deep = np.where(np.isfinite(masked) & (masked <= DOUBLE), masked, np.nan)
    with np.errstate(invalid="ignore"):
        high = np.where(np.isnan(deep), -np.inf, deep).max((-1, -2))
        low = np.where(np.isnan(deep), np.inf, deep).min((-1, -2))
        return (np.isfinite(low) & (low < 1.5 * high))[..., None]


def void(case: Case) -> np.ndarray:
    """(B,): samples of which tokens are real, as far as anything says, and in which no query has a key."""
    keep, evidence = case.arrays.key_keep, case.evidence
    blank = (evidence.dead | evidence.nan).all((1, 2, 3)) & evidence.dead.any((1, 2, 3))
    return np.asarray(blank if keep is None else blank & keep.any(-1))


def report_void(case: Case) -> None:
    """Samples without any key, where no mistake was named that may have caused it."""
    if not any(one.severity == "error" for one in case.found):
        where = void(case)[:, None, None, None, None]
        case.add("empty-row", where, looks="no query may attend to any key", fix=_VOID_FIX)


def report_rows(case: Case, intent: Intent) -> None:
    """Rows without keys, and padding queries."""
    padding = case.padding(intent)
    rows = empty_rows(case.arrays, case.evidence, intent, padding)
    blank = rows.nan | rows.flat
    if not case.named(*_EXPLAIN_ROWS):  # a padding query whose row was emptied as well
        spare = padding[:, None, None]
        blank |= case.evidence.nan & spare
        blank |= case.evidence.flat & spare & (case.evidence.lit & ~intent.allowed).any(-1) & ~rows.double
    case.add_rows("double-fill", rows.double)
    if not case.named("fill-overflow"):
        case.add_rows("empty-row", blank & case.evidence.nan, "its row is NaN, and NaN spreads")
    case.add_rows(
        "empty-row", blank & ~case.evidence.nan, "its row is uniform over all keys, future and padding included"
    )
    case.add_rows("double-fill", rows.filled, "one fill or two, these masked scores cannot tell", "warning")
    case.add_rows("empty-row", rows.zero, "its row is all zero, which is right", "info", "nothing to mend")
    shown = padding[:, None, None] & case.evidence.lit.any(-1) & ~case.evidence.nan
    case.add_rows("pad-query", shown)


_VOID_FIX = "mask = ~mask  # if these tokens are real: nn.MultiheadAttention blocks where True"
_EXPLAIN_ROWS = tuple(code for code in FAULTS if code not in ("pad-query", "weak-fill", "dropout-on"))
"""Faults that may themselves have made a row NaN or uniform."""
