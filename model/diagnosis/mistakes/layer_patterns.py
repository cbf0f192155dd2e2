"""Masks of the right kinds in the wrong layers or heads, and patterns that have lost their global tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ...masking.structure import CAUSAL, recognise
from ..inputs.arrays import Arrays
from ..inputs.evidence import Evidence
from ..inputs.intent import Intent, stack_structures

_CODE = "wrong-layer-pattern"


def layer_patterns(arrays: Arrays, evidence: Evidence, intent: Intent) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (code, allowed): layers, then heads, that follow the mask meant for another; lost global tokens.

    ``allowed`` is (B, L, H, Q, K) bool, axes possibly 1.
    """
    for axis in (1, 2):
        if arrays.sizes[axis] > 1 and intent.allowed.shape[axis] > 1:
            yield from _exchanged(evidence, intent.allowed, axis)
    if not intent.structures:
        same = (intent.base == intent.base[:1]).all()
        for base in _without_globals(intent.base[:1] if same else intent.base):
            yield _CODE, base & intent.columns
    elif any(one.sinks for one in intent.structures):
        without = [dataclasses.replace(one, sinks=0) for one in intent.structures]
        yield _CODE, stack_structures(without, *arrays.sizes[3:]) & intent.columns


def _exchanged(evidence: Evidence, allowed: np.ndarray, axis: int) -> Iterator[tuple[str, np.ndarray]]:
    """Put in the place of each layer's (``axis`` 1) or head's (2) mask the first meant for another that it follows."""
    units = [np.take(allowed, [at], axis) for at in range(allowed.shape[axis])]
    distinct = [one for at, one in enumerate(units) if not any((one == other).all() for other in units[:at])]
    if len(distinct) == 1:
        return
    taken = []
    for at, own in enumerate(units):
        follows = (one for one in (own, *distinct) if _follows(evidence, one, at, axis))
        taken.append(next(follows, own))
    found = np.concatenate(taken, axis)
    if (found != allowed).any():
        yield _CODE, found


def _follows(evidence: Evidence, allowed: np.ndarray, at: int, axis: int) -> bool:
    """Whether the weights of one layer or head, in rows that show a mask, lie on all ``allowed`` cells and no other."""
    nonzero, rows = (np.take(one, [at], axis) for one in (evidence.nonzero, evidence.informative_rows))
    underflow = np.take(np.broadcast_to(evidence.maybe_underflow, evidence.nonzero.shape), [at], axis)
    live = (rows & allowed.any(-1))[..., None]
    stray, gaps = nonzero & ~allowed, allowed & ~nonzero & ~underflow
    return not ((stray | gaps) & live).any()


def _without_globals(base: np.ndarray) -> Iterator[np.ndarray]:
    """Yield a mask (B, L, H, Q, K) without its global queries and keys: both, the queries alone, the keys alone.

    Global tokens see every key that any token may see, and are seen by every query; the rest is a band.
    """
    grids = base.reshape(-1, *base.shape[-2:])
    parts = [_split(grid) for grid in grids]
    known = [part for part in parts if part is not None]
    if not known:
        return
    for with_queries, with_keys in ((False, False), (False, True), (True, False)):
        lost = [
            grid if part is None else part[0] | (grid & part[1] & with_queries) | (grid & part[2] & with_keys)
            for grid, part in zip(grids, parts, strict=True)
        ]
        yield np.stack(lost).reshape(base.shape)


def _split(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the band of (Q, K), the rows of global queries and the columns of global keys; None without any."""
    widest = CAUSAL.allowed(*grid.shape)
    widest = widest if not (grid & ~widest).any() else np.ones_like(grid)
    queries = (grid | ~widest).all(1)
    keys = (grid | ~widest).all(0)
    local = ~queries[:, None] & ~keys[None, :]
    structure = recognise(grid, local) if local.any() else None
    if structure is None:
        return None
    band = structure.allowed(*grid.shape) & widest
    if (band & ~grid).any() or not (grid & ~band).any():
        return None
    return band, np.broadcast_to(queries[:, None], grid.shape), np.broadcast_to(keys[None, :], grid.shape)
