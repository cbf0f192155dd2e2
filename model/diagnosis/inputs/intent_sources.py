"""Where an intent comes from: a name, an array, the kind of the map, or else the mask and the weights themselves."""

from __future__ import annotations

import numpy as np

from ...masking.structure import CAUSAL, FULL, Structure
from ...masking.structure_names import parse_structure
from .arrays import Arrays
from .evidence import Evidence
from .intent import Intent, from_array, from_structures, known_keys, recognise_all, span


def stated_intent(arrays: Arrays, name: str | None) -> Intent | None:
    """Return what was stated: by name, as an array, or by the kind of the map together with its mask; else None."""
    _, _, _, queries, _ = arrays.sizes
    if name is not None:
        return from_structures((parse_structure(name),), known_keys(arrays), queries, 1.0, True)
    if arrays.meant is not None:
        return from_array(arrays, arrays.meant, 1.0)
    if arrays.map:
        return _intent_of_kind(arrays)
    return None


def _intent_of_kind(arrays: Arrays) -> Intent:
    """Return what is usual on a map of this kind, or its own mask where that is a case of the usual."""
    _, _, _, queries, keys = arrays.sizes
    usual = CAUSAL if arrays.map == "decoder" else FULL
    if arrays.mask is not None:
        own = from_array(arrays, arrays.mask, 0.9)
        if (own.base <= usual.allowed(queries, keys)).all() and all(
            _is_usual(arrays.map, structure) for structure in own.structures
        ):
            return own
    return from_structures((usual,), known_keys(arrays), queries, 0.8, True)


def _is_usual(kind: str, structure: Structure) -> bool:
    """Whether such a mask is common on such a map: none causal on an encoder, none at all on cross-attention."""
    if kind == "cross":
        return structure == FULL
    return structure.plausible and (kind == "decoder" or structure.hi != 0)


def proposed_intents(arrays: Arrays, evidence: Evidence) -> list[Intent]:
    """Return the intents to try when none is stated, the most likely first."""
    _, _, _, queries, _ = arrays.sizes
    if arrays.mask is not None:
        return _intents_of_mask(arrays, arrays.mask)
    keep = known_keys(arrays) if arrays.key_keep is not None else _used_keys(evidence)
    nonzero = np.asarray(evidence.nonzero.any((1, 2)))
    informative = np.asarray(evidence.informative_rows.any((1, 2)))
    structures = recognise_all(nonzero, keep[:, None, :] & informative[:, :, None])
    may_be_causal = _may_be_causal(arrays)
    usual = _usual_intents(arrays, keep)
    if structures and all(one.plausible and (may_be_causal or not one.causal) for one in structures):
        return [from_structures(structures, keep, queries, 0.7, False), *usual]
    return usual


def _intents_of_mask(arrays: Arrays, mask: np.ndarray) -> list[Intent]:
    """Return the mask given first where it is plausible; one of no known family comes after the usual ones."""
    b, _, _, _, keys = arrays.sizes
    own = from_array(arrays, mask, 0.8)
    real = arrays.key_keep if arrays.key_keep is not None else np.ones((b, keys), bool)
    if not own.structures:
        return [*_usual_intents(arrays, real), own]
    if all(one.plausible for one in own.structures) and (_may_be_causal(arrays) or not own.causal):
        return [own, *_usual_intents(arrays, known_keys(arrays))]
    return _usual_intents(arrays, real)


def _usual_intents(arrays: Arrays, keep: np.ndarray) -> list[Intent]:
    """Return causal (where it can be) and full."""
    _, _, _, queries, _ = arrays.sizes
    kinds = (CAUSAL, FULL) if _may_be_causal(arrays) else (FULL,)
    return [from_structures((structure,), keep, queries, 0.4, False) for structure in kinds]


def _may_be_causal(arrays: Arrays) -> bool:
    """Whether there is a diagonal at all: cross-attention has none."""
    return arrays.self_or_cross != "cross"


def _used_keys(evidence: Evidence) -> np.ndarray:
    """Return (B, K): keys between the first and the last that any informative row of any head attends to."""
    nonzero = evidence.nonzero & ~evidence.uniform_nonzero[..., None]
    keys = span(nonzero.any((1, 2, 3)))
    return keys | ~keys.any(-1, keepdims=True)
