"""Rows without an allowed key: zeros are right, NaN and a uniform row are not; doubled fills have their own look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...language.say import say
from ..inputs.arrays import Arrays
from ..inputs.evidence import Evidence
from ..inputs.intent import Intent
from .case import Case
from .fault_catalogue import FAULTS, NOTHING_TO_FIX, Level
from .score_checks import FILLS_ONLY

_KEYLESS_FIX = "mask = ~mask  # if these tokens are real: nn.MultiheadAttention blocks where True"
_CAUSES = tuple(code for code in FAULTS if code not in ("pad-query", "weak-fill", "dropout-on"))
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


def find_empty_rows(arrays: Arrays, evidence: Evidence, intent: Intent, padding: np.ndarray) -> EmptyRows:
    """Return the empty rows of an intent by what they show. ``padding`` (B, Q) marks padding queries."""
    empty = np.broadcast_to(~intent.allowed.any(-1), evidence.all_zero.shape)
    stray = (evidence.nonzero & ~intent.columns).any(-1) | ~padding[:, None, None]
    double = _double_fill_rows(arrays, evidence, intent) & empty & ~_idle_by_window(intent, padding)[:, None, None]
    if double.any():  # its sibling rows, in which no cell is blocked twice, come from the same two fills
        double |= evidence.uniform & empty
    return EmptyRows(
        nan=evidence.nan & empty,
        uniform=evidence.uniform & stray & empty & ~double,
        all_zero=evidence.all_zero & empty,
        double_fill=double,
        fills_only=rows_of_fills(arrays) & empty & ~double & (evidence.uniform | evidence.nonzero.any(-1)),
    )


def _idle_by_window(intent: Intent, padding: np.ndarray) -> np.ndarray:
    """Return (B, Q): padding queries after all real tokens, which only a window leaves without a key.

    Nothing reads them, and two fills in them spoil nothing.
    """
    queries, keys = intent.base.shape[-2:]
    places = np.arange(queries) + keys - queries
    last = keys - 1 - np.argmax(intent.keep[:, ::-1], -1)
    return padding & (places > last[:, None])


def _double_fill_rows(arrays: Arrays, evidence: Evidence, intent: Intent) -> np.ndarray:
    """Return (B, L, H, Q): rows nonzero exactly where one of padding and structure blocks and the other does not."""
    keep = np.broadcast_to(intent.columns, intent.allowed.shape)
    once = intent.base ^ keep
    twice = ~intent.base & ~keep
    pattern = (evidence.nonzero == once).all(-1) & twice.any(-1)
    if arrays.masked_scores is None:
        return pattern
    return pattern | (rows_of_fills(arrays) & _two_levels(arrays.masked_scores))


def rows_of_fills(arrays: Arrays) -> np.ndarray:
    """Return (B, L, H, Q), axes possibly 1: rows whose largest masked score is a large finite fill."""
    if arrays.masked_scores is None:
        return np.zeros((1, 1, 1, 1), bool)
    largest = arrays.masked_scores.max(-1).astype(np.float64)
    return np.isfinite(largest) & (largest <= FILLS_ONLY)


def _two_levels(masked: np.ndarray) -> np.ndarray:
    """Return (B, L, H, 1): heads in which some cell is filled about twice as deep as another."""
    masked = masked.astype(np.float64)
    fills = np.where(np.isfinite(masked) & (masked <= FILLS_ONLY), masked, np.nan)
    with np.errstate(invalid="ignore"):
        high = np.where(np.isnan(fills), -np.inf, fills).max((-1, -2))
        low = np.where(np.isnan(fills), np.inf, fills).min((-1, -2))
        return (np.isfinite(low) & (low < 1.5 * high))[..., None]


def keyless_samples(case: Case) -> np.ndarray:
    """Return (B,): samples in which no query has a key, although some token is real as far as the arrays say."""
    keep, evidence = case.arrays.key_keep, case.evidence
    blank = (evidence.all_zero | evidence.nan).all((1, 2, 3)) & evidence.all_zero.any((1, 2, 3))
    return np.asarray(blank if keep is None else blank & keep.any(-1))


def report_keyless_samples(case: Case) -> None:
    """Add samples without any key, where no mistake was found that may have caused it."""
    if not any(finding.severity == "error" for finding in case.findings):
        where = keyless_samples(case)[:, None, None, None, None]
        case.add("empty-row", where, looks=say("no query may attend to any key"), fix=_KEYLESS_FIX, level="certain")


def uniform_samples(case: Case) -> np.ndarray:
    """Return (B,): samples of which every row is uniform over all keys, because no key is allowed in them.

    That is said by the padding, the mask or the meant mask; where none is given, by other samples whose rows differ.
    """
    evidence, given = case.evidence, case.arrays
    uniform = evidence.uniform.all((1, 2, 3))
    known = [array.any(tuple(range(1, array.ndim))) for array in _said_keys(given)]
    if known:
        return uniform & np.any([~np.broadcast_to(keys, uniform.shape) for keys in known], axis=0)
    return np.asarray(uniform & (evidence.uniform & evidence.uniform_nonzero).all((1, 2, 3)) & (given.sizes[3] > 1))


def _said_keys(arrays: Arrays) -> list[np.ndarray]:
    return [array for array in (arrays.key_keep, arrays.mask, arrays.meant) if array is not None]


def report_uniform_samples(case: Case) -> None:
    """Add samples without an allowed key that attend to every key alike, and look for nothing more in them."""
    samples = uniform_samples(case)
    arrays = case.arrays
    looks = say("no key of this sample may be attended to, and its rows are uniform over all of them, padding included")
    own = arrays.key_keep is not None and arrays.sizes[3] == arrays.sizes[4] and arrays.self_or_cross != "cross"
    said = [array for array in (arrays.mask, arrays.meant) if array is not None] or (_said_keys(arrays) and not own)
    level: Level = "certain" if said else "likely"
    case.add("empty-row", samples[:, None, None, None, None], looks=looks, level=level)
    case.exclude(np.broadcast_to(samples[:, None, None], arrays.sizes[:3]))


def report_empty_rows(case: Case, intent: Intent) -> None:
    """Add rows without keys, and padding queries."""
    evidence = case.evidence
    padding = case.padding_queries(intent)
    rows = find_empty_rows(case.arrays, evidence, intent, padding)
    blank = rows.nan | rows.uniform
    if not case.has(*_CAUSES):  # a padding query whose row was emptied as well
        spare = padding[:, None, None]
        blank |= evidence.nan & spare
        blank |= evidence.uniform & spare & (evidence.nonzero & ~intent.allowed).any(-1) & ~rows.double_fill
    case.add_rows("double-fill", rows.double_fill)
    if not case.has("fill-overflow"):
        case.add_rows("empty-row", blank & evidence.nan, say("its row is NaN, and NaN spreads"))
    uniform = blank & ~evidence.nan & ~uniform_samples(case)[:, None, None, None]
    idle = padding[:, None, None] & uniform
    case.add_rows("empty-row", uniform & ~idle, say("its row is uniform over all keys, future and padding included"))
    unread = say("its row is uniform, and nothing reads it: a padding query")
    case.add_rows("empty-row", idle, unread, "info", NOTHING_TO_FIX)
    untold = say("these masked scores do not show whether there was one fill or two")
    case.add_rows("double-fill", rows.fills_only, untold, "warning")
    case.add_rows("empty-row", rows.all_zero, say("its row is all zero, which is right"), "info", NOTHING_TO_FIX)
    with_weight = padding[:, None, None] & evidence.nonzero.any(-1) & ~evidence.nan
    case.add_rows("pad-query", with_weight)
