"""Which mistake explains the weights best, whether a mask matches them, and what no mistake explains."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from ..language import say, say_many, to_say
from .arrays import Arrays, broadcast_key_mask
from .evidence import Evidence
from .fault_catalogue import NOTHING_TO_FIX, Severity
from .findings import DiagnosisCase
from .index_ranges import find_differing_rows, iterate_row_parts, take_rows
from .intent import IntendedMask, find_padding_between_segments, stack_structure_masks
from .mask_descriptions import describe_affected_rows, describe_keys_ahead, describe_mask_difference
from .row_checks import find_empty_rows, find_fill_rows, find_fully_masked_samples
from .scores import find_plain_softmax_heads
from .softmax import is_blocked
from .structure import CAUSAL, Structure, recognise_structure

# The best explanation: of the hypotheses that match the weights, the closest and most common.


_INDISTINGUISHABLE_PAIRS = {
    frozenset(pair)
    for pair in (
        ("causal-on-cross", "top-left-causal"),
        ("causal-on-cross", "over-blocked"),
        ("mask-ignored", "future-visible"),
        ("mask-ignored", "padding-visible"),
        ("mask-ignored", "document-leak"),
        ("padding-swapped", "padding-visible"),
        ("padding-swapped", "mask-shifted"),
    )
}
"""Pairs of mistakes that can leave exactly the same weights."""
TRIANGLE_FIX = "mask = mask.mT  # tril() keeps the past"
"""The line that fixes exchanged triangles."""
_HEAD_MAJOR_FIX = "mask = mask.repeat(heads, 1, 1)  # these scores are (H*N, L, S), head-major: not repeat_interleave"
_CODES_NEEDING_INTENT = ("future-visible", "window-off-by-one", "window-missing", "document-leak", "over-blocked")
"""Mistakes that cannot be seen without knowing what was meant."""


_KEYLESS_TEXT = to_say(
    "once it is mended, rows of padding queries have no key left: set them to zero after the softmax, or it makes NaN"
)


class ExplanationRank(NamedTuple):
    """How well an explanation fits: smaller is better, the first fields count most."""

    unexplained: int
    """Samples, layers and heads left unexplained."""
    unexplained_with_padding: int
    """The same, with the rows of padding queries judged as well."""
    uninformative_rows: int
    allowed_zeros: int
    rarity: int
    """Place among the hypotheses, the most common first."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """One mistake that fits."""

    code: str
    allowed: np.ndarray
    """(B, L, H, Q, K) bool, axes possibly 1: the mask it would have put in force."""
    intent: IntendedMask
    unexplained: np.ndarray
    """(B, L, H): units that the intent itself does not explain; none when the difference hides in peaked heads."""
    rank: ExplanationRank


def matches_intent(case: DiagnosisCase, intent: IntendedMask, with_padding: bool = False) -> bool:
    """Whether the weights are what this intent makes, on request also in the rows of padding queries."""
    return bool(_match_weights_to_intent(case, intent, with_padding).units.all())


def _match_weights_to_intent(case: DiagnosisCase, intent: IntendedMask, with_padding: bool = False) -> MaskMatch:
    padding = case.find_padding_queries(intent)
    double = find_empty_rows(case.arrays, case.evidence, intent, padding).double_fill
    rows = case.rows(intent, with_padding)
    return match_mask(case.evidence, intent.allowed, rows, padding, case.evidence.uniform | double)


def find_explanations(case: DiagnosisCase, intent: IntendedMask) -> list[Explanation]:
    """Return mistakes that explain every unit that the intent does not, best first.

    Where the intent explains them all, only mistakes that block more are looked for: in heads so peaked that
    many weights are zero anyway, a stricter mask is seen by the pattern of its zeros.
    """
    unexplained = ~_match_weights_to_intent(case, intent).units
    if not unexplained.any() and (case.evidence.from_scores or not case.evidence.maybe_underflow.any()):
        return []
    wrong = find_differing_rows(case.evidence.nonzero, intent.allowed)
    found = (
        _explain_by_hypothesis(case, intent, hypothesis, unexplained, wrong, rarity)
        for rarity, hypothesis in _select_hypotheses(case, intent)
    )
    return sorted((one for one in found if one is not None), key=lambda one: one.rank)


def _select_hypotheses(case: DiagnosisCase, intent: IntendedMask) -> Iterator[tuple[int, Hypothesis]]:
    """Yield the hypotheses that differ from the intent in a row that counts, numbered by how common they are."""
    for rarity, (code, allowed) in enumerate(generate_hypotheses(case.arrays, case.evidence, intent)):
        if not intent.binding and (
            code in _CODES_NEEDING_INTENT or ("+" in code and code.partition("+")[0] in _CODES_NEEDING_INTENT)
        ):
            continue
        rows = case.rows(intent, code == "wrong-axis" or not intent.binding)
        if (find_differing_rows(allowed, intent.allowed) & rows).any():
            yield rarity, (code, allowed)


def _explain_by_hypothesis(
    case: DiagnosisCase,
    intent: IntendedMask,
    hypothesis: Hypothesis,
    unexplained: np.ndarray,
    wrong: np.ndarray,
    rarity: int,
) -> Explanation | None:
    """Return the hypothesis with its rank, or None when it does not explain what it must.

    ``unexplained`` (B, L, H) are the units, and ``wrong`` (B, L, H, Q) the rows, that the intent does not explain.
    """
    code, allowed = hypothesis
    hidden = not unexplained.any()
    if hidden and not _is_only_stricter(intent.allowed, allowed, case.rows(intent)):
        return None
    padding, fill_rows = case.find_padding_queries(intent), case.evidence.uniform | find_fill_rows(case.arrays)
    if code in ("inverted", "diagonal-blocked") and not hidden and allowed.shape[-1] > 1:
        # A finite number added to a whole row changes nothing in it.
        fill_rows = fill_rows | case.evidence.nonzero.all(-1)
    layers = np.asarray(unexplained.any((0, 2)))[None, :, None, None] | hidden
    judged = case.rows(intent, code == "wrong-axis") & layers
    if not hidden and not _are_some_rows_explained(
        case.evidence, allowed, wrong & judged, padding, fill_rows, unexplained
    ):
        return None
    real, padded = (
        match_mask(case.evidence, allowed, case.rows(intent, with_padding) & layers, padding, fill_rows)
        for with_padding in (code == "wrong-axis", True)
    )
    if not (real.units | ~unexplained).all() or (hidden and not real.units.all()):
        return None
    rows = case.rows(intent, bool(padded.units.all())) & (unexplained[..., None] | hidden)
    if not is_match_significant(case.evidence, intent.allowed, allowed, rows, selected_columns=code == "hole-inside"):
        return None
    if code == "inverted" and not (allowed.any(-1) & rows).any():
        return None  # a mask that allows nothing explains every empty row, and says nothing
    if code == "mask-ignored" and not _is_mask_ignored_possible(case, intent, unexplained):
        return None
    first = code == "mask-ignored" and mask_had_no_effect(case, intent, unexplained)
    counts = real.unexplained_count, padded.unexplained_count, padded.uninformative_rows, padded.allowed_zeros
    return Explanation(code, allowed, intent, unexplained, ExplanationRank(*counts, -1 if first else rarity))


def _are_some_rows_explained(
    evidence: Evidence,
    allowed: np.ndarray,
    rows: np.ndarray,
    padding: np.ndarray,
    fill_rows: np.ndarray,
    units: np.ndarray,
) -> bool:
    """Whether ``allowed`` explains the ``units`` (B, L, H) in a few of the ``rows`` that the intent does not explain.

    Most masks do not. Of small maps all rows are judged later, and nothing is looked at here.
    """
    queries = evidence.nonzero.shape[-2]
    if queries <= _MANY_ROWS:
        return True
    at = np.flatnonzero(rows.any((0, 1, 2)))[:_SOME_ROWS]
    some = evidence.take_rows(at)
    return bool(
        (
            match_mask(
                some,
                allowed[..., at, :] if allowed.shape[-2] > 1 else allowed,
                rows[..., at],
                padding[:, at],
                fill_rows[..., at],
            ).units
            | ~units
        ).all()
    )


def _is_only_stricter(meant: np.ndarray, allowed: np.ndarray, rows: np.ndarray) -> bool:
    """Whether in the rows that count something is closed and nothing opened."""
    opened, closed = (cells & rows[..., None] for cells in (allowed & ~meant, meant & ~allowed))
    return bool(closed.any()) and not opened.any()


def contradicts_given_mask(case: DiagnosisCase, intent: IntendedMask) -> bool:
    """Whether weights lie on cells that the mask given blocks: then no other reading makes them right."""
    mask = case.arrays.mask
    if mask is None or "weights" not in case.arrays.given:
        return False
    rows = case.rows(intent) & mask.any(-1)
    return bool((case.evidence.nonzero & ~mask & rows[..., None]).any())


def mask_had_no_effect(case: DiagnosisCase, intent: IntendedMask, units: np.ndarray) -> bool:
    """Whether weights lie where the mask or the masked scores block, or on several blocked parts of the intent.

    A mask that blocks nothing in the ``units`` (B, L, H) concerned, as a capture shows where none arrived, is none.
    """
    mask, masked = case.arrays.mask, case.arrays.masked_scores
    stray = case.evidence.nonzero & ~intent.allowed & case.rows(intent)[..., None]
    if masked is not None and (stray & is_blocked(masked)).any():
        return True
    if mask is not None and not (mask | ~units[..., None, None]).all():
        return bool((stray & ~mask).any())
    return intent.binding and intent.count_blocking_reasons(units) > 1 and not _is_window_only_restriction(intent)


def _is_window_only_restriction(intent: IntendedMask) -> bool:
    """Whether everything would be allowed if there were no window."""
    queries, keys = intent.base.shape[-2:]
    free = [dataclasses.replace(one, lo=None, hi=one.hi if one.hi == 0 else None) for one in intent.structures]
    windows = any(one.lo is not None for one in intent.structures)
    return windows and bool((stack_structure_masks(free, queries, keys) & intent.columns).all())


def _is_mask_ignored_possible(case: DiagnosisCase, intent: IntendedMask, unexplained: np.ndarray) -> bool:
    """Whether ``mask-ignored`` is possible: the scores agree, and a mask that was given blocks nonzero cells."""
    plain = find_plain_softmax_heads(case.arrays, case.evidence)
    if plain is not None and not (plain | ~unexplained).all():
        return False
    if case.arrays.mask is not None:
        return mask_had_no_effect(case, intent, unexplained)
    return plain is not None or (
        intent.binding and intent.count_blocking_reasons(unexplained) > 1 and not _is_window_only_restriction(intent)
    )


def report_explanation(case: DiagnosisCase, found: list[Explanation]) -> IntendedMask:
    """Add the best explanation, and its twins where the weights cannot tell them apart; return its intent."""
    first = min(found, key=lambda one: (*one.rank[:4], not one.intent.binding, one.rank.rarity))
    _add_finding(case, first)
    certain = first.code == "mask-ignored" and mask_had_no_effect(case, first.intent, first.unexplained)
    for other in () if certain else found:
        twins = frozenset((first.code, other.code)) in _INDISTINGUISHABLE_PAIRS
        if twins and not case.has(other.code) and _have_same_weights(case, first, other):
            _add_finding(case, other, "warning")
    return first.intent


def _have_same_weights(case: DiagnosisCase, first: Explanation, other: Explanation) -> bool:
    """Whether both would leave the same weights; padding swaps only where the other side has padding at all."""
    swap = "padding-swapped" in (first.code, other.code)
    if swap and (case.arrays.query_keep is None or case.arrays.query_keep.all()):
        return False
    return not (first.allowed ^ other.allowed).any()


def _add_finding(case: DiagnosisCase, explanation: Explanation, severity: Severity | None = None) -> None:
    code, allowed, intent = explanation.code, explanation.allowed, explanation.intent
    if "+" in code:
        opened, closed = allowed & ~intent.allowed, intent.allowed & ~allowed
        for part, cells in zip(code.split("+"), (closed, opened), strict=True):
            units = explanation.unexplained[..., None, None]
            case.add(part, cells & case.rows(intent)[..., None] & units, intent=intent)
        return
    units = explanation.unexplained if explanation.unexplained.any() else np.ones_like(explanation.unexplained)
    for with_padding in (code == "wrong-axis", True):
        rows = case.rows(intent, with_padding)
        wrong = (allowed ^ intent.allowed) & rows[..., None] & units[..., None, None]
        if wrong.any():
            break
    if severity:
        caveat = say("the weights alone cannot rule this out")
        case.add(code, wrong, severity, caveat, level="likely", intent=intent)
    elif code == "head-order" and not _has_repeat_ordered_padding(case, explanation):
        case.add(code, wrong, fix=_HEAD_MAJOR_FIX)
    else:
        looks, detail = _describe_difference(case, explanation, wrong)
        swapped = code == "inverted" and (allowed & intent.allowed).any() and not intent.has_padding
        case.add(code, wrong, detail=detail, looks=looks, fix=TRIANGLE_FIX if swapped else None, intent=intent)


def _describe_difference(case: DiagnosisCase, explanation: Explanation, wrong: np.ndarray) -> tuple[str | None, str]:
    """Return what stands in the place of the catalogue's words, or None, and what is added to them."""
    code, allowed, intent = explanation.code, explanation.allowed, explanation.intent
    if code == "inverted" and (allowed & intent.allowed).any():
        return None, say("tril and triu are exchanged")
    if code == "padding-visible":
        judged = intent.base & ~intent.columns & case.rows(intent)[..., None]
        rows, all_rows = (np.asarray(one.any((0, 1, 2, 4))) for one in (wrong, judged))
        keyless = "" if intent.allowed.any(-1).all() else say(_KEYLESS_TEXT)
        return None, "; ".join(filter(None, (describe_affected_rows(rows, all_rows), keyless)))
    if code == "future-visible":
        return _describe_late_triangle(explanation), ""
    if code == _LAYER_PATTERN_CODE and (sinks := _count_lost_sinks(explanation)):
        looks = say_many(
            "the first key is no longer seen beside the window: the sink is lost",
            "the first {count} keys are no longer seen beside the window: the sinks are lost",
            sinks,
        )
        return looks, ""
    return None, describe_mask_difference(case, intent, wrong) if code in ("over-blocked", "leak") else ""


