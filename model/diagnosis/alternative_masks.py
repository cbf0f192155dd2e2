"""Whether the weights follow a sound mask that nobody stated, so that the usual one would be a false alarm."""

from __future__ import annotations

import dataclasses

from ..language.say import say, to_say
from ..masking.meaning import parse_meaning
from ..masking.structure import CAUSAL
from .inputs.intent import Intent, known_keys
from .inputs.intent_alternatives import Alternative, alternatives
from .rules.case import Case
from .rules.explain import contradicts_mask, explanations, fits

_ODD = to_say("the other layers or heads follow another mask")
_WINDOW = to_say("the future is hidden as was said, and keys beyond a window as well")
_WINDOW_FIX = 'diagnose(..., meant="causal+window:W")  # to have the width checked too'


def alternative_intent(case: Case, meant_name: str | None) -> Intent | None:
    """Return the mask that the weights follow, after reporting the few layers or heads that do not; else None.

    Nothing is proposed against what is stated, save where ``causal`` is stated by name alone: a window hides the future
    as well.
    """
    arrays = case.arrays
    named = meant_name is not None and parse_meaning(meant_name) == CAUSAL and arrays.meant is None
    if (case.stated and not named) or "weights" not in arrays.given or case.has():
        return None
    padding_known = arrays.key_keep is not None or arrays.mask is not None
    for one in alternatives(arrays, case.evidence, known_keys(arrays) if padding_known else None):
        if named and not (one.odd is None and one.hides_future and set(one.intent.structures) != {CAUSAL}):
            continue
        if _fits(case, one):
            _report_odd(case, one)
            if not named:
                return one.intent
            closed = ~one.intent.allowed & CAUSAL.allowed(*arrays.sizes[3:]) & one.intent.columns
            case.add("over-blocked", closed, "info", looks=say(_WINDOW), fix=_WINDOW_FIX)
            return dataclasses.replace(one.intent, sure=1.0)
    return None


def _fits(case: Case, one: Alternative) -> bool:
    mask = case.arrays.mask
    if mask is not None and (one.odd is not None or (one.intent.allowed & ~mask).any()):
        return False
    rest = case if one.odd is None else case.excluding(one.odd)
    with_padding = fits(rest, one.intent, with_padding=True)  # A window is told without the rows of padding queries.
    if contradicts_mask(case, one.intent) or not (with_padding or (one.hides_future and fits(rest, one.intent))):
        return False
    return not explanations(rest, one.intent)


def _report_odd(case: Case, one: Alternative) -> None:
    """Add the few layers or heads that see what all the others do not, or do not see what they do."""
    if one.odd is None:
        return
    units = one.odd[..., None, None] & case.rows(one.intent)[..., None]
    ahead = case.evidence.nonzero & ~one.intent.allowed & units
    behind = one.intent.allowed & ~case.evidence.nonzero & units
    case.add(
        "future-visible" if ahead.any() else "over-blocked",
        ahead if ahead.any() else behind,
        detail=say(_ODD),
        intent=one.intent,
    )
