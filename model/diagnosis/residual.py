"""What no single mistake explains: parts of the mask missing together, then plain leaks and gaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .case import Case
from .evidence import Evidence
from .intent import Intent
from .rows import void

_MOSTLY = 0.8
_NAN_FIX = "scores = (q / d**0.5) @ k.mT  # NaN or an overflow in the scores, or NaN in the input: the mask is not why"


def leftover(case: Case, intent: Intent) -> None:
    """Report the cells on which weights and intent disagree.

    When nothing was stated only the padding is binding, since any other mask may have been meant.
    """
    evidence, add = case.evidence, case.add
    rows = case.rows(intent) & intent.allowed.any(-1) & ~void(case)[:, None, None, None]
    nan = evidence.nan & rows
    stray = evidence.lit & ~intent.allowed & rows[..., None]
    gaps = intent.allowed & ~evidence.lit & (rows & ~nan)[..., None]
    gaps &= ~evidence.faint | evidence.dead[..., None]
    if not intent.binding:
        stray &= ~intent.keep[:, None, None, None, :]
        gaps = np.zeros_like(gaps)
    elif _upside_down(evidence, intent, rows):
        add("inverted", stray | gaps)
        return
    stray = _parts(intent, stray, rows, add)
    gaps = _diagonal(gaps, intent, rows, add)
    add("leak", stray, detail=_share(case, stray))
    add("over-blocked", gaps)
    emptied = nan & (~case.arrays.mask.any(-1) if case.arrays.mask is not None else False)
    case.add_rows("empty-row", emptied, "its row is NaN although keys are allowed")
    add("empty-row", (nan & ~emptied)[..., None], looks="the row of a query that has keys is NaN", fix=_NAN_FIX)


def _share(case: Case, stray: np.ndarray) -> str:
    return f"up to {np.nanmax(case.arrays.weights[stray]):.2g} in one cell" if stray.any() else ""


def _upside_down(evidence: Evidence, intent: Intent, rows: np.ndarray) -> bool:
    """Most of what is blocked is lit, and most of what is allowed is not."""
    look = rows[..., None] & ~evidence.nan[..., None]
    blocked, allowed = look & ~intent.allowed, look & intent.allowed
    if not blocked.any() or not allowed.any():
        return False
    return bool(evidence.lit[blocked].mean() > _MOSTLY and evidence.lit[allowed].mean() < 1 - _MOSTLY)


def _parts(intent: Intent, stray: np.ndarray, rows: np.ndarray, add: Callable[..., None]) -> np.ndarray:
    """Name the parts of the mask all of whose cells leak, head by head; returns what is left."""
    future = np.zeros(intent.base.shape, bool)
    if intent.structures:
        queries, keys = intent.base.shape[-2:]
        freed = [one.without_causal()[0] if one.causal else one for one in intent.structures]
        future = np.stack([one.allowed(queries, keys) for one in freed])[:, None, None] & ~intent.base
    padding = np.broadcast_to(~intent.keep[:, None, None, None, :], intent.allowed.shape)
    for code, part in (("padding-visible", intent.base & padding), ("future-visible", future & ~padding)):
        cells = part & rows[..., None]
        whole = (stray | ~cells).all((-1, -2)) & cells.any((-1, -2))
        open_cells = stray & cells & whole[..., None, None]
        add(code, open_cells)
        stray = stray & ~open_cells
        if code == "padding-visible" and open_cells.any() and (both := stray & padding & future).any():
            stray = stray & ~both
    return stray


def _diagonal(gaps: np.ndarray, intent: Intent, rows: np.ndarray, add: Callable[..., None]) -> np.ndarray:
    """Name a diagonal that is missing as a whole; returns what is left."""
    queries, keys = gaps.shape[-2:]
    line = np.eye(queries, keys, keys - queries, dtype=bool) & intent.allowed & rows[..., None]
    whole = (gaps | ~line).all((-1, -2)) & (line.sum((-1, -2)) > 1)
    missing = gaps & line & whole[..., None, None]
    dead = missing.any(-1, keepdims=True) & (gaps | ~intent.allowed).all(-1, keepdims=True)
    if (gaps & ~missing & ~dead).any():
        return gaps
    add("diagonal-blocked", missing)
    return gaps & ~missing & ~dead
