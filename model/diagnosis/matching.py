"""Does a mask explain the weights? Cell by cell, with what rounding and luck can do taken into account."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .evidence import Evidence

CHANCE = 1e-3
"""A pattern of zeros is believed when rounding alone would make it more rarely than this."""


@dataclass(frozen=True, eq=False)
class Match:
    """How one mask compares with the weights."""

    units: np.ndarray
    """(B, L, H) bool: samples, layers and heads that the mask explains."""
    dark: int
    """Rows, padding queries included, that are dead, NaN or flat although the mask leaves them keys."""
    unlit: int
    """Allowed cells that are nevertheless zero."""


def compare(
    evidence: Evidence, allowed: np.ndarray, judged: np.ndarray, excused: np.ndarray, flat: np.ndarray
) -> Match:
    """Whether ``allowed`` (B, L, H, Q, K; axes may be 1) could have been in force.

    Args:
        judged: (B, L, H, Q) bool, axes possibly 1: rows that count.
        excused: (B, Q) bool, rows that may be all zero although keys are allowed (padding queries).
        flat: (B, L, H, Q) bool, uniform rows that may stand for a row without keys.
    """
    live = allowed.any(-1)
    judged = np.broadcast_to(judged, evidence.dead.shape)
    blank = evidence.dead | evidence.nan | flat
    rows = judged & live & ~(evidence.dead & excused[:, None, None])
    outside = (evidence.lit & ~allowed).any(-1) & judged & live
    void = judged & ~live & ~blank
    broken = rows & (evidence.dead | evidence.nan)
    zeros = ~evidence.lit & allowed & rows[..., None]
    missing = (zeros & ~evidence.faint).any(-1)
    return Match(
        ~(outside | void | broken | missing).any(-1),
        int(((evidence.dead | evidence.nan | evidence.odd) & live & judged).sum()),
        int(zeros.sum()),
    )


def solid(evidence: Evidence, meant: np.ndarray, allowed: np.ndarray, judged: np.ndarray, picked: bool = False) -> bool:
    """Whether ``allowed`` is more than a lucky fit: what it opens is lit, what it closes is not rounding.

    ``picked`` says that the columns it closes were picked among all by looking at the weights.
    """
    if not _opened(evidence, meant, allowed, judged):
        return False
    stricter = meant & ~allowed & judged[..., None]
    if not stricter.any():
        return True
    stricter = np.broadcast_to(stricter, evidence.lit.shape)
    units = np.asarray(stricter.any((-1, -2)))
    live = meant.any(-1) & judged
    emptied = live & ~allowed.any(-1) & evidence.odd  # A finite fill leaves a row without keys uniform.
    if (stricter & ~evidence.lit & ~evidence.faint).any() or (live & (evidence.dead | evidence.nan) | emptied).any():
        return True
    if evidence.told:
        return False
    inside = np.broadcast_to(meant & allowed & judged[..., None], evidence.lit.shape) & units[..., None, None]
    zeros = int((inside & ~evidence.lit).sum())
    chance = (zeros + evidence.precision.prior) / (int(inside.sum()) + 1)
    ways = np.log(stricter.shape[-1]) * int(stricter.any((1, 2, 3)).sum()) if picked else 0.0
    return bool(int(stricter.sum()) * np.log(max(chance, 1e-12)) + ways < np.log(CHANCE))


def _opened(evidence: Evidence, meant: np.ndarray, allowed: np.ndarray, judged: np.ndarray) -> bool:
    """Whether the cells that ``allowed`` adds are lit about as often as those that were meant anyway."""
    look = judged[..., None] & np.asarray(allowed.any(-1, keepdims=True))
    added = np.broadcast_to(allowed & ~meant & look, evidence.lit.shape)
    usual = np.broadcast_to(allowed & meant & look, evidence.lit.shape)
    if not added.any() or not usual.any():
        return True
    return bool(evidence.lit[added].mean() >= 0.5 * evidence.lit[usual].mean())