def _describe_late_triangle(explanation: Explanation) -> str | None:
    """Return in words that the causal part is there and ends too late, or None where the future is open altogether."""
    allowed, intent = explanation.allowed, explanation.intent
    queries, keys = intent.base.shape[-2:]
    distance = np.arange(keys) - np.arange(keys - queries, keys)[:, None]
    opened = allowed & ~intent.allowed
    ahead = int(distance[opened.any((0, 1, 2))].max(initial=0))
    within = intent.columns & (distance > 0) & (distance <= ahead)
    late = 0 < ahead < queries - 1 and not (allowed ^ (intent.allowed | within)).any()
    return describe_keys_ahead(ahead, keys - queries) if late else None


def _count_lost_sinks(explanation: Explanation) -> int:
    """Return how many first keys beside a window the explanation takes away; 0 where it is another one."""
    intent = explanation.intent
    if not intent.structures or not all(one.sinks for one in intent.structures):
        return 0
    without = [dataclasses.replace(one, sinks=0) for one in intent.structures]
    lost = stack_structure_masks(without, *intent.base.shape[-2:]) & intent.columns
    return intent.structures[0].sinks if np.array_equal(lost, explanation.allowed) else 0


def _has_repeat_ordered_padding(case: DiagnosisCase, explanation: Explanation) -> bool:
    """Whether each head has the padding that ``repeat`` puts there, rather than that of head-major scores."""
    b, _, heads, _, _ = case.arrays.sizes
    sample = (np.arange(b)[:, None] * heads + np.arange(heads)[None, :]) % b
    intent = explanation.intent
    return bool((explanation.allowed == (intent.base & intent.keep[sample][:, None, :, None, :])).all())


