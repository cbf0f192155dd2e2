"""Which mistake explains the weights best? Every guess is compared with them; the closest and commonest is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .case import Case
from .findings import Severity
from .hypotheses import guesses
from .intent import Intent
from .matching import Match, compare, solid
from .rows import empty_rows, only_fills
from .score_checks import unmasked

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


TRIL = "mask = mask.mT  # tril() keeps the past"
"""What mends exchanged triangles."""

_ONLY_STATED = ("future-visible", "window-off-by-one", "document-leak", "over-blocked")
"""Mistakes that nobody can see without knowing what was meant."""


@dataclass(frozen=True, eq=False)
class Guess:
    """One mistake that fits."""

    code: str
    allowed: np.ndarray
    """(B, L, H, Q, K) bool, axes possibly 1: the mask it would have put in force."""
    intent: Intent
    bad: np.ndarray
    """(B, L, H): units that the intent itself does not explain; none when the difference hides in peaked heads."""
    rank: tuple[int, ...]
    """Units left unexplained, also in padding rows, dark rows, allowed zeros, rarity: smaller is better."""


def fits(case: Case, intent: Intent, every: bool = False) -> bool:
    """Whether the weights are what this intent makes; with ``every`` also in padding rows."""
    return bool(_intended(case, intent, every).units.all())


def _intended(case: Case, intent: Intent, every: bool = False) -> Match:
    padding = case.padding(intent)
    double = empty_rows(case.arrays, case.evidence, intent, padding).double
    return compare(case.evidence, intent.allowed, case.rows(intent, every), padding, case.evidence.flat | double)


def explanations(case: Case, intent: Intent) -> list[Guess]:
    """Mistakes that explain every unit that the intent does not, best first.

    Where the intent explains them all, only mistakes that block more are looked for: in heads so peaked that
    many weights are zero anyway, a stricter mask is seen by the pattern of its zeros.
    """
    bad = ~_intended(case, intent).units
    if not bad.any() and (case.evidence.told or not case.evidence.faint.any()):
        return []
    tried = (_try(case, intent, code, allowed, bad, order) for order, (code, allowed) in _distinct(case, intent))
    return sorted((guess for guess in tried if guess is not None), key=lambda guess: guess.rank)


def _distinct(case: Case, intent: Intent) -> Iterator[tuple[int, tuple[str, np.ndarray]]]:
    """Guesses that differ from the intent somewhere that counts, numbered by how common they are."""
    for order, (code, allowed) in enumerate(guesses(case.arrays, case.evidence, intent)):
        if not intent.binding and code in _ONLY_STATED:
            continue
        rows = case.rows(intent, code == "wrong-axis" or not intent.binding)
        if ((allowed ^ intent.allowed) & rows[..., None]).any():
            yield order, (code, allowed)


def _try(case: Case, intent: Intent, code: str, allowed: np.ndarray, bad: np.ndarray, order: int) -> Guess | None:
    """The guess with its rank, or None when it does not explain what it must."""
    if not bad.any() and not _only_stricter(intent.allowed, allowed, case.rows(intent)):
        return None
    padding, flat = case.padding(intent), case.evidence.flat | only_fills(case.arrays)
    if code in ("inverted", "diagonal-blocked") and bad.any() and allowed.shape[-1] > 1:
        flat = flat | case.evidence.lit.all(-1)  # A finite number added to a whole row changes nothing in it.
    layers = np.asarray(bad.any((0, 2)))[None, :, None, None] | (not bad.any())
    real, every = (
        compare(case.evidence, allowed, case.rows(intent, whole) & layers, padding, flat)
        for whole in (code == "wrong-axis", True)
    )
    if not (real.units | ~bad).all() or (not bad.any() and not real.units.all()):
        return None
    rows = case.rows(intent, bool(every.units.all())) & (bad[..., None] | (not bad.any()))
    if not solid(case.evidence, intent.allowed, allowed, rows, picked=code == "hole-inside"):
        return None
    if code == "inverted" and not (allowed.any(-1) & rows).any():
        return None  # a mask that allows nothing explains every dead row, and says nothing
    if code == "mask-ignored" and not _possible(case, intent, bad):
        return None
    first = code == "mask-ignored" and never_arrived(case, intent)
    rank = (_left(real), _left(every), every.dark, every.unlit, -1 if first else order)
    return Guess(code, allowed, intent, bad, rank)


def _only_stricter(meant: np.ndarray, allowed: np.ndarray, rows: np.ndarray) -> bool:
    """Whether in the rows that count something is closed and nothing opened."""
    opened, closed = (cells & rows[..., None] for cells in (allowed & ~meant, meant & ~allowed))
    return bool(closed.any()) and not opened.any()


def _left(match: Match) -> int:
    return int((~match.units).sum())


def sees_the_blocked(case: Case, intent: Intent) -> bool:
    """Whether the weights given light cells that the mask given blocks: then no other reading makes them right."""
    mask = case.arrays.mask
    if mask is None or "weights" not in case.arrays.given:
        return False
    rows = case.rows(intent) & mask.any(-1)
    return bool((case.evidence.lit & ~mask & rows[..., None]).any())


def never_arrived(case: Case, intent: Intent) -> bool:
    """Whether cells are lit that the mask given, or the masked scores, did block; or several parts of it at once."""
    mask, masked = case.arrays.mask, case.arrays.masked_scores
    stray = case.evidence.lit & ~intent.allowed & case.rows(intent)[..., None]
    if masked is not None and (stray & (masked <= -1e3)).any():
        return True
    if mask is not None:
        return bool((stray & ~mask).any())
    return intent.binding and intent.parts() > 1


def _possible(case: Case, intent: Intent, bad: np.ndarray) -> bool:
    """Whether ``mask-ignored`` can be said: the scores agree, and where a mask was given it blocks what is lit."""
    plain = unmasked(case.arrays, case.evidence)
    if plain is not None and not (plain | ~bad).all():
        return False
    if case.arrays.mask is not None:
        return never_arrived(case, intent)
    return plain is not None or (intent.binding and intent.parts() > 1)


def report(case: Case, found: list[Guess]) -> Intent:
    """Name the best guess, and its twins where the weights cannot tell them apart; returns its intent."""
    first = min(found, key=lambda guess: (*guess.rank[:4], not guess.intent.binding, guess.rank[4]))
    _note(case, first)
    certain = first.code == "mask-ignored" and never_arrived(case, first.intent)
    for other in () if certain else found:
        if frozenset((first.code, other.code)) in _TWINS and not case.named(other.code) and _same(case, first, other):
            _note(case, other, "warning")
    return first.intent


def _same(case: Case, one: Guess, other: Guess) -> bool:
    """Whether both would leave the same weights; padding swaps only where the other side has padding at all."""
    swap = "padding-swapped" in (one.code, other.code)
    if swap and (case.arrays.query_keep is None or case.arrays.query_keep.all()):
        return False
    return not (one.allowed ^ other.allowed).any()


def _note(case: Case, guess: Guess, severity: Severity | None = None) -> None:
    units = guess.bad if guess.bad.any() else np.ones_like(guess.bad)
    for every in (guess.code == "wrong-axis", True):
        rows = case.rows(guess.intent, every)
        wrong = (guess.allowed ^ guess.intent.allowed) & rows[..., None] & units[..., None, None]
        if wrong.any():
            break
    if severity:
        case.add(guess.code, wrong, severity, "the weights alone cannot rule this out")
    elif guess.code == "inverted" and (guess.allowed & guess.intent.allowed).any():
        case.add(guess.code, wrong, detail="tril and triu are exchanged", fix=TRIL)
    else:
        case.add(guess.code, wrong)
