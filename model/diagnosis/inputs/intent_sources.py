"""Where an intent comes from: a name, an array, the kind of the map, or else the mask and the weights themselves."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...masking.structure import CAUSAL, FULL, Structure
from ...masking.structure_names import parse_structure
from .arrays import Arrays
from .evidence import Evidence
from .intent import (
    Intent,
    contradicts_padding,
    from_array,
    from_structures,
    is_top_left,
    known_keys,
    recognise_all,
    used_keys,
)


def stated_intent(arrays: Arrays, name: str | None) -> Intent | None:
    """Return what was stated: by name, as an array, or by the kind of the map together with its mask; else None."""
    _, _, _, queries, _ = arrays.sizes
    if name is not None:
        structure = parse_structure(name)
        keep = known_keys(arrays, "self" if structure.causal else "")
        return from_structures((_to_newest_key(structure, keep, queries),), keep, queries, 1.0, True)
    if arrays.meant is not None:
        return from_array(arrays, arrays.meant, 1.0)
    if arrays.map:
        return _intent_of_kind(arrays)
    return None


def stated_with_padding(arrays: Arrays, evidence: Evidence, name: str | None) -> Intent | None:
    """Return what a name states, for the keys that have weight: those at the ends that have none may be padding.

    None where the padding is known, where every key has weight, where ``full`` says that all are meant, and where a
    query newer than all keys with weight could not see itself.
    """
    known = arrays.key_keep is not None or arrays.mask is not None
    if name is None or known or "full" in name.lower().replace(" ", "").split("+"):
        return None
    keep = used_keys(evidence)
    _, _, _, queries, keys = arrays.sizes
    structure = parse_structure(name)
    if keep.all() or (structure.causal and queries < keys and not keep[:, -1].all()):
        return None
    return from_structures((structure,), keep, queries, 1.0, True)


def _intent_of_kind(arrays: Arrays) -> Intent:
    """Return what is usual on a map of this kind, or its own mask where that is a case of the usual."""
    _, _, _, queries, keys = arrays.sizes
    usual = CAUSAL if arrays.map == "decoder" else FULL
    if arrays.mask is not None and not _is_refuted(arrays, arrays.mask):
        own = from_array(arrays, arrays.mask, 0.9)
        narrower = (own.base <= usual.allowed(queries, keys)).all()
        if all(_is_usual(arrays.map, one) and (narrower or reads_ahead(one, keys)) for one in own.structures):
            return own
    keep = known_keys(arrays)
    return from_structures((_to_newest_key(usual, keep, queries),), keep, queries, 0.8, True)


def _to_newest_key(structure: Structure, keep: np.ndarray, queries: int) -> Structure:
    """Return a causal structure with the newest query at the newest key (B, K) that is filled, as in a static cache."""
    unfilled = np.argmax(keep[:, ::-1], -1)
    slots = int(unfilled[0])
    if structure.hi != 0 or queries >= keep.shape[1] or not slots or (unfilled != slots).any():
        return structure
    return dataclasses.replace(structure, hi=-slots, lo=None if structure.lo is None else structure.lo - slots)


def _is_refuted(arrays: Arrays, mask: np.ndarray) -> bool:
    """Whether a mask cannot be what was meant: it contradicts the padding given, or hides a query's own key."""
    return contradicts_padding(arrays, mask) or is_top_left(mask, arrays.self_or_cross)


def reads_ahead(structure: Structure, keys: int) -> bool:
    """Whether a causal mask opens the future on purpose: inside spans, or inside a prefix of no more than half."""
    return structure.hi == 0 and (bool(structure.spans) or 0 < 2 * structure.prefix <= keys)


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
    keep = known_keys(arrays) if arrays.key_keep is not None else used_keys(evidence)
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
    if _is_refuted(arrays, mask):
        return _usual_intents(arrays, real)
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