# Matching a mask with the weights cell by cell, allowing for rounding and chance.


_MANY_ROWS, _SOME_ROWS = 512, 32
"""Queries from which a mistake is tried on some rows before it is tried on all."""
_LONG_ROW, _SPARSE_PART, _DIFFERENT_PART = 4, 0.6, 0.2
"""Allowed keys of a row, and number of such rows, from which sparse weights are recognised; part of these rows that
have zeros; part of the cells in which neighbouring rows differ. A window or a block differs in one cell a row."""
MAX_CHANCE = 1e-3
"""A pattern of zeros counts as a mask when rounding alone would make it more rarely than this."""


@dataclass(frozen=True, eq=False)
class MaskMatch:
    """How one mask compares with the weights."""

    units: np.ndarray
    """(B, L, H) bool: samples, layers and heads that the mask explains."""
    uninformative_rows: int
    """Rows, padding queries included, that are all zero, NaN or uniform although the mask leaves them keys."""
    allowed_zeros: int
    """Allowed cells that are nevertheless zero."""

    @property
    def unexplained_count(self) -> int:
        """Number of samples, layers and heads that the mask does not explain."""
        return int((~self.units).sum())


def match_mask(
    evidence: Evidence, allowed: np.ndarray, judged_rows: np.ndarray, padding: np.ndarray, fill_rows: np.ndarray
) -> MaskMatch:
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
    stray, missing, zeros = _compare_cells(evidence, allowed, rows)
    outside = stray & judged_rows & live
    void = judged_rows & ~live & ~(blank | evidence.uniform_nonzero)  # which two fills leave uneven
    broken = rows & (evidence.all_zero | evidence.nan)
    return MaskMatch(
        ~(outside | void | broken | missing).any(-1),
        int((~evidence.informative_rows & live & judged_rows).sum()),
        zeros,
    )


