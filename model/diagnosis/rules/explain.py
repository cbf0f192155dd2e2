"""Which mistake explains the weights best: of the hypotheses that match them, the closest and most common."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...language.say import say
from ...masking.blocked import is_blocked
from ..inputs.intent import Intent, stack_structures
from ..mistakes.mask_mistakes import Hypothesis, hypotheses
from .case import Case
from .empty_rows import find_empty_rows, rows_of_fills
from .fault_catalogue import Severity
from .matching import Match, compare, is_significant
from .score_checks import unmasked_heads

_TWINS = {
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
_NEED_INTENT = ("future-visible", "window-off-by-one", "window-missing", "document-leak", "over-blocked")
"""Mistakes that cannot be seen without knowing what was meant."""


class Rank(NamedTuple):
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
    intent: Intent
    unexplained: np.ndarray
    """(B, L, H): units that the intent itself does not explain; none when the difference hides in peaked heads."""
    rank: Rank


def fits(case: Case, intent: Intent, with_padding: bool = False) -> bool:
    """Whether the weights are what this intent makes, on request also in the rows of padding queries."""
    return bool(_compare_intent(case, intent, with_padding).units.all())


def _compare_intent(case: Case, intent: Intent, with_padding: bool = False) -> Match:
    padding = case.padding_queries(intent)
    double = find_empty_rows(case.arrays, case.evidence, intent, padding).double_fill
    rows = case.rows(intent, with_padding)
    return compare(case.evidence, intent.allowed, rows, padding, case.evidence.uniform | double)


def explanations(case: Case, intent: Intent) -> list[Explanation]:
    """Return mistakes that explain every unit that the intent does not, best first.

    Where the intent explains them all, only mistakes that block more are looked for: in heads so peaked that
    many weights are zero anyway, a stricter mask is seen by the pattern of its zeros.
    """
    unexplained = ~_compare_intent(case, intent).units
    if not unexplained.any() and (case.evidence.from_scores or not case.evidence.maybe_underflow.any()):
        return []
    found = (
        _explanation(case, intent, hypothesis, unexplained, rarity)
        for rarity, hypothesis in _distinct_hypotheses(case, intent)
    )
    return sorted((one for one in found if one is not None), key=lambda one: one.rank)


def _distinct_hypotheses(case: Case, intent: Intent) -> Iterator[tuple[int, Hypothesis]]:
    """Hypotheses that differ from the intent somewhere that counts, numbered by how common they are."""
    for rarity, (code, allowed) in enumerate(hypotheses(case.arrays, case.evidence, intent)):
        if not intent.binding and (code in _NEED_INTENT or ("+" in code and code.partition("+")[0] in _NEED_INTENT)):
            continue
        rows = case.rows(intent, code == "wrong-axis" or not intent.binding)
        if ((allowed ^ intent.allowed) & rows[..., None]).any():
            yield rarity, (code, allowed)


def _explanation(
    case: Case, intent: Intent, hypothesis: Hypothesis, unexplained: np.ndarray, rarity: int
) -> Explanation | None:
    """Return the hypothesis with its rank, or None when it does not explain what it must."""
    code, allowed = hypothesis
    hidden = not unexplained.any()
    if hidden and not _only_stricter(intent.allowed, allowed, case.rows(intent)):
        return None
    padding, fill_rows = case.padding_queries(intent), case.evidence.uniform | rows_of_fills(case.arrays)
    if code in ("inverted", "diagonal-blocked") and not hidden and allowed.shape[-1] > 1:
        # A finite number added to a whole row changes nothing in it.
        fill_rows = fill_rows | case.evidence.nonzero.all(-1)
    layers = np.asarray(unexplained.any((0, 2)))[None, :, None, None] | hidden
    real, padded = (
        compare(case.evidence, allowed, case.rows(intent, with_padding) & layers, padding, fill_rows)
        for with_padding in (code == "wrong-axis", True)
    )
    if not (real.units | ~unexplained).all() or (hidden and not real.units.all()):
        return None
    rows = case.rows(intent, bool(padded.units.all())) & (unexplained[..., None] | hidden)
    if not is_significant(case.evidence, intent.allowed, allowed, rows, selected_columns=code == "hole-inside"):
        return None
    if code == "inverted" and not (allowed.any(-1) & rows).any():
        return None  # a mask that allows nothing explains every empty row, and says nothing
    if code == "mask-ignored" and not _may_be_ignored(case, intent, unexplained):
        return None
    first = code == "mask-ignored" and had_no_effect(case, intent, unexplained)
    counts = real.unexplained, padded.unexplained, padded.uninformative_rows, padded.allowed_zeros
    return Explanation(code, allowed, intent, unexplained, Rank(*counts, -1 if first else rarity))


def _only_stricter(meant: np.ndarray, allowed: np.ndarray, rows: np.ndarray) -> bool:
    """Whether in the rows that count something is closed and nothing opened."""
    opened, closed = (cells & rows[..., None] for cells in (allowed & ~meant, meant & ~allowed))
    return bool(closed.any()) and not opened.any()


def contradicts_mask(case: Case, intent: Intent) -> bool:
    """Whether weights lie on cells that the mask given blocks: then no other reading makes them right."""
    mask = case.arrays.mask
    if mask is None or "weights" not in case.arrays.given:
        return False
    rows = case.rows(intent) & mask.any(-1)
    return bool((case.evidence.nonzero & ~mask & rows[..., None]).any())


def had_no_effect(case: Case, intent: Intent, units: np.ndarray) -> bool:
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


def _lacks_only_a_window(intent: Intent) -> bool:
    """Whether everything would be allowed if there were no window."""
    queries, keys = intent.base.shape[-2:]
    free = [dataclasses.replace(one, lo=None, hi=one.hi if one.hi == 0 else None) for one in intent.structures]
    windows = any(one.lo is not None for one in intent.structures)
    return windows and bool((stack_structures(free, queries, keys) & intent.columns).all())


def _may_be_ignored(case: Case, intent: Intent, unexplained: np.ndarray) -> bool:
    """Whether ``mask-ignored`` is possible: the scores agree, and a mask that was given blocks nonzero cells."""
    plain = unmasked_heads(case.arrays, case.evidence)
    if plain is not None and not (plain | ~unexplained).all():
        return False
    if case.arrays.mask is not None:
        return had_no_effect(case, intent, unexplained)
    return plain is not None or (intent.binding and intent.parts(unexplained) > 1 and not _lacks_only_a_window(intent))


def report(case: Case, found: list[Explanation]) -> Intent:
    """Add the best explanation, and its twins where the weights cannot tell them apart; return its intent."""
    first = min(found, key=lambda one: (*one.rank[:4], not one.intent.binding, one.rank.rarity))
    _add_finding(case, first)
    certain = first.code == "mask-ignored" and had_no_effect(case, first.intent, first.unexplained)
    for other in () if certain else found:
        twins = frozenset((first.code, other.code)) in _TWINS
        if twins and not case.has(other.code) and _same_weights(case, first, other):
            _add_finding(case, other, "warning")
    return first.intent


def _same_weights(case: Case, first: Explanation, other: Explanation) -> bool:
    """Whether both would leave the same weights; padding swaps only where the other side has padding at all."""
    swap = "padding-swapped" in (first.code, other.code)
    if swap and (case.arrays.query_keep is None or case.arrays.query_keep.all()):
        return False
    return not (first.allowed ^ other.allowed).any()


def _add_finding(case: Case, explanation: Explanation, severity: Severity | None = None) -> None:
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
    elif code == "head-order" and not _is_repeated(case, explanation):
        case.add(code, wrong, fix=_HEAD_MAJOR_FIX)
    else:
        case.add(code, wrong, intent=intent)


def _is_repeated(case: Case, explanation: Explanation) -> bool:
    """Whether each head has the padding that ``repeat`` puts there, rather than that of head-major scores."""
    b, _, heads, _, _ = case.arrays.sizes
    sample = (np.arange(b)[:, None] * heads + np.arange(heads)[None, :]) % b
    intent = explanation.intent
    return bool((explanation.allowed == (intent.base & intent.keep[sample][:, None, :, None, :])).all())
