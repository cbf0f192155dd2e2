"""Sound masks that the weights themselves follow, and that somebody may mean although they are not the usual ones.

They are read for the whole map first, then layer by layer, then head by head: layers alternate between local and global
attention (Gemma 2), and heads between forward and backward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ...language.say import listed, say
from ...masking.structure import FULL, Structure
from .arrays import Arrays
from .evidence import Evidence
from .intent import Intent, from_structures, recognise_all, used_keys

_FEW = 1 / 3
"""Layers or heads that differ from all others are odd where they are no more than this part."""


@dataclass(frozen=True, eq=False)
class Alternative:
    """One reading of the weights as a sound mask."""

    intent: Intent
    odd: np.ndarray | None = None
    """(1, L, H) bool: the few layers or heads that see more, or less, than all the others; None for none."""
    hides_future: bool = False
    """Whether every layer and head hides all that comes after the query."""


def alternatives(arrays: Arrays, evidence: Evidence, keep: np.ndarray | None) -> Iterator[Alternative]:
    """Yield readings of the weights, for the keys ``keep`` (B, K) or else those that have weight."""
    keep = used_keys(evidence) if keep is None else keep
    samples, layers, heads, queries, keys = arrays.sizes
    for shape in dict.fromkeys(((1, 1), (layers, 1), (layers, heads))):
        units = _recognise_units(evidence, keep, shape)
        if units is None or not _are_plausible(arrays, units):
            continue
        forward = all(one.hi == 0 and not one.spans and not one.prefix for one in units)
        if len(set(units)) == 1:
            yield Alternative(from_structures((units[0],), keep, queries, 0.7, False), None, forward)
            continue
        base = np.stack([one.allowed(queries, keys) for one in units]).reshape(1, *shape, queries, keys)
        keyless = np.zeros((samples, queries), bool)
        few = _odd(units)
        if few is None:
            yield Alternative(Intent(base, keep, (), _words(units, shape), 0.6, False, keyless), None, forward)
        else:
            usual = Counter(units).most_common(1)[0][0]
            intent = from_structures((usual,), keep, queries, 0.6, False)
            yield Alternative(intent, np.array(few).reshape(1, *shape))


def _recognise_units(evidence: Evidence, keep: np.ndarray, shape: tuple[int, int]) -> list[Structure] | None:
    """Return one structure for each unit of layers x heads (axes of 1 are joined), or None where one has none."""
    axes = tuple(axis for axis, size in zip((1, 2), shape, strict=True) if size == 1)
    nonzero = np.asarray(evidence.nonzero.any(axes, keepdims=True))
    rows = np.asarray(evidence.informative_rows.any(axes, keepdims=True))
    units = []
    for layer in range(shape[0]):
        for head in range(shape[1]):
            where = keep[:, None, :] & rows[:, layer, head, :, None]
            found = set(recognise_all(nonzero[:, layer, head], where))
            if len(found) != 1:
                return None
            units.append(found.pop())
    return units


def _are_plausible(arrays: Arrays, units: list[Structure]) -> bool:
    """Whether masks of these structures are in use on such a map."""
    if not all(one.plausible and not one.one_key_ahead for one in units):
        return False
    both_ways = {_direction(one) for one in units} == {"forward", "backward"}
    if arrays.self_or_cross == "cross":
        return all(one == FULL for one in units)
    if arrays.map == "decoder":
        return all(one.hi == 0 and 2 * one.prefix <= arrays.sizes[4] for one in units)
    if arrays.map == "encoder":
        return both_ways or all(one.hi != 0 and not one.anti_causal for one in units)
    return both_ways or not any(one.anti_causal for one in units)


def _direction(structure: Structure) -> str:
    if structure.anti_causal or (structure.lo == 0 and structure.hi is not None):
        return "backward"
    return "forward" if structure.hi == 0 else "both"


def _odd(units: list[Structure]) -> list[bool] | None:
    """Return which units are the few that look in another direction than the others; None where none does."""
    directions = Counter(map(_direction, units))
    if "backward" in directions or len(directions) == 1:
        return None
    (usual, _), (_, few) = directions.most_common(2)
    return [_direction(one) != usual for one in units] if few <= _FEW * len(units) else None


def _words(units: list[Structure], shape: tuple[int, int]) -> str:
    """Return each structure with the layers or heads that follow it."""
    places: dict[str, list[str]] = {}
    for at, one in enumerate(units):
        layer, head = divmod(at, shape[1])
        place = f"{layer + 1}" if shape[1] == 1 else f"{layer + 1}.{head + 1}" if shape[0] > 1 else f"{head + 1}"
        places.setdefault(one.words(), []).append(place)
    if shape[1] == 1:
        each = (say("{mask} in layer {numbers}", mask=words, numbers=listed(at)) for words, at in places.items())
    else:
        each = (say("{mask} in head {numbers}", mask=words, numbers=listed(at)) for words, at in places.items())
    return reduce(lambda one, other: say("{one}; {other}", one=one, other=other), each)