def _compare_cells(evidence: Evidence, allowed: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the rows with weight outside of ``allowed``, those that lack some inside, and how many cells lack it.

    Of the latter two, ``rows`` (B, L, H, Q) bool count alone.
    """
    stray, missing, zeros = [], [], 0
    for part in iterate_row_parts(evidence.nonzero.shape):
        inside, nonzero = take_rows(allowed, part), evidence.nonzero[..., part, :]
        stray.append((nonzero > inside).any(-1))
        lacking = inside > nonzero
        lacking &= rows[..., part, None]
        zeros += int(lacking.sum())
        missing.append((lacking > take_rows(evidence.maybe_underflow, part)).any(-1))
    return np.concatenate(stray, -1), np.concatenate(missing, -1), zeros


def is_match_significant(
    evidence: Evidence, meant: np.ndarray, allowed: np.ndarray, rows: np.ndarray, selected_columns: bool = False
) -> bool:
    """Whether ``allowed`` is more than a chance fit: what it opens is nonzero, what it closes is not rounding.

    Masks are (B, L, H, Q, K), axes possibly 1, the ``rows`` to judge (B, L, H, Q). ``selected_columns`` says that the
    columns it closes were selected among all by looking at the weights.
    """
    if not _are_opened_cells_nonzero(evidence, meant, allowed, rows):
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
    return bool(int(closed.sum()) * np.log(max(chance, 1e-12)) + ways < np.log(MAX_CHANCE))


def _are_opened_cells_nonzero(evidence: Evidence, meant: np.ndarray, allowed: np.ndarray, rows: np.ndarray) -> bool:
    """Whether the cells that ``allowed`` adds are nonzero about as often as those that were meant anyway."""
    live = rows[..., None] & np.asarray(allowed.any(-1, keepdims=True))
    added = np.broadcast_to(allowed & ~meant & live, evidence.nonzero.shape)
    usual = np.broadcast_to(allowed & meant & live, evidence.nonzero.shape)
    if not added.any() or not usual.any():
        return True
    return bool(evidence.nonzero[added].mean() >= 0.5 * evidence.nonzero[usual].mean())


def is_sparse_attention(evidence: Evidence, allowed: np.ndarray, rows: np.ndarray) -> bool:
    """Whether zeros lie in most long rows, and in each at other keys: no mask does that, sparsemax and top-k do.

    ``allowed`` is (B, L, H, Q, K), axes possibly 1, the ``rows`` to judge (B, L, H, Q). The patterns of neighbouring
    rows, heads and samples are compared over the keys that both allow. A key without any weight speaks for a mask,
    unless it is zero by chance: few rows may look at the last ones.
    """
    allowed = np.broadcast_to(allowed, evidence.nonzero.shape)
    zeros = allowed & ~evidence.nonzero
    long = rows & (allowed.sum(-1) >= _LONG_ROW) & evidence.informative_rows
    if long.sum() < _LONG_ROW or zeros.any(-1)[long].mean() < _SPARSE_PART:
        return False
    if not (evidence.nonzero & allowed).any(-1)[long].all():
        return False
    both = allowed[..., 1:, :] & allowed[..., :-1, :] & (long[..., 1:] & long[..., :-1])[..., None]
    differs = (zeros[..., 1:, :] != zeros[..., :-1, :]) & both
    seen = allowed & long[..., None]
    cells, empty = (one.sum((0, 1, 2, 3)) for one in (seen, seen & zeros))
    by_chance = (empty.sum() / cells.sum()) ** cells
    never = (empty == cells) & (by_chance < MAX_CHANCE / len(cells))
    return bool(both.any() and differs.sum() > _DIFFERENT_PART * both.sum() and not never.any())


# What no single mistake explains: parts of the mask missing together, then plain leaks and gaps.


_MOST_CELLS = 0.8
_SPARSE_TEXT = to_say("each row leaves out keys of its own, as sparsemax or the choice of the top k do")
_UNPROVEN_TEXT = to_say(
    "cells that should be allowed have no weight, in each row at other keys: sparsemax and the choice of the top k do "
    "that, and the scores would tell"
)
_NO_PATTERN_TEXT = to_say("in no known pattern")
_ZERO_SCORES_TEXT = to_say("they are the cells whose score is 0: scores of 0 were taken for blocked")
_NAN_FIX = "scores = (q / d**0.5) @ k.mT  # NaN or an overflow in the scores, or NaN in the input: the mask is not why"


def report_unexplained_cells(case: DiagnosisCase, intent: IntendedMask) -> None:
    """Add the cells on which weights and intent disagree.

    When nothing was stated only the padding is binding, since any other mask may have been meant.
    """
    evidence = case.evidence
    rows = case.rows(intent) & intent.allowed.any(-1) & ~find_fully_masked_samples(case)[:, None, None, None]
    nan = evidence.nan & rows
    stray = evidence.nonzero > intent.allowed
    stray &= rows[..., None]
    gaps = intent.allowed > evidence.nonzero
    gaps &= (rows & ~nan)[..., None]
    gaps &= ~evidence.maybe_underflow | evidence.all_zero[..., None]
    if not intent.binding:
        stray &= ~intent.columns
        gaps = np.zeros_like(gaps)
    elif (gaps.any() or evidence.maybe_underflow.any()) and _is_mask_inverted(evidence, intent, rows):
        case.add("inverted", stray | gaps, intent=intent)
        return
    stray = _report_leaking_mask_parts(case, intent, stray, rows)
    gaps = _report_missing_diagonal(case, intent, gaps, rows)
    if gaps.any() and is_sparse_attention(evidence, intent.allowed, rows) and not stray.any():
        cause = _find_zero_weight_cause(case, intent, gaps)
        if cause == "choice":
            case.add("over-blocked", gaps, "info", looks=say(_SPARSE_TEXT), fix=NOTHING_TO_FIX)
        if cause == "unknown":
            case.add("over-blocked", gaps, looks=say(_UNPROVEN_TEXT), level="likely", intent=intent)
        if cause != "mask":
            gaps = np.zeros_like(gaps)
    words = describe_mask_difference(case, intent, stray | gaps) or say(_NO_PATTERN_TEXT)
    largest = _largest_weight_text(case, stray)
    case.add("leak", stray, detail=say("{one}; {other}", one=words, other=largest), intent=intent)
    case.add("over-blocked", gaps, detail=_zero_scores_text(case, gaps, rows) or words, intent=intent)
    emptied = nan & (~case.arrays.mask.any(-1) if case.arrays.mask is not None else False)
    case.add_row_finding("empty-row", emptied, say("its row is NaN although keys are allowed"))
    looks = say("the row of a query that has keys is NaN")
    case.add("empty-row", (nan & ~emptied)[..., None], looks=looks, fix=_NAN_FIX)


def _find_zero_weight_cause(
    case: DiagnosisCase, intent: IntendedMask, gaps: np.ndarray
) -> Literal["choice", "mask", "unknown"]:
    """Return whether the scores chose what is left out, as sparsemax and the top k do, or a mask closed it.

    A mask alone has no softmax, and scores that a mask blocks were not chosen by it. Where all heads, or each layer or
    head, leave out keys in a structure that has a name it is a mask. Else the scores prove it, or as many keys in every
    row that has them, or samples or heads that leave out others.
    """
    arrays, evidence = case.arrays, case.evidence
    masked = arrays.masked_scores
    if "weights" not in arrays.given or (masked is not None and (gaps & is_blocked(masked)).any()):
        return "mask"
    if describe_mask_difference(case, intent, gaps):
        return "mask"
    nonzero = evidence.nonzero & intent.allowed
    if arrays.scores is not None:
        scores = arrays.scores.astype(np.float64)
        lowest = np.where(nonzero, scores, np.inf).min(-1, keepdims=True)
        return "choice" if (~gaps | (scores <= lowest + 1e-6 * np.abs(lowest))).all() else "mask"
    count = nonzero.sum(-1)[gaps.any(-1)]
    same = (count == count[0]).all() and count.size >= _LONG_ROW
    return "choice" if same or _differ_zeros_between_samples_or_heads(nonzero, gaps, intent.allowed) else "unknown"


def _differ_zeros_between_samples_or_heads(nonzero: np.ndarray, gaps: np.ndarray, allowed: np.ndarray) -> bool:
    """Whether in most rows with zeros some sample leaves out other keys than the first; all (B, L, H, Q, K).

    With a single sample the heads of each layer are compared, with a single head the layers. A mask is often another in
    each layer, but seldom in each head or sample.
    """
    samples, _, heads, *_ = nonzero.shape
    axis = 0 if samples > 1 else 2 if heads > 1 else 1
    differs = (nonzero != nonzero.take([0], axis)) & np.broadcast_to(allowed, nonzero.shape).all(axis, keepdims=True)
    rows = gaps.any((0, 1, 2, 4))
    return bool(rows.any() and differs.any((0, 1, 2, 4))[rows].mean() > 0.5)


def _zero_scores_text(case: DiagnosisCase, gaps: np.ndarray, rows: np.ndarray) -> str:
    """Return in words that the cells without weight are those with a score of 0; empty where they are not."""
    scores = case.arrays.scores
    if scores is None or not gaps.any():
        return ""
    zero = (scores == 0) & rows[..., None]
    open_zeros = zero & case.evidence.nonzero
    return say(_ZERO_SCORES_TEXT) if zero[gaps].all() and not open_zeros.any() else ""


def _largest_weight_text(case: DiagnosisCase, cells: np.ndarray) -> str:
    if not cells.any():
        return ""
    return say("up to {weight:.2g} in one cell", weight=float(np.nanmax(case.arrays.weights[cells])))


def _is_mask_inverted(evidence: Evidence, intent: IntendedMask, rows: np.ndarray) -> bool:
    """Whether most of what is blocked has weight, and most of what is allowed has none."""
    judged = rows[..., None] & ~evidence.nan[..., None]
    blocked, allowed = judged & ~intent.allowed, judged & intent.allowed
    if not blocked.any() or not allowed.any():
        return False
    return bool(evidence.nonzero[blocked].mean() > _MOST_CELLS and evidence.nonzero[allowed].mean() < 1 - _MOST_CELLS)


def _report_leaking_mask_parts(
    case: DiagnosisCase, intent: IntendedMask, stray: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Add the parts of the mask all of whose cells leak, head by head; return the stray cells that are left."""
    if not stray.any():
        return stray
    future = np.zeros(intent.base.shape, bool)
    if intent.structures:
        queries, keys = intent.base.shape[-2:]
        open_ended = [one.list_noncausal_variants()[0] if one.causal else one for one in intent.structures]
        future = stack_structure_masks(open_ended, queries, keys) & ~intent.base
    elif not (intent.base & (ahead := ~CAUSAL.build_mask(*intent.base.shape[-2:]))).any():
        future = np.broadcast_to(ahead, intent.base.shape)
    padding = np.broadcast_to(~intent.columns, intent.allowed.shape)
    for code in ("padding-visible", "future-visible") if intent.has_padding else ("future-visible",):
        cells = intent.base & padding if code == "padding-visible" else future > padding
        cells = cells & rows[..., None]
        leaks_all = cells.any(-1) & ~(cells > stray).any(-1)
        if not leaks_all.any():
            continue
        whole = (leaks_all | ~cells.any(-1)).all(-1) & cells.any((-1, -2))
        leaking = stray & cells & whole[..., None, None]
        case.add(code, leaking, intent=intent)
        stray = stray > leaking
        some = stray & cells & leaks_all[..., None]
        if some.any() and not (stray & cells & ~some).any() and _has_same_faulty_rows(some, cells):
            alone = describe_affected_rows(some.any((0, 1, 2, 4)), cells.any((0, 1, 2, 4)))
            case.add(code, some, detail=alone, intent=intent)
            stray, leaking = stray & ~some, leaking | some
        if code == "padding-visible" and leaking.any() and (both := stray & padding & future).any():
            stray = stray & ~both
    return stray


def _has_same_faulty_rows(some: np.ndarray, cells: np.ndarray) -> bool:
    """Whether all units that could have the same rows wrong: the rows, not the units, make the difference."""
    rows = some.any((0, 1, 2, 4))
    return bool((some.any(-1) == (cells.any(-1) & rows))[some.any((-1, -2))].all())


def _report_missing_diagonal(
    case: DiagnosisCase, intent: IntendedMask, gaps: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Add a diagonal that is missing as a whole; return the gaps that are left."""
    if not gaps.any():
        return gaps
    queries, keys = gaps.shape[-2:]
    diagonal = np.eye(queries, keys, keys - queries, dtype=bool) & intent.allowed & rows[..., None]
    whole = (gaps | ~diagonal).all((-1, -2)) & (diagonal.sum((-1, -2)) > 1)
    missing = gaps & diagonal & whole[..., None, None]
    emptied = missing.any(-1, keepdims=True) & (gaps | ~intent.allowed).all(-1, keepdims=True)
    if (gaps & ~missing & ~emptied).any():
        return gaps
    case.add("diagonal-blocked", missing, intent=intent)
    return gaps & ~missing & ~emptied


# Hypotheses: the masks, biases and positions that each known mistake makes.

# A diagnosis compares what took effect with these masks. Every generator yields (code, allowed), ``allowed`` being
# (B, L, H, Q, K) bool with axes possibly 1.


Hypothesis = tuple[str, np.ndarray]
"""A code, and the mask that this mistake would have put in force."""


def generate_hypotheses(arrays: Arrays, evidence: Evidence, intent: IntendedMask) -> Iterator[Hypothesis]:
    """Yield every mistake worth trying, the most common first among those that would look the same."""
    yield from _omit_mask_parts(arrays, evidence, intent)
    yield from _misplace_causal(arrays, intent)
    yield from generate_exchanged_layer_masks(arrays, evidence, intent)
    yield from _misplace_padding(arrays, intent)
    yield from _reorder_heads(arrays, intent)
    yield from _invert_mask_parts(arrays, intent)
    yield from _shift_padding_or_document_boundaries(arrays, intent)
    yield from _reorder_sample_padding(arrays, evidence, intent)
    yield from _misplace_causal_without_padding(arrays, intent)
    yield from _block_unseen_columns(arrays, evidence, intent)


def _build_changed_structure_mask(
    arrays: Arrays, intent: IntendedMask, change: Callable[[Structure], Structure], shift: int | None = None
) -> np.ndarray:
    """Return the mask of the intent with the structure of every sample changed."""
    _, _, _, queries, keys = arrays.sizes
    changed = stack_structure_masks([change(one) for one in intent.structures], queries, keys, shift)
    return changed & intent.columns if intent.has_padding else changed


def _omit_mask_parts(arrays: Arrays, evidence: Evidence, intent: IntendedMask) -> Iterator[Hypothesis]:
    """A whole part of the mask left out."""
    if intent.has_padding:
        yield from _open_unfilled_cache_slots(arrays, intent)
        yield "padding-visible", intent.base
        yield from _open_padding_from_query(evidence, intent)
    for change in _iterate_structure_removals(intent.structures):
        code = "document-leak" if change is _remove_document_boundaries else "future-visible"
        yield code, _build_changed_structure_mask(arrays, intent, change)
    if not intent.structures:
        yield from _open_future_by_layer(intent)
    if not intent.allowed.all():
        yield "mask-ignored", np.ones_like(intent.allowed)


def _open_padding_from_query(evidence: Evidence, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The padding open from one query on: the mask is given to the prompt and not to the cached steps."""
    seen = (evidence.nonzero & intent.base & ~intent.columns).any((0, 1, 2, 4))
    if seen.any() and not seen.all():
        later = np.arange(len(seen)) >= np.argmax(seen)
        yield "padding-visible", intent.base & (intent.columns | later[:, None])


def _open_future_by_layer(intent: IntendedMask) -> Iterator[Hypothesis]:
    """The future open in layers or heads that differ, with their windows or without."""
    queries, keys = intent.base.shape[-2:]
    future = ~CAUSAL.build_mask(queries, keys)
    if not (intent.allowed & future).any():
        yield "future-visible", (intent.base | future) & intent.columns
        yield "future-visible", np.ones_like(intent.base) & intent.columns


def _open_unfilled_cache_slots(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The slots of a cache after the newest token, open to every query."""
    _, _, _, queries, keys = arrays.sizes
    if queries < keys and intent.causal and arrays.self_or_cross != "cross":
        ends = keys - np.argmax(intent.keep[:, ::-1], -1)
        slots = broadcast_key_mask(np.arange(keys) >= ends[:, None])
        yield "stale-cache", intent.allowed | slots
        if any((one.hi or 0) < 0 for one in intent.structures):  # the slots are counted among the keys before them
            yield "stale-cache", intent.allowed | CAUSAL.build_mask(queries, keys)


def _remove_window(structure: Structure) -> Structure:
    return dataclasses.replace(structure, lo=None, hi=structure.hi if structure.hi == 0 else None)


def _remove_causal(structure: Structure, n: int) -> Structure:
    ways = structure.list_noncausal_variants()
    return ways[min(n, len(ways) - 1)] if structure.causal else structure


def _shift_window_end(structure: Structure, n: int) -> Structure:
    return structure.list_shifted_windows()[n]


def _remove_document_boundaries(structure: Structure) -> Structure:
    return dataclasses.replace(structure, starts=(), chunk=0)


def _iterate_structure_removals(structures: tuple[Structure, ...]) -> Iterator[Callable[[Structure], Structure]]:
    if any(one.starts or one.chunk for one in structures):
        yield _remove_document_boundaries
    for n in range(max((len(one.list_noncausal_variants()) for one in structures if one.causal), default=0)):
        yield partial(_remove_causal, n=n)


def _misplace_causal(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The triangle in the wrong place, or where none belongs; windows of the wrong width."""
    _, _, _, queries, keys = arrays.sizes
    if queries < keys and intent.causal:
        yield "top-left-causal", _build_changed_structure_mask(arrays, intent, lambda one: one, shift=0)
    if (queries == keys and arrays.self_or_cross != "cross") or (queries < keys and intent.causal):
        yield "diagonal-blocked", _block_diagonal(intent.allowed, queries, keys)
    yield from _add_causal(arrays, intent)
    for n in range(max((len(one.list_shifted_windows()) for one in intent.structures), default=0)):
        ends = [one.list_shifted_windows() for one in intent.structures]
        if all(len(one) > n for one in ends):
            yield "window-off-by-one", _build_changed_structure_mask(arrays, intent, partial(_shift_window_end, n=n))
    if any(one.lo is not None for one in intent.structures):
        yield "window-missing", _build_changed_structure_mask(arrays, intent, _remove_window)


def _block_diagonal(allowed: np.ndarray, queries: int, keys: int) -> np.ndarray:
    blocked = np.broadcast_to(allowed, (*allowed.shape[:-2], queries, keys)).copy()
    query = np.arange(max(0, queries - keys), queries)
    blocked[..., query, query + keys - queries] = False
    return blocked


def _add_causal(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """A triangle where the intent is not causal."""
    _, _, _, queries, keys = arrays.sizes
    if intent.causal:
        return
    code = {"self": "over-blocked", "cross": "causal-on-cross"}.get(arrays.self_or_cross, "")
    for shift in dict.fromkeys((0, keys - queries)):
        triangle = intent.allowed & CAUSAL.build_mask(queries, keys, shift)
        if queries < keys and shift == 0 and code != "causal-on-cross" and (queries == 1 or not intent.binding):
            yield "top-left-causal", triangle
        yield code or ("over-blocked" if queries == keys else "causal-on-cross"), triangle


def _misplace_causal_without_padding(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """A triangle where none belongs, or in the wrong place, together with visible padding: two codes, joined by +."""
    if intent.has_padding:
        for code, allowed in _misplace_causal(arrays, dataclasses.replace(intent, keep=np.ones_like(intent.keep))):
            yield f"{code}+padding-visible", allowed


def _misplace_padding(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The padding of the other sentence, of another sample, or along the wrong axis."""
    b, _, _, queries, keys = arrays.sizes
    keep = intent.keep
    if arrays.query_keep is not None:
        for rest in (True, False):
            swapped = np.full((b, keys), rest)
            swapped[:, : min(queries, keys)] = arrays.query_keep[:, :keys]
            yield "padding-swapped", intent.base & broadcast_key_mask(swapped)
    if not intent.has_padding:
        return
    if b == queries and b > 1:
        yield "wrong-axis", intent.base & keep[None, None, None]
    if queries == keys:
        yield "wrong-axis", intent.base & keep[:, None, None, :, None]
    for row in dict.fromkeys(map(bytes, keep)) if b > 1 else ():  # many samples of a batch are alike
        yield "wrong-axis", intent.base & broadcast_key_mask(np.frombuffer(row, bool)[None])


def _shift_padding_or_document_boundaries(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The boundary of the padding, or of the documents, one or two tokens away."""
    _, _, _, _, keys = arrays.sizes
    for step in (1, -1, 2, -2):
        if intent.has_padding or step < 0:
            moved = np.roll(intent.keep, step, -1)
            for edge in (True, False):
                ends = slice(0, step) if step > 0 else slice(step, None)
                moved[:, ends] = intent.keep[:, ends] if edge else moved[:, ends] & intent.keep[:, ends] & (step > 0)
                if moved.any(-1).all():
                    yield "mask-shifted", intent.base & broadcast_key_mask(moved)
        if any(one.starts for one in intent.structures):
            yield (
                "mask-shifted",
                _build_changed_structure_mask(arrays, intent, partial(_move_document_starts, step=step, keys=keys)),
            )


def _move_document_starts(structure: Structure, step: int, keys: int) -> Structure:
    starts = tuple(start + step for start in structure.starts if 0 < start + step < keys)
    return dataclasses.replace(structure, starts=starts)


def _reorder_sample_padding(arrays: Arrays, evidence: Evidence, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The padding of another sample for each, as the weights show it: the batch in another order."""
    rows = evidence.informative_rows[..., None]
    attended = (evidence.nonzero & rows).any((1, 2, 3))
    kinds, known = set(map(bytes, attended)), set(map(bytes, intent.keep))
    if kinds <= known and len(kinds) > 1 and not np.array_equal(attended, intent.keep):
        yield "sample-order", intent.base & broadcast_key_mask(attended)


def _reorder_heads(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """(N*H, ...) filled or read in the wrong order."""
    b, _, heads, _, _ = arrays.sizes
    if b < 2 or heads < 2:
        return
    index = np.arange(b)[:, None] * heads + np.arange(heads)[None, :]
    for sample in (index % b, (np.arange(heads)[None, :] * b + np.arange(b)[:, None]) // heads):
        keep = intent.keep[sample]
        if (keep != keep[:, :1]).any():  # Else it is the order of the samples that is wrong.
            yield "head-order", intent.base & keep[:, None, :, None, :]


def _invert_mask_parts(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The whole mask, its padding, or its structure inverted; tril and triu exchanged."""
    _, _, _, queries, keys = arrays.sizes
    yield "inverted", ~intent.allowed
    if intent.causal and queries == keys:
        yield "inverted", np.swapaxes(intent.base, -1, -2) & intent.columns
    if intent.has_padding:
        yield "inverted", intent.base & ~intent.columns
        yield "inverted", ~intent.base & intent.columns


def _block_unseen_columns(arrays: Arrays, evidence: Evidence, intent: IntendedMask) -> Iterator[Hypothesis]:
    """Columns that no query attends to although they lie inside the sentence, unless their scores are reason enough."""
    rows = evidence.informative_rows[..., None]
    certain_cells = rows & ~evidence.maybe_underflow if evidence.from_scores else rows
    attended = (evidence.nonzero & rows).any(-2)
    each = ~attended & intent.allowed.any(-2) & certain_cells.any(-2)
    certain = intent.binding or arrays.key_keep is not None
    for unseen in (each.all((1, 2), keepdims=True), each.all(2, keepdims=True)):
        samples = unseen.reshape(-1, unseen.shape[-1])
        keeps = np.broadcast_to(intent.keep[:, None, None], unseen.shape).reshape(samples.shape)
        segment = find_padding_between_segments(~unseen.any((1, 2))).any()
        if segment or not samples.any():
            continue
        if all(_has_isolated_unseen_tokens(one, keep, certain) for one, keep in zip(samples, keeps, strict=True)):
            yield "hole-inside", intent.allowed & ~unseen[..., None, :]


def _has_isolated_unseen_tokens(unseen: np.ndarray, keep: np.ndarray, certain: bool) -> bool:
    """Whether the unseen columns of one sample are single tokens rather than an end cut off."""
    where = np.flatnonzero(unseen)
    if not where.size:
        return True
    real = np.flatnonzero(keep & ~unseen)
    if not real.size:
        return False
    inside = (where > real[0]) & (where < real[-1])
    return bool(inside.all() or (certain and (~inside).sum() == 1))


# Masks of the right kinds in the wrong layers or heads, and patterns that have lost their global tokens.


_LAYER_PATTERN_CODE = "wrong-layer-pattern"


def generate_exchanged_layer_masks(
    arrays: Arrays, evidence: Evidence, intent: IntendedMask
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (code, allowed): layers, then heads, that follow the mask meant for another; lost global tokens.

    ``allowed`` is (B, L, H, Q, K) bool, axes possibly 1.
    """
    for axis in (1, 2):
        if arrays.sizes[axis] > 1 and intent.allowed.shape[axis] > 1:
            yield from _exchange_layer_or_head_masks(evidence, intent.allowed, axis)
    if not intent.structures:
        same = (intent.base == intent.base[:1]).all()
        for base in _remove_global_tokens(intent.base[:1] if same else intent.base):
            yield _LAYER_PATTERN_CODE, base & intent.columns
    elif any(one.sinks for one in intent.structures):
        without = [dataclasses.replace(one, sinks=0) for one in intent.structures]
        yield _LAYER_PATTERN_CODE, stack_structure_masks(without, *arrays.sizes[3:]) & intent.columns


def _exchange_layer_or_head_masks(
    evidence: Evidence, allowed: np.ndarray, axis: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Put in the place of each layer's (``axis`` 1) or head's (2) mask the first meant for another that it follows."""
    units = [np.take(allowed, [at], axis) for at in range(allowed.shape[axis])]
    distinct = [one for at, one in enumerate(units) if not any((one == other).all() for other in units[:at])]
    if len(distinct) == 1:
        return
    taken = []
    for at, own in enumerate(units):
        follows = (one for one in (own, *distinct) if _is_mask_followed(evidence, one, at, axis))
        taken.append(next(follows, own))
    found = np.concatenate(taken, axis)
    if (found != allowed).any():
        yield _LAYER_PATTERN_CODE, found


def _is_mask_followed(evidence: Evidence, allowed: np.ndarray, at: int, axis: int) -> bool:
    """Whether the weights of one layer or head, in rows that show a mask, lie on all ``allowed`` cells and no other."""
    nonzero, rows = (np.take(one, [at], axis) for one in (evidence.nonzero, evidence.informative_rows))
    underflow = np.take(np.broadcast_to(evidence.maybe_underflow, evidence.nonzero.shape), [at], axis)
    live = (rows & allowed.any(-1))[..., None]
    stray, gaps = nonzero & ~allowed, allowed & ~nonzero & ~underflow
    return not ((stray | gaps) & live).any()


def _remove_global_tokens(base: np.ndarray) -> Iterator[np.ndarray]:
    """Yield a mask (B, L, H, Q, K) without its global queries and keys: both, the queries alone, the keys alone.

    Global tokens see every key that any token may see, and are seen by every query; the rest is a band.
    """
    grids = base.reshape(-1, *base.shape[-2:])
    parts = [_split_global_tokens(grid) for grid in grids]
    known = [part for part in parts if part is not None]
    if not known:
        return
    for with_queries, with_keys in ((False, False), (False, True), (True, False)):
        lost = [
            grid if part is None else part[0] | (grid & part[1] & with_queries) | (grid & part[2] & with_keys)
            for grid, part in zip(grids, parts, strict=True)
        ]
        yield np.stack(lost).reshape(base.shape)


def _split_global_tokens(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the band of (Q, K), the rows of global queries and the columns of global keys; None without any."""
    widest = CAUSAL.build_mask(*grid.shape)
    widest = widest if not (grid & ~widest).any() else np.ones_like(grid)
    queries = (grid | ~widest).all(1)
    keys = (grid | ~widest).all(0)
    local = ~queries[:, None] & ~keys[None, :]
    structure = recognise_structure(grid, local) if local.any() else None
    if structure is None:
        return None
    band = structure.build_mask(*grid.shape) & widest
    if (band & ~grid).any() or not (grid & ~band).any():
        return None
    return band, np.broadcast_to(queries[:, None], grid.shape), np.broadcast_to(keys[None, :], grid.shape)


# Positions that count the padding in front of a sentence, read off the position ids.


def find_positions_counting_padding(arrays: Arrays) -> np.ndarray | None:
    """Return (B, K) bool: real tokens whose positions count the padding at their left; None where there are none.

    A sample is compared with those that have less padding: the first real token of each should have the same position,
    whatever the model counts from. Without another sample two pads or more must be counted one by one, since a single
    pad may be the position kept for padding.
    """
    positions, keep = arrays.position_ids, arrays.key_keep
    if positions is None or keep is None:
        return None
    pads = np.argmax(keep, -1)
    first = np.take_along_axis(positions, pads[:, None], 1)[:, 0]
    counted = np.array(
        [_has_consecutive_padding_positions(row, count) for row, count in zip(positions, pads, strict=True)]
    )
    late, same = (_has_fewer_pads_in_group(pads, group) for group in (first - pads, first))
    wrong = counted & np.where(pads > pads.min(), late & ~same, pads > 1)
    return keep & wrong[:, None] if wrong.any() else None


def _has_fewer_pads_in_group(pads: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return (B,) bool: whether another sample of the same ``group`` (B,) has less padding; both are whole numbers."""
    _, number = np.unique(group, return_inverse=True)
    fewest = np.full(len(pads), pads.max())
    np.minimum.at(fewest, number, pads)
    return pads > fewest[number]


def _has_consecutive_padding_positions(positions: np.ndarray, pads: int) -> bool:
    """Whether ``pads`` positions in front of the first real one lead up to it in steps of one."""
    return pads > 0 and bool((np.diff(positions[: pads + 1]) == 1).all())
