"""The order of a diagnosis: sums, then what the scores show, then which mask was in force against which was meant."""

from __future__ import annotations

import dataclasses

import numpy as np

from . import score_checks as by_scores
from .case import Case
from .evidence import depth, gather
from .explain import TRIL, explanations, fits, report, sees_the_blocked
from .findings import Diagnosis, Finding
from .inputs import Arrays
from .intent import Intent, proposed, stated
from .matching import CHANCE
from .places import finding
from .residual import leftover
from .row_sums import check_sums
from .rows import only_fills, report_rows, report_void
from .unknown import cannot_tell


@np.errstate(all="ignore")
def judge(arrays: Arrays, named: str | None = None) -> Diagnosis:
    """The diagnosis of one map. Raises ValueError for a ``named`` meaning that does not exist."""
    said = stated(arrays, named)
    arrays, notes, stop = _sums(arrays, said)
    case = Case(arrays, gather(arrays.weights), notes)
    intent = said
    if not stop:
        _prepare(case)
        _holes_given(case)
        _by_scores(case)
        intent = _explain(case, [said] if said is not None else proposed(arrays, case.evidence))
        if said is None:
            _slip(case, intent)
        report_void(case)
        report_rows(case, intent)
    found = tuple(sorted(case.found, key=lambda one: one.severity == "info"))
    unknown = cannot_tell(arrays, said, found)
    if intent is None:
        return Diagnosis(found, unknown, "cannot be told", 0.0)
    meant = intent.allowed & ~intent.idle[:, None, None, :, None]
    return Diagnosis(found, unknown, intent.words, intent.sure, meant)


def _sums(arrays: Arrays, said: Intent | None) -> tuple[Arrays, list[Finding], bool]:
    """Faults of the sums. Returns the arrays, turned when they were transposed, and whether to stop at that."""
    known = said.allowed if said is not None else arrays.mask
    if known is None and arrays.key_keep is not None:
        known = arrays.key_keep[:, None, None, None]
    fault = check_sums(arrays, known)
    if fault is None:
        return arrays, [], False
    where = np.broadcast_to(fault.rows[..., None], arrays.weights.shape)
    code, *twins = fault.codes
    notes = [finding(code, where, arrays.map, None, fault.detail)]
    notes += [finding(twin, where, arrays.map, "warning", "the weights alone cannot rule this out") for twin in twins]
    if code == "transposed" and not arrays.transposed:
        arrays = dataclasses.replace(arrays, weights=np.swapaxes(arrays.weights, -1, -2))
    return arrays, notes, "softmax-axis" in fault.codes or code == "over-blocked"


def _prepare(case: Case) -> None:
    """After dropout a zero says nothing; scores tell which zeros are rounding, and a mask alone is never rounded; a row
    of fills is no ordinary row."""
    if case.named("dropout-on"):
        nothing = np.zeros_like(case.evidence.dead)
        case.evidence = dataclasses.replace(case.evidence, faint=np.ones_like(nothing)[..., None], dead=nothing)
        return
    exact = not case.arrays.given & {"weights", "scores", "masked_scores"}
    faint = np.zeros_like(case.evidence.faint) if exact else by_scores.too_small(case.arrays, case.evidence)
    if faint is not None:
        case.evidence = dataclasses.replace(case.evidence, faint=faint, told=True)
    fills = only_fills(case.arrays)
    case.evidence = dataclasses.replace(case.evidence, odd=case.evidence.odd | fills)


def _slip(case: Case, intent: Intent) -> None:
    """A mask that was given and agrees with the weights, but that hardly anybody means."""
    if case.arrays.mask is None or not intent.structures or any(one.severity != "info" for one in case.found):
        return
    looks, where = "the mask may be a slip of the pen", intent.allowed
    if all(one.late for one in intent.structures):
        detail = "every query sees one key ahead, as with tril(1) in place of tril(0)"
        case.add("future-visible", where, "warning", detail, looks=looks)
    if all(one.backward for one in intent.structures):
        detail = "every query sees itself and what comes after it, as with triu in place of tril"
        case.add("inverted", where, "warning", detail, TRIL, looks)


def _holes_given(case: Case) -> None:
    """A padding mask with a hole in it, unless what was meant has the same hole."""
    keep = case.arrays.key_keep
    if keep is None:
        return
    before = np.maximum.accumulate(keep, -1)
    after = np.maximum.accumulate(keep[:, ::-1], -1)[:, ::-1]
    holes = before & after & ~keep
    if case.arrays.meant is not None:
        holes &= case.arrays.meant.any((1, 2, 3))
    case.add("hole-inside", holes[:, None, None, None, :], detail="key_keep itself has the hole")


def _by_scores(case: Case) -> None:
    """What the scores and the fill show without any idea of what was meant."""
    beyond = by_scores.overflow(case.arrays, case.evidence)
    if beyond is not None:
        case.add("fill-overflow", beyond, detail="beyond 65504, the largest number of float16")
        case.spoil(np.asarray(case.evidence.nan.any(-1)))
    tinted = by_scores.soft_mask(case.arrays, case.evidence)
    if tinted is not None:
        case.add("soft-mask", tinted)
        case.spoil(np.asarray(tinted.any((-1, -2))))


def _explain(case: Case, intents: list[Intent]) -> Intent:
    """The intent that holds, or after reporting it the one that the best explanation starts from."""
    _weak(case, intents)
    refuted = any(intent.binding and sees_the_blocked(case, intent) for intent in intents)
    for every in (True, False) if not intents[0].binding else (False,):
        tried = [intent for intent in intents if not (every and intent.binding)]
        for intent in tried:
            if (intent.binding or not refuted) and fits(case, intent, every) and not explanations(case, intent):
                return intent
        found = [guess for intent in tried for guess in explanations(case, intent) if not every or guess.rank[1] == 0]
        if found:
            return report(case, found)
    last = next((intent for intent in intents if intent.binding), intents[0])
    leftover(case, last)
    return last


def _weak(case: Case, intents: list[Intent]) -> None:
    """Report a weak fill, and look no more at the cells it left lit."""
    for intent in [one for one in intents if one.binding] or intents:
        weak = by_scores.weak_fill(case.arrays, case.evidence, intent.allowed)
        if weak is not None and (intent.binding or _filled(case, intent, weak)):
            case.add("weak-fill", weak, detail=f"up to {np.nanmax(case.arrays.weights[weak]):.2g}")
            case.evidence = case.without(weak).evidence
            return


def _filled(case: Case, intent: Intent, weak: np.ndarray) -> bool:
    """Whether a mask that nobody stated is believed since what it blocks holds weights too small to be natural."""
    if not fits(case.without(weak), intent):
        return False
    return depth(case.evidence, case.arrays.weights, intent.allowed, weak).luck < np.log(CHANCE)
