"""What no single mistake explains: parts of the mask missing together, then plain leaks and gaps."""

from __future__ import annotations

import numpy as np

from ...language.say import say, to_say
from ...masking.structure import CAUSAL
from ..inputs.evidence import Evidence
from ..inputs.intent import Intent, stack_structures
from .case import Case
from .empty_rows import keyless_samples
from .fault_catalogue import NOTHING_TO_FIX
from .matching import is_sparse

_MOST = 0.8
_SPARSE = to_say("each row leaves out keys of its own, as sparsemax or the choice of the top k do")
_NAN_FIX = "scores = (q / d**0.5) @ k.mT  # NaN or an overflow in the scores, or NaN in the input: the mask is not why"


def report_residual(case: Case, intent: Intent) -> None:
    """Add the cells on which weights and intent disagree.

    When nothing was stated only the padding is binding, since any other mask may have been meant.
    """
    evidence = case.evidence
    rows = case.rows(intent) & intent.allowed.any(-1) & ~keyless_samples(case)[:, None, None, None]
    nan = evidence.nan & rows
    stray = evidence.nonzero & ~intent.allowed & rows[..., None]
    gaps = intent.allowed & ~evidence.nonzero & (rows & ~nan)[..., None]
    gaps &= ~evidence.maybe_underflow | evidence.all_zero[..., None]
    if not intent.binding:
        stray &= ~intent.columns
        gaps = np.zeros_like(gaps)
    elif _is_inverted(evidence, intent, rows):
        case.add("inverted", stray | gaps)
        return
    stray = _report_missing_parts(case, intent, stray, rows)
    gaps = _report_diagonal(case, intent, gaps, rows)
    if is_sparse(evidence, intent.allowed, rows):
        case.add("over-blocked", gaps, "info", looks=say(_SPARSE), fix=NOTHING_TO_FIX)
        gaps = np.zeros_like(gaps)
    case.add("leak", stray, detail=_largest_weight(case, stray), intent=intent)
    case.add("over-blocked", gaps, intent=intent)
    emptied = nan & (~case.arrays.mask.any(-1) if case.arrays.mask is not None else False)
    case.add_rows("empty-row", emptied, say("its row is NaN although keys are allowed"))
    looks = say("the row of a query that has keys is NaN")
    case.add("empty-row", (nan & ~emptied)[..., None], looks=looks, fix=_NAN_FIX)


def _largest_weight(case: Case, cells: np.ndarray) -> str:
    if not cells.any():
        return ""
    return say("up to {weight:.2g} in one cell", weight=float(np.nanmax(case.arrays.weights[cells])))


def _is_inverted(evidence: Evidence, intent: Intent, rows: np.ndarray) -> bool:
    """Whether most of what is blocked has weight, and most of what is allowed has none."""
    judged = rows[..., None] & ~evidence.nan[..., None]
    blocked, allowed = judged & ~intent.allowed, judged & intent.allowed
    if not blocked.any() or not allowed.any():
        return False
    return bool(evidence.nonzero[blocked].mean() > _MOST and evidence.nonzero[allowed].mean() < 1 - _MOST)


def _report_missing_parts(case: Case, intent: Intent, stray: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Add the parts of the mask all of whose cells leak, head by head; return the stray cells that are left."""
    future = np.zeros(intent.base.shape, bool)
    if intent.structures:
        queries, keys = intent.base.shape[-2:]
        open_ended = [one.without_causal()[0] if one.causal else one for one in intent.structures]
        future = stack_structures(open_ended, queries, keys) & ~intent.base
    elif not (intent.base & (ahead := ~CAUSAL.allowed(*intent.base.shape[-2:]))).any():
        future = np.broadcast_to(ahead, intent.base.shape)
    padding = np.broadcast_to(~intent.columns, intent.allowed.shape)
    for code, part in (("padding-visible", intent.base & padding), ("future-visible", future & ~padding)):
        cells = part & rows[..., None]
        whole = (stray | ~cells).all((-1, -2)) & cells.any((-1, -2))
        leaking = stray & cells & whole[..., None, None]
        case.add(code, leaking, intent=intent)
        stray = stray & ~leaking
        if code == "padding-visible" and leaking.any() and (both := stray & padding & future).any():
            stray = stray & ~both
    return stray


def _report_diagonal(case: Case, intent: Intent, gaps: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Add a diagonal that is missing as a whole; return the gaps that are left."""
    queries, keys = gaps.shape[-2:]
    diagonal = np.eye(queries, keys, keys - queries, dtype=bool) & intent.allowed & rows[..., None]
    whole = (gaps | ~diagonal).all((-1, -2)) & (diagonal.sum((-1, -2)) > 1)
    missing = gaps & diagonal & whole[..., None, None]
    emptied = missing.any(-1, keepdims=True) & (gaps | ~intent.allowed).all(-1, keepdims=True)
    if (gaps & ~missing & ~emptied).any():
        return gaps
    case.add("diagonal-blocked", missing)
    return gaps & ~missing & ~emptied
