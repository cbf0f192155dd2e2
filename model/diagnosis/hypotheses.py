"""For one intent, the masks that each known mistake would have put in its place.

A diagnosis compares what took effect with these. Every function yields (code, allowed), allowed being
(B, L, H, Q, K) bool with axes possibly 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ..masking.structure import CAUSAL, Structure
from .evidence import Evidence
from .inputs import Arrays
from .intent import Intent
from .side import side

Guess = tuple[str, np.ndarray]


def guesses(arrays: Arrays, evidence: Evidence, intent: Intent) -> Iterator[Guess]:
    """Every mistake worth trying, in the order of how common it is among those that would look the same."""
    yield from _dropped(intent)
    yield from _causal(arrays, intent)
    yield from _padding(arrays, intent)
    yield from _order(arrays, intent)
    yield from _upside_down(arrays, intent)
    yield from _holes(arrays, evidence, intent)


def _columns(keep: np.ndarray) -> np.ndarray:
    """(B, K) as (B, 1, 1, 1, K)."""
    return keep[:, None, None, None, :]


def _with(
    arrays: Arrays, intent: Intent, change: Callable[[Structure], Structure], shift: int | None = None
) -> np.ndarray:
    """The intent's mask with every sample's structure changed."""
    _, _, _, queries, keys = arrays.sizes
    base = np.stack([change(one).allowed(queries, keys, shift) for one in intent.structures])[:, None, None]
    return base & _columns(intent.keep)


def _dropped(intent: Intent) -> Iterator[Guess]:
    """A whole part forgotten."""
    if intent.padded:
        yield "padding-visible", intent.base
    if intent.structures:
        queries, keys = intent.base.shape[-2:]
        for change in _forgotten(intent.structures):
            base = np.stack([change(one).allowed(queries, keys) for one in intent.structures])[:, None, None]
            yield ("document-leak" if change is _one_document else "future-visible"), base & _columns(intent.keep)
    if not intent.allowed.all():
        yield "mask-ignored", np.ones_like(intent.allowed)


def _freed(structure: Structure, n: int) -> Structure:
    ways = structure.without_causal()
    return ways[min(n, len(ways) - 1)] if structure.causal else structure


def _moved(structure: Structure, n: int) -> Structure:
    return structure.shifted_ends()[n]


def _one_document(structure: Structure) -> Structure:
    return dataclasses.replace(structure, starts=())


def _forgotten(structures: tuple[Structure, ...]) -> Iterator[Callable[[Structure], Structure]]:
    if any(one.starts for one in structures):
        yield _one_document
    for n in range(max((len(one.without_causal()) for one in structures if one.causal), default=0)):
        yield partial(_freed, n=n)


def _causal(arrays: Arrays, intent: Intent) -> Iterator[Guess]:
    """The triangle in the wrong place, or where none belongs; windows of the wrong width."""
    _, _, _, queries, keys = arrays.sizes
    diagonal = np.eye(queries, keys, keys - queries, dtype=bool)
    if queries < keys and intent.causal:
        yield "top-left-causal", _with(arrays, intent, lambda one: one, shift=0)
    if (queries == keys and side(arrays) != "cross") or (queries < keys and intent.causal):
        yield "diagonal-blocked", intent.allowed & ~diagonal
    yield from _staircase(arrays, intent)
    for n in range(max((len(one.shifted_ends()) for one in intent.structures), default=0)):
        moved = [one.shifted_ends() for one in intent.structures]
        if all(len(ends) > n for ends in moved):
            yield "window-off-by-one", _with(arrays, intent, partial(_moved, n=n))


def _staircase(arrays: Arrays, intent: Intent) -> Iterator[Guess]:
    """A triangle that nobody asked for."""
    _, _, _, queries, keys = arrays.sizes
    if intent.causal:
        return
    code = {"self": "over-blocked", "cross": "causal-on-cross"}.get(side(arrays), "")
    for shift in {0, keys - queries}:
        stairs = intent.allowed & CAUSAL.allowed(queries, keys, shift)
        if queries < keys and shift == 0 and code != "causal-on-cross" and (queries == 1 or not intent.binding):
            yield "top-left-causal", stairs
        yield code or ("over-blocked" if queries == keys else "causal-on-cross"), stairs
        if not code and queries == keys:
            yield "causal-on-cross", stairs


def _padding(arrays: Arrays, intent: Intent) -> Iterator[Guess]:
    """The right padding of the wrong sentence, or along the wrong axis."""
    b, _, _, queries, keys = arrays.sizes
    keep = intent.keep
    if arrays.query_keep is not None:
        for rest in (True, False):
            swapped = np.full((b, keys), rest)
            swapped[:, : min(queries, keys)] = arrays.query_keep[:, :keys]
            yield "padding-swapped", intent.base & _columns(swapped)
    if b == queries and b > 1:
        yield "wrong-axis", intent.base & keep[None, None, None]
    if queries == keys:
        yield "wrong-axis", intent.base & keep[:, None, None, :, None]
    for sample in range(b if b > 1 else 0):
        yield "wrong-axis", intent.base & _columns(keep[sample : sample + 1])


def _order(arrays: Arrays, intent: Intent) -> Iterator[Guess]:
    """(N*H, ...) filled or read in the wrong order."""
    b, _, heads, _, _ = arrays.sizes
    if b < 2 or heads < 2:
        return
    index = np.arange(b)[:, None] * heads + np.arange(heads)[None, :]
    for sample in (index % b, (np.arange(heads)[None, :] * b + np.arange(b)[:, None]) // heads):
        yield "head-order", intent.base & intent.keep[sample][:, None, :, None, :]


def _upside_down(arrays: Arrays, intent: Intent) -> Iterator[Guess]:
    """The whole mask, its padding, or its structure inverted; tril and triu exchanged."""
    _, _, _, queries, keys = arrays.sizes
    columns = _columns(intent.keep)
    yield "inverted", ~intent.allowed
    if intent.causal and queries == keys:
        yield "inverted", np.swapaxes(intent.base, -1, -2) & columns
    if intent.padded:
        yield "inverted", intent.base & ~columns
        yield "inverted", ~intent.base & columns


def _holes(arrays: Arrays, evidence: Evidence, intent: Intent) -> Iterator[Guess]:
    """Columns that no query sees although they lie inside the sentence, unless their scores are reason enough."""
    telling = ~(evidence.dead | evidence.nan | evidence.odd)
    blocked = telling[..., None] & ~evidence.faint if evidence.told else telling[..., None]
    each = ~(evidence.lit & telling[..., None]).any(-2) & intent.allowed.any(-2) & blocked.any(-2)
    certain = intent.binding or arrays.key_keep is not None
    for unseen in (each.all((1, 2), keepdims=True), each.all(2, keepdims=True)):
        rows = unseen.reshape(-1, unseen.shape[-1])
        keeps = np.broadcast_to(intent.keep[:, None, None], unseen.shape).reshape(rows.shape)
        if rows.any() and all(_is_hole(row, keep, certain) for row, keep in zip(rows, keeps, strict=True)):
            yield "hole-inside", intent.allowed & ~unseen[..., None, :]


def _is_hole(unseen: np.ndarray, keep: np.ndarray, certain: bool) -> bool:
    """Whether the unseen columns of one sample are single tokens rather than an end cut off."""
    where = np.flatnonzero(unseen)
    if not where.size:
        return True
    real = np.flatnonzero(keep & ~unseen)
    if not real.size:
        return False
    inside = (where > real[0]) & (where < real[-1])
    return bool(inside.all() or (certain and (~inside).sum() == 1))
