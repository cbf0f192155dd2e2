"""What the mask was meant to be: stated, named, given, or proposed from the picture."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from ..masking.structure import CAUSAL, FULL, Structure, parse, recognise
from .evidence import Evidence
from .inputs import Arrays
from .side import side


@dataclass(frozen=True, eq=False)
class Intent:
    """One reading of what was meant: a structure, and which keys are real."""

    base: np.ndarray
    """(B, L, H, Q, K) bool without padding; axes but the last two may be 1."""
    keep: np.ndarray
    """(B, K) bool, True = a key that may be seen at all."""
    structures: tuple[Structure, ...]
    """One for each sample, or () when ``base`` belongs to no known family."""
    words: str
    sure: float
    binding: bool
    """Whether disagreement is a fault by itself: it was stated, or is the mask that was given."""
    idle: np.ndarray
    """(B, Q) bool: queries that were meant to have no key although the structure would give them some: padding."""

    @property
    def allowed(self) -> np.ndarray:
        return self.base & self.keep[:, None, None, None, :]

    @property
    def causal(self) -> bool:
        """Whether it hides the future of any sample."""
        return any(one.causal for one in self.structures)

    @property
    def padded(self) -> bool:
        return not self.keep.all()

    def parts(self) -> int:
        """How many kinds of cells it blocks: padding, future, outside a window, other documents."""
        kinds = [any(getattr(one, name) is not None for one in self.structures) for name in ("lo", "hi")]
        return sum(kinds) + self.padded + any(one.starts for one in self.structures)


def from_structures(
    structures: tuple[Structure, ...], keep: np.ndarray, queries: int, sure: float, binding: bool
) -> Intent:
    """An intent from one structure a sample, or one for all."""
    samples, keys = keep.shape
    whole = structures * samples if len(structures) == 1 else structures
    base = np.stack([one.allowed(queries, keys) for one in whole])[:, None, None]
    padded = "" if keep.all() else ", without padding"
    words = " / ".join(dict.fromkeys(one.words() for one in whole))
    return Intent(base, keep, whole, words + padded, sure, binding, np.zeros((samples, queries), bool))


def stated(arrays: Arrays, named: str | None) -> Intent | None:
    """What somebody said: by name, as an array, or by the kind of the map together with its mask."""
    _, _, _, queries, _ = arrays.sizes
    if named is not None:
        return from_structures((parse(named),), known_keys(arrays), queries, 1.0, True)
    if arrays.meant is not None:
        return from_array(arrays, arrays.meant, 1.0)
    if arrays.map:
        return _by_kind(arrays)
    return None


def known_keys(arrays: Arrays) -> np.ndarray:
    """(B, K): the keys that are real as far as anything given says; all of them when nothing does."""
    b, _, _, _, keys = arrays.sizes
    if arrays.key_keep is not None:
        return arrays.key_keep
    if arrays.meant is not None:
        return _columns(arrays.meant, b, keys)
    if arrays.mask is not None:
        return _columns(arrays.mask, b, keys)
    return np.ones((b, keys), bool)


def _columns(allowed: np.ndarray, samples: int, keys: int) -> np.ndarray:
    """(B, K): columns that some row of some head may see; all of a sample without any."""
    found = allowed.any((1, 2, 3))
    found = found | ~found.any(-1, keepdims=True)
    return np.broadcast_to(found, (samples, keys))


def from_array(arrays: Arrays, allowed: np.ndarray, sure: float) -> Intent:
    """An intent from (B, L, H, Q, K) booleans, with its structure recognised where it has one."""
    b, _, _, queries, keys = arrays.sizes
    keep = _columns(allowed, b, keys)
    keep = keep if arrays.key_keep is None else keep & arrays.key_keep
    allowed = np.broadcast_to(allowed, (b, *allowed.shape[1:3], queries, keys))
    structures = _recognised(allowed, keep)
    if structures:
        whole = from_structures(structures, keep, queries, sure, True)
        idle = whole.allowed.any((1, 2, 4)) & ~np.asarray(allowed.any((1, 2, 4)))
        return dataclasses.replace(whole, idle=np.asarray(idle))
    base = allowed | ~keep[:, None, None, None, :]
    return Intent(base, keep, (), "a mask of its own kind", sure, True, np.zeros((b, queries), bool))


def _recognised(allowed: np.ndarray, keep: np.ndarray) -> tuple[Structure, ...]:
    """One structure a sample when all heads and layers share them, one for all where one fits, else ()."""
    if not (allowed == allowed[:, :1, :1]).all():
        return ()
    grids = allowed[:, 0, 0]
    columns = np.broadcast_to(keep[:, None, :], grids.shape)
    used = np.asarray(grids.any(-1))
    for looks in (columns, columns & used[:, :, None]):
        found = [recognise(grid, look) for grid, look in zip(grids, looks, strict=True)]
        if agreed := _agreed(found, grids, looks):
            return agreed
    return ()


def _agreed(found: list[Structure | None], grids: np.ndarray, looks: np.ndarray) -> tuple[Structure, ...]:
    for one in dict.fromkeys(one for one in found if one is not None):
        same = one.allowed(*grids.shape[1:])
        if ((same & looks) == (grids & looks)).all():
            return (one,)
    empty = ~(grids & looks).any((1, 2))
    whole = [FULL if nothing else one for one, nothing in zip(found, empty, strict=True)]
    known = tuple(one for one in whole if one is not None)
    return known if len(known) == len(whole) else ()


def _by_kind(arrays: Arrays) -> Intent:
    """The kind of the map says what is usual; its own mask is believed as far as it is a case of that."""
    _, _, _, queries, keys = arrays.sizes
    usual = CAUSAL if arrays.map == "decoder" else FULL
    if arrays.mask is not None:
        own = from_array(arrays, arrays.mask, 0.9)
        if (own.base <= usual.allowed(queries, keys)).all() and all(
            _usual_in(arrays.map, one) for one in own.structures
        ):
            return own
    return from_structures((usual,), known_keys(arrays), queries, 0.8, True)


def _usual_in(kind: str, structure: Structure) -> bool:
    """Whether such a mask is common on such a map: none causal on an encoder, none at all on cross-attention."""
    if kind == "cross":
        return structure == FULL
    return structure.plausible and (kind == "decoder" or structure.hi != 0)


def proposed(arrays: Arrays, evidence: Evidence) -> list[Intent]:
    """Readings to try when nobody says, the most likely first."""
    _, _, _, queries, _ = arrays.sizes
    if arrays.mask is not None:
        return _from_mask(arrays, arrays.mask)
    keep = known_keys(arrays) if arrays.key_keep is not None else guessed_keys(evidence)
    lit = np.asarray(evidence.lit.any((1, 2)))
    look = keep[:, None, :] & _telling(evidence)[:, :, None]
    found = [recognise(grid, where) for grid, where in zip(lit, look, strict=True)]
    structures = _agreed(found, lit, look)
    may_be_causal = _may_be_causal(arrays)
    usual = _usual(arrays, keep)
    if structures and all(one.plausible and (may_be_causal or not one.causal) for one in structures):
        return [from_structures(structures, keep, queries, 0.7, False), *usual]
    return usual


def _from_mask(arrays: Arrays, mask: np.ndarray) -> list[Intent]:
    """The mask that was given is believed when somebody could mean it; one of no known family only after the usual."""
    b, _, _, _, keys = arrays.sizes
    own = from_array(arrays, mask, 0.8)
    real = arrays.key_keep if arrays.key_keep is not None else np.ones((b, keys), bool)
    if not own.structures:
        return [*_usual(arrays, real), own]
    if all(one.plausible for one in own.structures) and (_may_be_causal(arrays) or not own.causal):
        return [own, *_usual(arrays, known_keys(arrays))]
    return _usual(arrays, real)


def _usual(arrays: Arrays, keep: np.ndarray) -> list[Intent]:
    """Causal (where it can be) and full."""
    _, _, _, queries, _ = arrays.sizes
    kinds = (CAUSAL, FULL) if _may_be_causal(arrays) else (FULL,)
    return [from_structures((one,), keep, queries, 0.4, False) for one in kinds]


def _may_be_causal(arrays: Arrays) -> bool:
    """Whether there is a diagonal at all: cross-attention has none."""
    return side(arrays) != "cross"


def _telling(evidence: Evidence) -> np.ndarray:
    """(B, Q): rows that show a mask: neither dead, nor NaN, nor level where other rows are not."""
    return ~(evidence.dead | evidence.nan | evidence.odd).all((1, 2))


def guessed_keys(evidence: Evidence) -> np.ndarray:
    """(B, K): keys between the first and the last that any telling row of any head attends to."""
    lit = evidence.lit & ~evidence.odd[..., None]
    used = lit.any((1, 2, 3))
    before = np.maximum.accumulate(used, -1)
    after = np.maximum.accumulate(used[:, ::-1], -1)[:, ::-1]
    inside = before & after
    return inside | ~inside.any(-1, keepdims=True)
