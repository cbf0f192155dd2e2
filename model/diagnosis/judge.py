"""The order of a diagnosis: sums, then what the scores show, then which mask was in force against which was meant."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..language.say import say, to_say
from ..masking.meaning import layer_masks, parse_meaning
from ..masking.structure_names import structure_name
from .alternative_masks import alternative_intent
from .inputs.arrays import Arrays, as_columns
from .inputs.evidence import depth, gather
from .inputs.intent import Intent, span
from .inputs.intent_sources import proposed_intents, stated_intent, stated_with_padding
from .inputs.shapes import is_zeros_and_ones
from .inputs.sink_column import has_sink_column, without_last_keys
from .mistakes.positions import counted_padding
from .rules.biases import given_bias_effects, reversed_slope
from .rules.case import Case
from .rules.empty_rows import report_empty_rows, report_keyless_samples, report_uniform_samples, rows_of_fills
from .rules.explain import TRIANGLE_FIX, contradicts_mask, explanations, fits, report
from .rules.findings import Diagnosis, Finding, make_finding, undecided
from .rules.matching import CHANCE
from .rules.residual import report_residual
from .rules.row_sums import check_sums
from .rules.score_checks import overflow_cells, positive_fill_cells, soft_mask_cells, underflow_cells
from .rules.weak_fill import weak_fill_cells

_FEWEST = 4
"""Queries and keys from which the weights alone show a mask that is rarely meant."""
_SINK = to_say("the last column is a sink that every query attends to, and no key; it was left out")
_EXTRA = to_say("columns that are no tokens, {count} at the end, such as a sink or a learned bias, were left out")
_REVERSED = to_say(
    "keys are looked for the more the farther away they are: the sign of a distance bias is turned around"
)
_REVERSED_FIX = "bias = -slopes[:, None, None] * (i - j).abs()  # a penalty that grows with the distance"
_POSITIVE = to_say("the mask holds +inf: added to the scores it makes every row NaN, where -inf would block")
_COMPARED = to_say(
    "this mask of zeros and ones is right if it is compared with 0; added to the scores it blocks nothing"
)
_POSITIVE_FIX = 'mask = mask.masked_fill(mask == float("inf"), float("-inf"))'


@np.errstate(all="ignore")
def judge(arrays: Arrays, meant_name: str | None = None) -> Diagnosis:
    """Return the diagnosis of one map.

    ``meant_name`` is a meaning for :func:`..masking.meaning.parse_meaning`; ValueError where it is none.
    """
    extra = arrays.extra_keys or int(has_sink_column(arrays))
    if meant_name is not None and not arrays.over_batch and parse_meaning(meant_name) is None:
        _, layers, _, queries, keys = arrays.sizes
        cells = np.pad(
            layer_masks(meant_name, layers, queries, keys - extra), [(0, 0)] * 2 + [(0, extra)], constant_values=True
        )
        arrays, meant_name = dataclasses.replace(arrays, meant=cells[None, :, None]), None
    said = meant_name is not None or arrays.meant is not None
    if arrays.over_batch:
        findings = [make_finding("batch-axis", np.ones(arrays.sizes, bool), arrays.map)]
        return Diagnosis(tuple(findings), (), say("cannot be told"), 0.0, stated=said)
    arrays, findings, stop = _judge_sums(arrays, stated_intent(arrays, meant_name))
    extra = extra or int(has_sink_column(arrays))
    if extra:
        looks = say(_EXTRA, count=extra) if arrays.extra_keys else say(_SINK)
        findings.append(make_finding("extra-mass", _last_columns(arrays, extra), arrays.map, looks=looks))
        arrays = without_last_keys(arrays, extra)
    stated = stated_intent(arrays, meant_name)
    case = Case(arrays, gather(arrays.weights), findings, stated=said)
    intent = stated if stop else _judge_masks(case, stated, meant_name)
    ranked = tuple(sorted(case.findings, key=lambda finding: finding.severity == "info"))
    unknown = undecided(arrays.given | ({"meant"} if stated is not None else set()), ranked)
    if intent is None:
        return Diagnosis(ranked, unknown, say("cannot be told"), 0.0, stated=said)
    meant = intent.allowed & ~intent.keyless_queries[:, None, None, :, None]
    if extra:
        meant = np.concatenate([meant, np.ones((*meant.shape[:-1], extra), bool)], -1)
    return Diagnosis(ranked, unknown, intent.words, intent.sure, meant, said, _name(intent))


def _last_columns(arrays: Arrays, count: int) -> np.ndarray:
    """Return (B, L, H, Q, K) bool, True at the last keys."""
    return np.broadcast_to(np.arange(arrays.sizes[4]) >= arrays.sizes[4] - count, arrays.sizes)


def _judge_masks(case: Case, stated: Intent | None, meant_name: str | None) -> Intent:
    """Add what the scores and the mask in force show; return what was meant, stated or the best guess."""
    _refine_evidence(case)
    report_uniform_samples(case)
    _report_holes_given(case)
    _report_positions(case)
    _report_by_scores(case)
    padded = stated_with_padding(case.arrays, case.evidence, meant_name)
    if padded is not None and fits(case, padded):
        stated = padded
    intent = alternative_intent(case, meant_name)
    if intent is None:
        intent = _explain(case, [stated] if stated is not None else proposed_intents(case.arrays, case.evidence))
    if stated is None:
        _report_unlikely_mask(case, intent)
    report_keyless_samples(case)
    report_empty_rows(case, intent)
    return intent


def _name(intent: Intent) -> str:
    """Return the name of the mask of an intent where all samples share one that has a name."""
    structures = set(intent.structures)
    return structure_name(structures.pop(), intent.base.shape[-1]) if len(structures) == 1 else ""


def _judge_sums(arrays: Arrays, stated: Intent | None) -> tuple[Arrays, list[Finding], bool]:
    """Return the arrays, transposed back where they were, the faults of the sums, and whether to stop at that."""
    known = stated.allowed if stated is not None else arrays.mask
    if known is None and arrays.key_keep is not None:
        known = as_columns(arrays.key_keep)
    fault = check_sums(arrays, known)
    if fault is None:
        return arrays, [], False
    where = np.broadcast_to(fault.rows[..., None], arrays.weights.shape)
    code, *twins = fault.codes
    findings = [make_finding(code, where, arrays.map, None, fault.detail, level=fault.level)]
    caveat = say("the weights alone cannot rule this out")
    findings += [make_finding(twin, where, arrays.map, "warning", caveat, level="likely") for twin in twins]
    if code == "transposed" and not arrays.transposed:
        arrays = dataclasses.replace(arrays, weights=np.swapaxes(arrays.weights, -1, -2))
    return arrays, findings, "softmax-axis" in fault.codes


def _refine_evidence(case: Case) -> None:
    """Correct the evidence by what is known besides the weights.

    After dropout a zero says nothing; scores tell which zeros are rounding, and a mask alone is never rounded; a row
    of fills is no ordinary row.
    """
    evidence = case.evidence
    if case.has("dropout-on"):
        rows = np.zeros_like(evidence.all_zero)
        case.evidence = dataclasses.replace(evidence, maybe_underflow=np.ones_like(rows)[..., None], all_zero=rows)
        return
    exact = not case.arrays.given & {"weights", "scores", "masked_scores"}
    underflow = np.zeros_like(evidence.maybe_underflow) if exact else underflow_cells(case.arrays, evidence)
    if underflow is not None:
        evidence = dataclasses.replace(evidence, maybe_underflow=underflow, from_scores=True)
    uniform = evidence.uniform_nonzero | rows_of_fills(case.arrays)
    case.evidence = dataclasses.replace(evidence, uniform_nonzero=uniform)


def _report_unlikely_mask(case: Case, intent: Intent) -> None:
    """Add a mask that agrees with the weights, but that hardly anybody means."""
    few = min(case.arrays.sizes[3:]) < _FEWEST and case.arrays.mask is None
    if few or not intent.structures or case.has():
        return
    looks, where = say("the mask is one that is rarely intended"), intent.allowed
    if all(structure.one_key_ahead for structure in intent.structures):
        detail = say("every query sees one key ahead, as with tril(1) in place of tril(0)")
        case.add("future-visible", where, "warning", detail, looks=looks)
    if all(structure.anti_causal for structure in intent.structures):
        detail = say("every query sees itself and what comes after it, as with triu in place of tril")
        case.add("inverted", where, "warning", detail, TRIANGLE_FIX, looks)


def _report_holes_given(case: Case) -> None:
    """Add a padding mask with a hole in it, unless what was meant has the same hole."""
    keep = case.arrays.key_keep
    if keep is None:
        return
    holes = span(keep) & ~keep
    if case.arrays.meant is not None:
        holes &= case.arrays.meant.any((1, 2, 3))
    case.add("hole-inside", as_columns(holes), detail=say("key_keep itself has the hole"))


def _report_by_scores(case: Case) -> None:
    """Add what the scores and the fill show without any idea of what was meant."""
    overflow = overflow_cells(case.arrays, case.evidence)
    if overflow is not None:
        beyond = say("beyond 65504, the largest number of float16")
        case.add("fill-overflow", overflow, detail=beyond, level="certain")
        case.exclude(np.asarray(case.evidence.nan.any(-1)))
    positive = positive_fill_cells(case.arrays)
    if positive is not None:
        case.add("fill-overflow", positive, looks=say(_POSITIVE), fix=_POSITIVE_FIX, level="certain")
        case.exclude(np.asarray(np.broadcast_to(positive, case.evidence.nonzero.shape).any((-1, -2))))
    bias = case.arrays.bias
    if bias is not None and not case.arrays.given & {"weights", "scores", "masked_scores"}:
        if is_zeros_and_ones(bias):
            case.add("soft-mask", bias == 0, looks=say(_COMPARED), level="likely")
        return
    biased = _report_biases(case)
    lowered = soft_mask_cells(case.arrays, case.evidence)
    lowered = None if lowered is None else lowered & ~biased[..., None, None]
    if lowered is not None and lowered.any():
        measured = case.arrays.given & {"weights", "masked_scores"}
        case.add("soft-mask", lowered, level="certain" if measured else None)
        case.exclude(np.asarray(lowered.any((-1, -2))))


def _report_biases(case: Case) -> np.ndarray:
    """Add biases that did not take effect as given; return (B, L, H), units in which one was told."""
    told, effects = given_bias_effects(case.arrays, case.evidence)
    for units, what in effects:
        case.add("bias-wrong", units[..., None, None], looks=what, level="certain")
        told = told | units
    reversed_ = reversed_slope(case.arrays, case.evidence)
    if reversed_ is not None:
        case.add("bias-wrong", reversed_[..., None, None], looks=say(_REVERSED), fix=_REVERSED_FIX, level="likely")
        told = told | reversed_
    return told


def _report_positions(case: Case) -> None:
    """Add positions that count the padding at the left."""
    counted = counted_padding(case.arrays)
    if counted is not None:
        case.add("positions-wrong", as_columns(counted), level="likely")


def _explain(case: Case, intents: list[Intent]) -> Intent:
    """Return the intent that holds, or after reporting it the one that the best explanation starts from."""
    _report_weak_fill(case, intents)
    refuted = any(intent.binding and contradicts_mask(case, intent) for intent in intents)
    for with_padding in (True, False) if not intents[0].binding else (False,):
        tried = [intent for intent in intents if not (with_padding and intent.binding)]
        for intent in tried:
            possible = intent.binding or not refuted
            if possible and fits(case, intent, with_padding) and not explanations(case, intent):
                return intent
        found = [one for intent in tried for one in explanations(case, intent)]
        found = [one for one in found if not with_padding or one.rank.unexplained_with_padding == 0]
        if found:
            return report(case, found)
    last = next((intent for intent in intents if intent.binding), intents[0])
    report_residual(case, last)
    return last


def _report_weak_fill(case: Case, intents: list[Intent]) -> None:
    """Add a weak fill, and take the cells it left with weight for zeros from here on."""
    for intent in [one for one in intents if one.binding] or intents:
        cells = weak_fill_cells(case.arrays, case.evidence, intent.allowed)
        if cells is not None and (intent.binding or _is_unlikely_by_chance(case, intent, cells)):
            most = float(np.nanmax(case.arrays.weights[cells]))
            case.add("weak-fill", cells, detail=say("up to {weight:.2g}", weight=most))
            case.evidence = case.without(cells).evidence
            return


def _is_unlikely_by_chance(case: Case, intent: Intent, cells: np.ndarray) -> bool:
    """Whether an unstated mask fits but for ``cells``, whose weights are too small to have come about without it."""
    if not fits(case.without(cells), intent):
        return False
    return depth(case.evidence, case.arrays.weights, intent.allowed, cells).log_chance < np.log(CHANCE)
