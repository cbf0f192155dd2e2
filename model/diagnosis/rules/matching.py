"""Whether a mask explains the weights, cell by cell, with what rounding and chance can do taken into account."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..inputs.evidence import Evidence

_LONG, _MOST_ROWS, _DIFFERENT = 4, 0.6, 0.2
"""Allowed keys of a row, and number of such rows, from which sparse weights are told; part of them that have zeros;
part of the cells in which neighbouring rows differ. A window or a block differs in one cell a row."""
CHANCE = 1e-3
"""A pattern of zeros counts as a mask when rounding alone would make it more rarely than this."""


@dataclass(frozen=True, eq=False)
class Match:
    """How one mask compares with the weights."""

    units: np.ndarray
    """(B, L, H) bool: samples, layers and heads that the mask explains."""
    uninformative_rows: int
    """Rows, padding queries included, that are all zero, NaN or uniform although the mask leaves them keys."""
    allowed_zeros: int
    """Allowed cells that are nevertheless zero."""

    @property
    def unexplained(self) -> int:
        """Number of samples, layers and heads that the mask does not explain."""
        return int((~self.units).sum())


def compare(
    evidence: Evidence, allowed: np.ndarray, judged_rows: np.ndarray, padding: np.ndarray, fill_rows: np.ndarray
) -> Match:
    """Return whether ``allowed`` (B, L, H, Q, K; axes may be 1) could have been in force.

    Args:
        judged_rows: (B, L, H, Q) bool, axes possibly 1: rows that count.
        padding: (B, Q) bool, padding queries, whose rows may be all zero although keys are allowed.
        fill_rows: (B, L, H, Q) bool, uniform rows that may stand for a row without keys.
    """
    live = allowed.any(-1)
    judged_rows = np.broadcast_to(judged_rows, evidence.all_zero.shape)
    blank = evidence.all_zero | evidence.nan | fill_rows
    rows = judged_rows & live & ~(evidence.all_zero & padding[:, None, None])
    outside = (evidence.nonzero & ~allowed).any(-1) & judged_rows & live
    void = judged_rows & ~live & ~(blank | evidence.uniform_nonzero)  # which two fills leave uneven
    broken = rows & (evidence.all_zero | evidence.nan)
    zeros = ~evidence.nonzero & allowed & rows[..., None]
    missing = (zeros & ~evidence.maybe_underflow).any(-1)
    return Match(
        ~(outside | void | broken | missing).any(-1),
        int((~evidence.informative_rows & live & judged_rows).sum()),
        int(zeros.sum()),
    )


def is_significant(
    evidence: Evidence, meant: np.ndarray, allowed: np.ndarray, rows: np.ndarray, selected_columns: bool = False
) -> bool:
    """Whether ``allowed`` is more than a chance fit: what it opens is nonzero, what it closes is not rounding.

    Masks are (B, L, H, Q, K), axes possibly 1, the ``rows`` to judge (B, L, H, Q). ``selected_columns`` says that the
    columns it closes were selected among all by looking at the weights.
    """
    if not _opened_cells_nonzero(evidence, meant, allowed, rows):
        return False
    closed = meant & ~allowed & rows[..., None]
    if not closed.any():
        return True
    closed = np.broadcast_to(closed, evidence.nonzero.shape)
    units = np.asarray(closed.any((-1, -2)))
    live = meant.any(-1) & rows
    emptied = live & ~allowed.any(-1) & evidence.uniform_nonzero  # A finite fill leaves a row without keys uniform.
    certain = closed & ~evidence.nonzero & ~evidence.maybe_underflow
    if certain.any() or (live & (evidence.all_zero | evidence.nan) | emptied).any():
        return True
    if evidence.from_scores:
        return False
    inside = np.broadcast_to(meant & allowed & rows[..., None], evidence.nonzero.shape) & units[..., None, None]
    zeros = int((inside & ~evidence.nonzero).sum())
    chance = (zeros + evidence.precision.prior) / (int(inside.sum()) + 1)
    ways = np.log(closed.shape[-1]) * int(closed.any((1, 2, 3)).sum()) if selected_columns else 0.0
    return bool(int(closed.sum()) * np.log(max(chance, 1e-12)) + ways < np.log(CHANCE))


def _opened_cells_nonzero(evidence: Evidence, meant: np.ndarray, allowed: np.ndarray, rows: np.ndarray) -> bool:
    """Whether the cells that ``allowed`` adds are nonzero about as often as those that were meant anyway."""
    live = rows[..., None] & np.asarray(allowed.any(-1, keepdims=True))
    added = np.broadcast_to(allowed & ~meant & live, evidence.nonzero.shape)
    usual = np.broadcast_to(allowed & meant & live, evidence.nonzero.shape)
    if not added.any() or not usual.any():
        return True
    return bool(evidence.nonzero[added].mean() >= 0.5 * evidence.nonzero[usual].mean())


def is_sparse(evidence: Evidence, allowed: np.ndarray, rows: np.ndarray) -> bool:
    """Whether zeros lie in most long rows, and in each at other keys: no mask does that, sparsemax and top-k do.

    ``allowed`` is (B, L, H, Q, K), axes possibly 1, the ``rows`` to judge (B, L, H, Q). The patterns of neighbouring
    rows, heads and samples are compared over the keys that both allow. A key without any weight speaks for a mask,
    unless it is zero by chance: few rows may look at the last ones.
    """
    allowed = np.broadcast_to(allowed, evidence.nonzero.shape)
    zeros = allowed & ~evidence.nonzero
    long = rows & (allowed.sum(-1) >= _LONG) & evidence.informative_rows
    if long.sum() < _LONG or zeros.any(-1)[long].mean() < _MOST_ROWS:
        return False
    if not (evidence.nonzero & allowed).any(-1)[long].all():
        return False
    both = allowed[..., 1:, :] & allowed[..., :-1, :] & (long[..., 1:] & long[..., :-1])[..., None]
    differs = (zeros[..., 1:, :] != zeros[..., :-1, :]) & both
    seen = allowed & long[..., None]
    cells, empty = (one.sum((0, 1, 2, 3)) for one in (seen, seen & zeros))
    by_chance = (empty.sum() / cells.sum()) ** cells
    never = (empty == cells) & (by_chance < CHANCE / len(cells))
    return bool(both.any() and differs.sum() > _DIFFERENT * both.sum() and not never.any())
