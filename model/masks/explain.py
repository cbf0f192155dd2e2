"""Which mistake explains the weights best, whether a mask matches them, and what no mistake explains."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..language import say, to_say
from .catalogue import NOTHING_TO_FIX, Severity
from .evidence import Evidence
from .findings import DiagnosisCase
from .hypotheses import Hypothesis, generate_hypotheses
from .intent import IntendedMask, stack_structures
from .rows import find_empty_rows, find_fill_rows, find_keyless_samples
from .scores import find_unmasked_heads
from .softmax import is_blocked
from .structure import CAUSAL

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
    )
}
"""Pairs of mistakes that can leave exactly the same weights."""
TRIANGLE_FIX = "mask = mask.mT  # tril() keeps the past"
"""The line that fixes exchanged triangles."""
_HEAD_MAJOR_FIX = "mask = mask.repeat(heads, 1, 1)  # these scores are (H*N, L, S), head-major: not repeat_interleave"
_CODES_NEEDING_INTENT = ("future-visible", "window-off-by-one", "window-missing", "document-leak", "over-blocked")
"""Mistakes that cannot be seen without knowing what was meant."""


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
    return bool(_compare_intent(case, intent, with_padding).units.all())


def _compare_intent(case: DiagnosisCase, intent: IntendedMask, with_padding: bool = False) -> MaskMatch:
    padding = case.padding_queries(intent)
    double = find_empty_rows(case.arrays, case.evidence, intent, padding).double_fill
    rows = case.rows(intent, with_padding)
    return match_mask(case.evidence, intent.allowed, rows, padding, case.evidence.uniform | double)


def find_explanations(case: DiagnosisCase, intent: IntendedMask) -> list[Explanation]:
    """Return mistakes that explain every unit that the intent does not, best first.

    Where the intent explains them all, only mistakes that block more are looked for: in heads so peaked that
    many weights are zero anyway, a stricter mask is seen by the pattern of its zeros.
    """
    unexplained = ~_compare_intent(case, intent).units
    if not unexplained.any() and (case.evidence.from_scores or not case.evidence.maybe_underflow.any()):
        return []
    found = (
        _explain_by_hypothesis(case, intent, hypothesis, unexplained, rarity)
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
        if ((allowed ^ intent.allowed) & rows[..., None]).any():
            yield rarity, (code, allowed)


def _explain_by_hypothesis(
    case: DiagnosisCase, intent: IntendedMask, hypothesis: Hypothesis, unexplained: np.ndarray, rarity: int
) -> Explanation | None:
    """Return the hypothesis with its rank, or None when it does not explain what it must."""
    code, allowed = hypothesis
    hidden = not unexplained.any()
    if hidden and not _is_only_stricter(intent.allowed, allowed, case.rows(intent)):
        return None
    padding, fill_rows = case.padding_queries(intent), case.evidence.uniform | find_fill_rows(case.arrays)
    if code in ("inverted", "diagonal-blocked") and not hidden and allowed.shape[-1] > 1:
        # A finite number added to a whole row changes nothing in it.
        fill_rows = fill_rows | case.evidence.nonzero.all(-1)
    layers = np.asarray(unexplained.any((0, 2)))[None, :, None, None] | hidden
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
    if code == "mask-ignored" and not _can_be_ignored(case, intent, unexplained):
        return None
    first = code == "mask-ignored" and mask_had_no_effect(case, intent, unexplained)
    counts = real.unexplained_count, padded.unexplained_count, padded.uninformative_rows, padded.allowed_zeros
    return Explanation(code, allowed, intent, unexplained, ExplanationRank(*counts, -1 if first else rarity))


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
    return intent.binding and intent.parts(units) > 1 and not _lacks_only_a_window(intent)


def _lacks_only_a_window(intent: IntendedMask) -> bool:
    """Whether everything would be allowed if there were no window."""
    queries, keys = intent.base.shape[-2:]
    free = [dataclasses.replace(one, lo=None, hi=one.hi if one.hi == 0 else None) for one in intent.structures]
    windows = any(one.lo is not None for one in intent.structures)
    return windows and bool((stack_structures(free, queries, keys) & intent.columns).all())


def _can_be_ignored(case: DiagnosisCase, intent: IntendedMask, unexplained: np.ndarray) -> bool:
    """Whether ``mask-ignored`` is possible: the scores agree, and a mask that was given blocks nonzero cells."""
    plain = find_unmasked_heads(case.arrays, case.evidence)
    if plain is not None and not (plain | ~unexplained).all():
        return False
    if case.arrays.mask is not None:
        return mask_had_no_effect(case, intent, unexplained)
    return plain is not None or (intent.binding and intent.parts(unexplained) > 1 and not _lacks_only_a_window(intent))


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
    elif code == "inverted" and (allowed & intent.allowed).any():
        case.add(code, wrong, detail=say("tril and triu are exchanged"), fix=TRIANGLE_FIX)
    elif code == "head-order" and not _is_padding_repeated(case, explanation):
        case.add(code, wrong, fix=_HEAD_MAJOR_FIX)
    else:
        case.add(code, wrong, intent=intent)


def _is_padding_repeated(case: DiagnosisCase, explanation: Explanation) -> bool:
    """Whether each head has the padding that ``repeat`` puts there, rather than that of head-major scores."""
    b, _, heads, _, _ = case.arrays.sizes
    sample = (np.arange(b)[:, None] * heads + np.arange(heads)[None, :]) % b
    intent = explanation.intent
    return bool((explanation.allowed == (intent.base & intent.keep[sample][:, None, :, None, :])).all())


# Matching a mask with the weights cell by cell, allowing for rounding and chance.


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
    outside = (evidence.nonzero & ~allowed).any(-1) & judged_rows & live
    void = judged_rows & ~live & ~(blank | evidence.uniform_nonzero)  # which two fills leave uneven
    broken = rows & (evidence.all_zero | evidence.nan)
    zeros = ~evidence.nonzero & allowed & rows[..., None]
    missing = (zeros & ~evidence.maybe_underflow).any(-1)
    return MaskMatch(
        ~(outside | void | broken | missing).any(-1),
        int((~evidence.informative_rows & live & judged_rows).sum()),
        int(zeros.sum()),
    )


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
_NAN_FIX = "scores = (q / d**0.5) @ k.mT  # NaN or an overflow in the scores, or NaN in the input: the mask is not why"


def report_residual(case: DiagnosisCase, intent: IntendedMask) -> None:
    """Add the cells on which weights and intent disagree.

    When nothing was stated only the padding is binding, since any other mask may have been meant.
    """
    evidence = case.evidence
    rows = case.rows(intent) & intent.allowed.any(-1) & ~find_keyless_samples(case)[:, None, None, None]
    nan = evidence.nan & rows
    stray = evidence.nonzero & ~intent.allowed & rows[..., None]
    gaps = intent.allowed & ~evidence.nonzero & (rows & ~nan)[..., None]
    gaps &= ~evidence.maybe_underflow | evidence.all_zero[..., None]
    if not intent.binding:
        stray &= ~intent.columns
        gaps = np.zeros_like(gaps)
    elif _is_mask_inverted(evidence, intent, rows):
        case.add("inverted", stray | gaps)
        return
    stray = _report_missing_parts(case, intent, stray, rows)
    gaps = _report_diagonal(case, intent, gaps, rows)
    if is_sparse_attention(evidence, intent.allowed, rows):
        case.add("over-blocked", gaps, "info", looks=say(_SPARSE_TEXT), fix=NOTHING_TO_FIX)
        gaps = np.zeros_like(gaps)
    case.add("leak", stray, detail=_largest_weight_text(case, stray), intent=intent)
    case.add("over-blocked", gaps, intent=intent)
    emptied = nan & (~case.arrays.mask.any(-1) if case.arrays.mask is not None else False)
    case.add_rows("empty-row", emptied, say("its row is NaN although keys are allowed"))
    looks = say("the row of a query that has keys is NaN")
    case.add("empty-row", (nan & ~emptied)[..., None], looks=looks, fix=_NAN_FIX)


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


def _report_missing_parts(case: DiagnosisCase, intent: IntendedMask, stray: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Add the parts of the mask all of whose cells leak, head by head; return the stray cells that are left."""
    future = np.zeros(intent.base.shape, bool)
    if intent.structures:
        queries, keys = intent.base.shape[-2:]
        open_ended = [one.drop_causal()[0] if one.causal else one for one in intent.structures]
        future = stack_structures(open_ended, queries, keys) & ~intent.base
    elif not (intent.base & (ahead := ~CAUSAL.build_mask(*intent.base.shape[-2:]))).any():
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


def _report_diagonal(case: DiagnosisCase, intent: IntendedMask, gaps: np.ndarray, rows: np.ndarray) -> np.ndarray:
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
