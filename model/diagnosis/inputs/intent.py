"""The mask that was meant: stated, named, given, or proposed from the weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...language.say import say
from ...masking.structure import CAUSAL, FULL, Structure, recognise
from .arrays import Arrays, as_columns
from .evidence import Evidence


@dataclass(frozen=True, eq=False)
class Intent:
    """One reading of what was meant: a structure, and which keys are real."""

    base: np.ndarray
    """(B, L, H, Q, K) bool without padding; axes but the last two may be 1."""
    keep: np.ndarray
    """(B, K) bool, True = a key that may be attended to at all."""
    structures: tuple[Structure, ...]
    """One for each sample, or () when ``base`` belongs to no known family."""
    words: str
    sure: float
    binding: bool
    """Whether disagreement is a fault by itself: it was stated, or is the mask that was given."""
    keyless_queries: np.ndarray
    """(B, Q) bool: queries that were meant to have no key although the structure would give them some: padding."""

    @property
    def columns(self) -> np.ndarray:
        """(B, 1, 1, 1, K) bool: ``keep``, able to broadcast to the weights."""
        return as_columns(self.keep)

    @property
    def allowed(self) -> np.ndarray:
        """(B, L, H, Q, K) bool, axes may be 1: the whole mask, True = may attend."""
        return self.base & self.columns

    @property
    def causal(self) -> bool:
        """Whether it hides the future of any sample."""
        return any(one.causal for one in self.structures)

    @property
    def padded(self) -> bool:
        """Whether any key is padding."""
        return not self.keep.all()

    def parts(self, units: np.ndarray) -> int:
        """Return how many kinds of cells it blocks in ``units`` (B, L, H): padding, future, far ones, documents."""
        kinds = [any(getattr(one, name) is not None for one in self.structures) for name in ("lo", "hi")]
        if not self.structures:
            later = ~CAUSAL.allowed(*self.base.shape[-2:])
            closed = ~self.allowed & self.columns & units[..., None, None]
            kinds = [bool((closed & side).any()) for side in (~later, later)]
        return sum(kinds) + self.padded + any(one.starts for one in self.structures)


def stack_structures(structures: Sequence[Structure], queries: int, keys: int, shift: int | None = None) -> np.ndarray:
    """Return (B, 1, 1, Q, K) bool, True = may attend, of one structure for each sample."""
    return np.stack([one.allowed(queries, keys, shift) for one in structures])[:, None, None]


def span(keep: np.ndarray) -> np.ndarray:
    """Return (B, K): True from the first to the last True of each sample."""
    before = np.maximum.accumulate(keep, -1)
    after = np.maximum.accumulate(keep[:, ::-1], -1)[:, ::-1]
    return before & after


def from_structures(
    structures: tuple[Structure, ...], keep: np.ndarray, queries: int, sure: float, binding: bool
) -> Intent:
    """Return an intent from one structure for each sample, or one for all."""
    samples, keys = keep.shape
    each = structures * samples if len(structures) == 1 else structures
    base = stack_structures(each, queries, keys)
    words = " / ".join(dict.fromkeys(one.words() for one in each))
    words = words if keep.all() else say("{mask}, without padding", mask=words)
    return Intent(base, keep, each, words, sure, binding, np.zeros((samples, queries), bool))


def from_array(arrays: Arrays, allowed: np.ndarray, sure: float) -> Intent:
    """Return an intent from (B, L, H, Q, K) booleans, axes possibly 1, with its structure where it has one."""
    b, _, _, queries, keys = arrays.sizes
    keep = _attended_keys(allowed, b, keys)
    keep = keep if arrays.key_keep is None else keep & arrays.key_keep
    allowed = np.broadcast_to(allowed, (b, *allowed.shape[1:3], queries, keys))
    structures = _recognise_samples(allowed, keep)
    if structures:
        intent = from_structures(structures, keep, queries, sure, True)
        keyless = intent.allowed.any((1, 2, 4)) & ~np.asarray(allowed.any((1, 2, 4)))
        return dataclasses.replace(intent, keyless_queries=np.asarray(keyless))
    base = allowed | ~as_columns(keep)
    return Intent(base, keep, (), say("a mask of its own kind"), sure, True, np.zeros((b, queries), bool))


def known_keys(arrays: Arrays, self_or_cross: str = "") -> np.ndarray:
    """Return (B, K): the keys that are real as far as the arrays say; all of them when they say nothing.

    ``self_or_cross`` is the kind of attention where what was meant says more of it than the arrays.
    """
    b, _, _, _, keys = arrays.sizes
    if arrays.key_keep is not None:
        return arrays.key_keep
    if arrays.meant is not None:
        return _attended_keys(arrays.meant, b, keys)
    if arrays.mask is not None and not is_top_left(arrays.mask, self_or_cross or arrays.self_or_cross):
        return _attended_keys(arrays.mask, b, keys)
    return np.ones((b, keys), bool)


def contradicts_padding(arrays: Arrays, mask: np.ndarray) -> bool:
    """Whether a mask (B, L, H, Q, K; axes may be 1) leaves some real query nothing but padding, by ``key_keep``."""
    if arrays.key_keep is None:
        return False
    columns = as_columns(arrays.key_keep)
    emptied = mask.any(-1) & ~(mask & columns).any(-1) & columns.any(-1)
    return bool((emptied & arrays.real_queries[:, None, None]).any())


def is_top_left(mask: np.ndarray, self_or_cross: str) -> bool:
    """Whether a mask of fewer queries than keys is causal from the top left: its closed end is no padding then.

    Cross-attention of one query onto one real key looks the same, so the kind must be known for a single query.
    """
    queries, keys = mask.shape[-2:]
    if queries >= keys or self_or_cross == "cross" or (queries == 1 and self_or_cross != "self"):
        return False
    return bool((mask == CAUSAL.allowed(queries, keys, 0)).all())


def used_keys(evidence: Evidence) -> np.ndarray:
    """Return (B, K): keys between the first and the last that any informative row of any head attends to."""
    nonzero = evidence.nonzero & ~evidence.uniform_nonzero[..., None]
    keys = span(nonzero.any((1, 2, 3)))
    return keys | ~keys.any(-1, keepdims=True)


def _attended_keys(allowed: np.ndarray, samples: int, keys: int) -> np.ndarray:
    """Return (B, K): columns that some row of some head may attend to; all of a sample without any."""
    columns = allowed.any((1, 2, 3))
    columns = columns | ~columns.any(-1, keepdims=True)
    return np.broadcast_to(columns, (samples, keys))


def _recognise_samples(allowed: np.ndarray, keep: np.ndarray) -> tuple[Structure, ...]:
    """Return the structures of the samples where all heads and layers share them, else ()."""
    if not (allowed == allowed[:, :1, :1]).all():
        return ()
    grids = allowed[:, 0, 0]
    columns = np.broadcast_to(keep[:, None, :], grids.shape)
    used = np.asarray(grids.any(-1))
    for where in (columns, columns & used[:, :, None]):
        if structures := recognise_all(grids, where):
            return structures
    return ()


def recognise_all(grids: np.ndarray, where: np.ndarray) -> tuple[Structure, ...]:
    """Return one structure for each of (B, Q, K) grids, or one for all, that agrees with them where ``where`` is True.

    () where a sample follows none. A sample without an allowed cell follows any.
    """
    found = [recognise(grid, cells) for grid, cells in zip(grids, where, strict=True)]
    for structure in dict.fromkeys(one for one in found if one is not None):
        same = structure.allowed(*grids.shape[1:])
        if ((same & where) == (grids & where)).all():
            return (structure,)
    empty = ~(grids & where).any((1, 2))
    each = [FULL if nothing else structure for structure, nothing in zip(found, empty, strict=True)]
    known = tuple(structure for structure in each if structure is not None)
    return known if len(known) == len(each) else ()
