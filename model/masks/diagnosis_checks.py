"""The order of a diagnosis: documents, row sums, scores, then the mask in force against the mask that was meant."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..language import say, say_many, to_say
from .array_normalisation import is_zeros_and_ones, normalise_positions
from .arrays import MAX_CELLS, Arrays, DiagnosisError, broadcast_key_mask
from .evidence import drop_last_keys, gather_evidence, has_sink_column, measure_nonzero_cell_depth
from .fault_catalogue import FAULTS, NOTHING_TO_FIX, Severity
from .fault_hypotheses import (
    MAX_CHANCE,
    TRIANGLE_FIX,
    contradicts_given_mask,
    find_explanations,
    find_positions_counting_padding,
    matches_intent,
    report_explanation,
    report_unexplained_cells,
)
from .findings import Diagnosis, DiagnosisCase, Finding, UndecidedFault, find_undecided_faults, make_finding
from .intent import (
    AlternativeMask,
    IntendedMask,
    fill_keep_mask_gaps,
    find_alternative_masks,
    find_intent_with_edge_padding,
    find_intent_with_initial_padding,
    find_padding_between_segments,
    find_real_keys,
    find_stated_intent,
    propose_intents,
)
from .mask_descriptions import describe_keys_ahead
from .row_checks import (
    check_row_sums,
    find_fill_rows,
    report_empty_rows,
    report_keyless_samples,
    report_uniform_samples,
)
from .rule import build_layer_masks, names_padding, parse_meaning
from .score_weight_mismatch import find_score_mismatch
from .scores import (
    find_added_boolean_mask_cells,
    find_bias_effects,
    find_overflow_cells,
    find_positive_fill_cells,
    find_reversed_distance_bias_heads,
    find_underflow_cells,
    find_weak_fill_cells,
    is_fill_harmless,
)
from .softmax import find_position_restarts
from .structure import CAUSAL, name_structure

_MIN_TOKENS = 4
"""Queries and keys from which the weights alone show a mask that is rarely meant."""
_SINK_TEXT = to_say("the last column is a sink that every query attends to, and no key; it was left out")
_EXTRA_KEYS_TEXT = to_say(
    "columns that are no tokens, {count} at the end, such as a sink or a learned bias, were left out"
)
_REVERSED_BIAS_TEXT = to_say(
    "keys are looked for the more the farther away they are: the sign of a distance bias is turned around"
)
_REVERSED_BIAS_FIX = "bias = -slopes[:, None, None] * (i - j).abs()  # a penalty that grows with the distance"
_POSITIVE_FILL_TEXT = to_say("the mask holds +inf: added to the scores it makes every row NaN, where -inf would block")
_ZERO_ONE_TEXT = to_say(
    "this mask of zeros and ones is right if it is compared with 0; added to the scores it blocks nothing"
)
_SCORES_DIFFER_TEXT = to_say("the weights are not the softmax of the scores given with them, and need not be")
_DEEP_FILL_TEXT = to_say(
    "blocked cells keep a weight of {weight:.2g} at most, which changes no sum: the fill is finite, and deep enough"
)
_POSITIVE_FILL_FIX = 'mask = mask.masked_fill(mask == float("inf"), float("-inf"))'


@np.errstate(all="ignore")
def diagnose_arrays(arrays: Arrays, meant_name: str | None = None) -> Diagnosis:
    """Return the diagnosis of one map.

    ``meant_name`` is a meaning for :func:`.rule.parse_meaning`. Raises ValueError where it is none.
    """
    extra = arrays.extra_keys or int(has_sink_column(arrays))
    said = meant_name is not None or arrays.meant is not None
    if arrays.over_batch:
        findings = [make_finding("batch-axis", np.ones(arrays.sizes, bool), arrays.map)]
        return Diagnosis(tuple(findings), (), say("cannot be told"), 0.0, stated=said)
    arrays, findings, stop = _judge_row_sums(arrays, extra, meant_name)
    extra = extra or int(has_sink_column(arrays))
    if extra:
        looks = say(_EXTRA_KEYS_TEXT, count=extra) if arrays.extra_keys else say(_SINK_TEXT)
        findings.append(make_finding("extra-mass", _select_last_columns(arrays, extra), arrays.map, looks=looks))
        arrays = drop_last_keys(arrays, extra)
    stated = find_stated_intent(arrays, meant_name)
    evidence = gather_evidence(arrays.weights, arrays.real_queries, arrays.has_even_rows)
    case = DiagnosisCase(arrays, evidence, findings, stated=said)
    intent = stated if stop else _report_faults_and_find_intent(case, stated, meant_name)
    ranked = tuple(sorted(case.findings, key=lambda finding: finding.severity == "info"))
    unknown = find_undecided_faults(arrays.given | ({"meant"} if stated is not None else set()), ranked)
    untold = meant_name is not None and names_padding(meant_name) and not _is_padding_known(arrays, intent)
    if untold:
        others = (one for one in unknown if one.code != "padding-visible")
        unknown = (UndecidedFault("padding-visible", ("key_keep",)), *others)
    if intent is None:
        return Diagnosis(ranked, unknown, say("cannot be told"), 0.0, stated=said)
    meant = intent.allowed & ~intent.keyless_queries[:, None, None, :, None]
    if extra:
        meant = np.concatenate([meant, np.ones((*meant.shape[:-1], extra), bool)], -1)
    return Diagnosis(ranked, unknown, intent.words, intent.sure, meant, said, _find_intent_name(intent), untold)


def _is_padding_known(arrays: Arrays, intent: IntendedMask | None) -> bool:
    """Whether something says which keys are padding: an array, or keys at the ends that no query looks at."""
    return arrays.key_keep is not None or (intent is not None and intent.has_padding)


def _select_last_columns(arrays: Arrays, count: int) -> np.ndarray:
    """Return (B, L, H, Q, K) bool, True at the last keys."""
    return np.broadcast_to(np.arange(arrays.sizes[4]) >= arrays.sizes[4] - count, arrays.sizes)


def _report_faults_and_find_intent(
    case: DiagnosisCase, stated: IntendedMask | None, meant_name: str | None
) -> IntendedMask:
    """Add what the scores and the mask in force show; return what was meant, stated or the best guess."""
    _refine_evidence(case)
    report_uniform_samples(case)
    _report_padding_mask_holes(case)
    _report_positions_counting_padding(case)
    _report_score_faults(case)
    padded = find_intent_with_edge_padding(case.arrays, case.evidence, meant_name)
    if padded is not None and matches_intent(case, padded):
        stated = padded
    elif late := find_intent_with_initial_padding(case.arrays, case.evidence, meant_name):
        stated = late if find_explanations(case, late) else stated
    positions = case.arrays.position_ids
    documents = stated is None and positions is not None and find_position_restarts(positions).any()
    intent = None if documents else find_alternative_intent(case, meant_name)
    if intent is None:
        intent = _report_best_explanation(
            case, [stated] if stated is not None else propose_intents(case.arrays, case.evidence)
        )
    if stated is None:
        _report_unlikely_mask(case, intent)
    report_keyless_samples(case)
    report_empty_rows(case, intent)
    _report_score_mismatch(case, intent)
    return intent


def _report_score_mismatch(case: DiagnosisCase, intent: IntendedMask) -> None:
    """Add rows whose weights do not follow from the scores given, where nothing else tells why."""
    if case.has("soft-mask", "bias-wrong", "dropout-on", "applied-late", "weak-fill", "fill-overflow", "double-fill"):
        return
    doubtful = case.evidence.nan if intent.binding else case.evidence.nan | case.evidence.uniform_nonzero
    rows = (case.rows(intent) & ~doubtful)[..., None]
    found = find_score_mismatch(case.arrays, case.evidence, intent.allowed & rows)
    if found is not None:
        severity: Severity | None = "info" if found.sound else None
        fix = NOTHING_TO_FIX if found.sound else None
        looks = say(_SCORES_DIFFER_TEXT) if found.sound else None
        where = found.rows[..., None] & intent.allowed
        case.add("scores-mismatch", where, severity, found.words, fix, looks, level="certain")


def _find_intent_name(intent: IntendedMask) -> str:
    """Return the name of the mask of an intent where all samples share one that has a name."""
    structures = set(intent.structures)
    name = name_structure(structures.pop(), intent.base.shape[-1]) if len(structures) == 1 else ""
    return "padding" if name == "full" and intent.has_padding else name


def _judge_row_sums(arrays: Arrays, extra: int, meant_name: str | None) -> tuple[Arrays, list[Finding], bool]:
    """Return the arrays, transposed back where they were, the faults of the sums, and whether to stop at that."""
    if arrays.has_even_rows:
        return arrays, [], False  # each sums to 1 or to 0
    stated = find_stated_intent(drop_last_keys(arrays, extra) if extra else arrays, meant_name)
    known = stated.allowed if stated is not None else arrays.mask
    if stated is not None and extra:
        known = np.pad(stated.allowed, [(0, 0)] * 4 + [(0, extra)], constant_values=True)
    if known is None and arrays.key_keep is not None:
        known = broadcast_key_mask(arrays.key_keep)
    fault = check_row_sums(arrays, known, is_said=meant_name is not None or arrays.meant is not None)
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


def _refine_evidence(case: DiagnosisCase) -> None:
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
    underflow = np.zeros_like(evidence.maybe_underflow) if exact else find_underflow_cells(case.arrays, evidence)
    if underflow is not None:
        evidence = dataclasses.replace(evidence, maybe_underflow=underflow, from_scores=True)
    uniform = evidence.uniform_nonzero | find_fill_rows(case.arrays)
    case.evidence = dataclasses.replace(evidence, uniform_nonzero=uniform)


def _report_unlikely_mask(case: DiagnosisCase, intent: IntendedMask) -> None:
    """Add a mask that agrees with the weights, but that hardly anybody means."""
    few = min(case.arrays.sizes[3:]) < _MIN_TOKENS and case.arrays.mask is None
    if few or not intent.structures or case.has():
        return
    looks, where = say("the mask is one that is rarely intended"), intent.allowed
    if all(structure.one_key_ahead for structure in intent.structures):
        queries, keys = case.arrays.sizes[3:]
        case.add("future-visible", where, "warning", describe_keys_ahead(1, keys - queries), looks=looks)
    if all(structure.anti_causal for structure in intent.structures):
        detail = say("every query sees itself and what comes after it, as with triu in place of tril")
        case.add("inverted", where, "warning", detail, TRIANGLE_FIX, looks)


def _report_padding_mask_holes(case: DiagnosisCase) -> None:
    """Add a padding mask with a hole in it, unless what was meant has the same hole."""
    keep = case.arrays.key_keep
    if keep is None:
        return
    holes = fill_keep_mask_gaps(keep) & ~keep & ~find_padding_between_segments(keep)
    if case.arrays.meant is not None:
        holes &= case.arrays.meant.any((1, 2, 3))
    case.add("hole-inside", broadcast_key_mask(holes), detail=say("key_keep itself has the hole"))


def _report_score_faults(case: DiagnosisCase) -> None:
    """Add what the scores and the fill show without any idea of what was meant."""
    overflow = find_overflow_cells(case.arrays, case.evidence)
    if overflow is not None:
        beyond = say("beyond 65504, the largest number of float16")
        case.add("fill-overflow", overflow, detail=beyond, level="certain")
        case.exclude_units(np.asarray(case.evidence.nan.any(-1)))
    positive = find_positive_fill_cells(case.arrays)
    if positive is not None:
        case.add("fill-overflow", positive, looks=say(_POSITIVE_FILL_TEXT), fix=_POSITIVE_FILL_FIX, level="certain")
        case.exclude_units(np.asarray(np.broadcast_to(positive, case.evidence.nonzero.shape).any((-1, -2))))
    bias = case.arrays.bias
    if bias is not None and not case.arrays.given & {"weights", "scores", "masked_scores"}:
        if is_zeros_and_ones(bias):
            case.add("soft-mask", bias == 0, looks=say(_ZERO_ONE_TEXT), level="likely")
        return
    biased = _report_misapplied_biases(case)
    lowered = find_added_boolean_mask_cells(case.arrays, case.evidence)
    lowered = None if lowered is None else lowered & ~biased[..., None, None]
    if lowered is not None and lowered.any():
        measured = case.arrays.given & {"weights", "masked_scores"}
        case.add("soft-mask", lowered, level="certain" if measured else None)
        case.exclude_units(np.asarray(lowered.any((-1, -2))))


def _report_misapplied_biases(case: DiagnosisCase) -> np.ndarray:
    """Add biases that did not take effect as given; return (B, L, H), units in which a bias was recognised."""
    told, effects = find_bias_effects(case.arrays, case.evidence)
    for units, what in effects:
        case.add("bias-wrong", units[..., None, None], looks=what, level="certain")
        told = told | units
    reversed_ = find_reversed_distance_bias_heads(case.arrays, case.evidence)
    if reversed_ is not None:
        case.add(
            "bias-wrong",
            reversed_[..., None, None],
            looks=say(_REVERSED_BIAS_TEXT),
            fix=_REVERSED_BIAS_FIX,
            level="likely",
        )
        told = told | reversed_
    return told


def _report_positions_counting_padding(case: DiagnosisCase) -> None:
    """Add positions that count the padding at the left."""
    counted = find_positions_counting_padding(case.arrays)
    if counted is not None:
        case.add("positions-wrong", broadcast_key_mask(counted), level="likely")


def _report_best_explanation(case: DiagnosisCase, intents: list[IntendedMask]) -> IntendedMask:
    """Return the intent that holds, or after reporting it the one that the best explanation starts from."""
    _report_weak_fill(case, intents)
    refuted = any(intent.binding and contradicts_given_mask(case, intent) for intent in intents)
    for with_padding in (True, False) if not intents[0].binding else (False,):
        tried = [intent for intent in intents if not (with_padding and intent.binding)]
        for intent in tried:
            possible = intent.binding or not refuted
            if possible and matches_intent(case, intent, with_padding) and not find_explanations(case, intent):
                return intent
        found = [one for intent in tried for one in find_explanations(case, intent)]
        found = [one for one in found if not with_padding or one.rank.unexplained_with_padding == 0]
        if found:
            return report_explanation(case, found)
    last = next((intent for intent in intents if intent.binding), intents[0])
    report_unexplained_cells(case, last)
    return last


def _report_weak_fill(case: DiagnosisCase, intents: list[IntendedMask]) -> None:
    """Add a weak fill, and take the cells it left with weight for zeros from here on."""
    for intent in [one for one in intents if one.binding] or intents:
        cells = find_weak_fill_cells(case.arrays, case.evidence, intent.allowed)
        if cells is not None and (intent.binding or _is_unlikely_by_chance(case, intent, cells)):
            most = float(np.nanmax(case.arrays.weights[cells]))
            if is_fill_harmless(case.arrays.weights, intent.allowed, cells):
                looks = say(_DEEP_FILL_TEXT, weight=most)
                case.add("weak-fill", cells, "info", fix=NOTHING_TO_FIX, looks=looks)
            else:
                case.add("weak-fill", cells, detail=say("up to {weight:.2g}", weight=most))
            case.evidence = case.copy_with_zeroed_cells(cells).evidence
            return


def _is_unlikely_by_chance(case: DiagnosisCase, intent: IntendedMask, cells: np.ndarray) -> bool:
    """Whether an unstated mask fits but for ``cells``, whose weights are too small to have come about without it."""
    if not matches_intent(case.copy_with_zeroed_cells(cells), intent):
        return False
    return measure_nonzero_cell_depth(case.evidence, case.arrays.weights, intent.allowed, cells).log_chance < np.log(
        MAX_CHANCE
    )


# Whether the weights follow a sound mask that nobody stated, so that the usual one would be a false alarm.


_ODD_UNITS_TEXT = to_say("the other layers or heads follow another mask")
_WINDOW_TEXT = to_say("the future is hidden as was said, and keys beyond a window as well")
_WINDOW_FIX = 'diagnose(..., meant="causal+window:W")  # to have the width checked too'


def find_alternative_intent(case: DiagnosisCase, meant_name: str | None) -> IntendedMask | None:
    """Return the mask that the weights follow, after reporting the few layers or heads that do not; else None.

    Nothing is proposed against what is stated, save where ``causal`` is stated by name alone: a window hides the future
    as well.
    """
    arrays = case.arrays
    named = meant_name is not None and parse_meaning(meant_name) == CAUSAL and arrays.meant is None
    if (case.stated and not named) or "weights" not in arrays.given or case.has():
        return None
    padding_known = arrays.key_keep is not None or arrays.mask is not None
    for one in find_alternative_masks(arrays, case.evidence, find_real_keys(arrays) if padding_known else None):
        if named and not (one.odd is None and one.hides_future and set(one.intent.structures) != {CAUSAL}):
            continue
        if _matches_alternative(case, one):
            _report_deviating_layers_or_heads(case, one)
            if not named:
                return one.intent
            closed = ~one.intent.allowed & CAUSAL.build_mask(*arrays.sizes[3:]) & one.intent.columns
            case.add("over-blocked", closed, "info", looks=say(_WINDOW_TEXT), fix=_WINDOW_FIX)
            return dataclasses.replace(one.intent, sure=1.0)
    return None


def _matches_alternative(case: DiagnosisCase, one: AlternativeMask) -> bool:
    mask = case.arrays.mask
    if mask is not None and (one.odd is not None or (one.intent.allowed & ~mask).any()):
        return False
    rest = case if one.odd is None else case.copy_excluding(one.odd)
    with_padding = matches_intent(rest, one.intent, with_padding=True)
    # A window is recognised without the rows of padding queries.
    if contradicts_given_mask(case, one.intent) or not (
        with_padding or (one.hides_future and matches_intent(rest, one.intent))
    ):
        return False
    return not find_explanations(rest, one.intent)


def _report_deviating_layers_or_heads(case: DiagnosisCase, one: AlternativeMask) -> None:
    """Add the few layers or heads that see what all the others do not, or do not see what they do."""
    if one.odd is None:
        return
    units = one.odd[..., None, None] & case.rows(one.intent)[..., None]
    ahead = case.evidence.nonzero & ~one.intent.allowed & units
    behind = one.intent.allowed & ~case.evidence.nonzero & units
    case.add(
        "future-visible" if ahead.any() else "over-blocked",
        ahead if ahead.any() else behind,
        detail=say(_ODD_UNITS_TEXT),
        intent=one.intent,
    )


# Packed documents that arrays tell: cumulative lengths as the meaning they are, and positions that begin anew.
#
# Cumulative lengths (FlashAttention: cu_seqlens) and positions that begin anew are both (K,): nothing here has Q x K
# cells unless weights, scores or a mask have them.


CUMULATIVE = "cu_seqlens"
"""The name of cumulative lengths among the arrays of a diagnosis."""


def convert_cu_seqlens_to_meant(
    named: Mapping[str, np.ndarray], meant: str | None = None
) -> tuple[dict[str, np.ndarray], str | None]:
    """Return the arrays with the documents of ``cu_seqlens``, where given, as ``meant``, and what ``meant`` is then.

    A meaning in words holds inside of each document. Without one it is causal where nothing given lies above the
    diagonal.

    Raises:
        DiagnosisError: for lengths that are none, or that do not fit the map.
    """
    arrays = dict(named)
    ends = arrays.pop(CUMULATIVE, None)
    if ends is None:
        return arrays, meant
    shown = next((arrays[name] for name in ("weights", "masked_scores", "mask", "scores") if name in arrays), None)
    if shown is None or shown.ndim < 2 or "meant" in arrays:
        return arrays, meant
    queries, keys = shown.shape[-2:]
    document = _compute_document_ids(_convert_to_document_ends(ends), keys)
    if queries != keys:
        raise DiagnosisError(
            say("cu_seqlens is of {keys} tokens, but there are {queries} queries.", keys=keys, queries=queries)
        )
    same = document[:, None] == document
    if meant is None:
        return arrays | {"meant": same & np.tri(keys, dtype=bool) if _is_causal(shown) else same}, None
    layers = shown.shape[1] if shown.ndim == 5 else 1
    masks = build_layer_masks(meant, layers, queries, keys) & same
    return arrays | {"meant": masks[None, :, None] if len(masks) > 1 else masks[0]}, None


def _convert_to_document_ends(lengths: np.ndarray) -> np.ndarray:
    """Return cumulative lengths as (N,) whole numbers. Raises DiagnosisError for any that are none, or too large."""
    flat = lengths.reshape(-1)
    whole = flat.size > 1 and bool((np.isfinite(flat) & (flat == np.round(flat))).all())
    if lengths.shape[-1:] != flat.shape or not whole or flat[0] != 0 or (flat[1:] < flat[:-1]).any():
        raise DiagnosisError(say("cu_seqlens is a list of growing whole numbers that starts at 0."))
    if flat[-1] > MAX_CELLS:
        raise DiagnosisError(
            say("cu_seqlens ends at {last:,}; at most {most:,} tokens are read.", last=int(flat[-1]), most=MAX_CELLS)
        )
    return flat.astype(np.int64)


def _compute_document_ids(ends: np.ndarray, tokens: int) -> np.ndarray:
    """Return (tokens,): the number of the document of each token, by where each (N,) ends. Raises DiagnosisError."""
    if ends[-1] != tokens:
        raise DiagnosisError(
            say("cu_seqlens ends at {last}, but there are {tokens} tokens.", last=int(ends[-1]), tokens=tokens)
        )
    return np.searchsorted(ends[1:], np.arange(tokens), side="right")


def _is_causal(shown: np.ndarray) -> bool:
    """Whether weights, a mask or masked scores (..., T, T) have nothing above the diagonal."""
    above = shown[..., ~np.tri(shown.shape[-1], dtype=bool)]
    return not (above > 0).any() if above.dtype.kind in "bui" or (above >= 0).all() else bool((above < -1e3).all())


def diagnose_document_positions(named: Mapping[str, np.ndarray]) -> Diagnosis | None:
    """Return the diagnosis of cumulative lengths beside positions, where nothing else is to be judged; else None.

    Raises:
        DiagnosisError: for lengths that are none, or that do not fit the positions.
    """
    if CUMULATIVE not in named or {"weights", "scores", "masked_scores", "mask"} & named.keys():
        return None
    ends, positions = _convert_to_document_ends(named[CUMULATIVE]), named.get("position_ids")
    words = say_many(
        "{count:,} packed document of {tokens:,} tokens",
        "{count:,} packed documents of {tokens:,} tokens",
        int(np.count_nonzero(np.diff(ends))),
        tokens=int(ends[-1]),
    )
    if positions is None:
        return Diagnosis((), (), words, 1.0, stated=True)
    document = _compute_document_ids(ends, positions.size)
    starts = np.concatenate([[False], document[1:] != document[:-1]])
    flat = normalise_positions(positions.reshape(-1), 1, len(document))[0]
    disagree = {"document-leak": find_position_restarts(flat) & ~starts, "over-blocked": starts & (flat != flat[0])}
    findings = [_make_document_finding(code, wrong, document) for code, wrong in disagree.items() if wrong.any()]
    return Diagnosis(tuple(findings), (), words, 1.0, stated=True)


_POSITIONS_FIX = "position_ids = torch.arange(K) - cu_seqlens[:-1].repeat_interleave(cu_seqlens.diff())"


def _make_document_finding(code: str, wrong: np.ndarray, document: np.ndarray) -> Finding:
    """Return the finding on the tokens ``wrong`` (K,) bool, which names the first of them."""
    token, more = int(np.argmax(wrong)), int(wrong.sum()) - 1
    place = {"token": f"{token + 1:,}", "document": f"{int(document[token]) + 1:,}"}
    what = (
        say("positions begin anew at token {token}, inside document {document}", **place)
        if code == "document-leak"
        else say("document {document} begins at token {token}, where positions count on", **place)
    )
    message = say("cu_seqlens and position_ids disagree: {what}.", what=what)
    if more:
        message = say("cu_seqlens and position_ids disagree: {what}, and {more:,} more.", what=what, more=more)
    return Finding(code, FAULTS[code].severity, "", 0, None, None, (token,), (token,), message, _POSITIONS_FIX)
