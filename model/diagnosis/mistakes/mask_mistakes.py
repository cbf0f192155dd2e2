"""The masks that each known mistake would have put in the place of one intent.

A diagnosis compares what took effect with these. Every function yields (code, allowed), allowed being
(B, L, H, Q, K) bool with axes possibly 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ...masking.structure import CAUSAL, Structure
from ..inputs.arrays import Arrays, as_columns
from ..inputs.evidence import Evidence
from ..inputs.intent import Intent, stack_structures
from .layer_patterns import layer_patterns

Hypothesis = tuple[str, np.ndarray]
"""A code, and the mask that this mistake would have put in force."""


def hypotheses(arrays: Arrays, evidence: Evidence, intent: Intent) -> Iterator[Hypothesis]:
    """Yield every mistake worth trying, the most common first among those that would look the same."""
    yield from _missing_parts(arrays, intent)
    yield from _misplaced_causal(arrays, intent)
    yield from layer_patterns(arrays, evidence, intent)
    yield from _wrong_padding(arrays, intent)
    yield from _wrong_head_order(arrays, intent)
    yield from _inverted(arrays, intent)
    yield from _shifted(arrays, intent)
    yield from _other_samples(arrays, evidence, intent)
    yield from _joined(arrays, intent)
    yield from _holes(arrays, evidence, intent)


def _changed(
    arrays: Arrays, intent: Intent, change: Callable[[Structure], Structure], shift: int | None = None
) -> np.ndarray:
    """Return the mask of the intent with the structure of every sample changed."""
    _, _, _, queries, keys = arrays.sizes
    return stack_structures([change(one) for one in intent.structures], queries, keys, shift) & intent.columns


def _missing_parts(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """A whole part of the mask left out."""
    if intent.padded:
        yield from _unfilled_slots(arrays, intent)
        yield "padding-visible", intent.base
    for change in _omissions(intent.structures):
        code = "document-leak" if change is _one_document else "future-visible"
        yield code, _changed(arrays, intent, change)
    if not intent.structures:
        yield from _future_of_layers(intent)
    if not intent.allowed.all():
        yield "mask-ignored", np.ones_like(intent.allowed)


def _future_of_layers(intent: Intent) -> Iterator[Hypothesis]:
    """The future open in layers or heads that differ, with their windows or without."""
    queries, keys = intent.base.shape[-2:]
    future = ~CAUSAL.allowed(queries, keys)
    if not (intent.allowed & future).any():
        yield "future-visible", (intent.base | future) & intent.columns
        yield "future-visible", np.ones_like(intent.base) & intent.columns


def _unfilled_slots(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """The slots of a cache after the newest token, open to every query."""
    _, _, _, queries, keys = arrays.sizes
    if queries < keys and intent.causal and arrays.self_or_cross != "cross":
        ends = keys - np.argmax(intent.keep[:, ::-1], -1)
        slots = np.arange(keys) >= ends[:, None]
        yield "stale-cache", intent.allowed | as_columns(slots)


def _without_window(structure: Structure) -> Structure:
    return dataclasses.replace(structure, lo=None, hi=structure.hi if structure.hi == 0 else None)


def _without_causal(structure: Structure, n: int) -> Structure:
    ways = structure.without_causal()
    return ways[min(n, len(ways) - 1)] if structure.causal else structure


def _with_shifted_end(structure: Structure, n: int) -> Structure:
    return structure.shifted_ends()[n]


def _one_document(structure: Structure) -> Structure:
    return dataclasses.replace(structure, starts=(), chunk=0)


def _omissions(structures: tuple[Structure, ...]) -> Iterator[Callable[[Structure], Structure]]:
    if any(one.starts or one.chunk for one in structures):
        yield _one_document
    for n in range(max((len(one.without_causal()) for one in structures if one.causal), default=0)):
        yield partial(_without_causal, n=n)


def _misplaced_causal(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """The triangle in the wrong place, or where none belongs; windows of the wrong width."""
    _, _, _, queries, keys = arrays.sizes
    diagonal = np.eye(queries, keys, keys - queries, dtype=bool)
    if queries < keys and intent.causal:
        yield "top-left-causal", _changed(arrays, intent, lambda one: one, shift=0)
    if (queries == keys and arrays.self_or_cross != "cross") or (queries < keys and intent.causal):
        yield "diagonal-blocked", intent.allowed & ~diagonal
    yield from _unwanted_causal(arrays, intent)
    for n in range(max((len(one.shifted_ends()) for one in intent.structures), default=0)):
        ends = [one.shifted_ends() for one in intent.structures]
        if all(len(one) > n for one in ends):
            yield "window-off-by-one", _changed(arrays, intent, partial(_with_shifted_end, n=n))
    if any(one.lo is not None for one in intent.structures):
        yield "window-missing", _changed(arrays, intent, _without_window)


def _unwanted_causal(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """A triangle where the intent is not causal."""
    _, _, _, queries, keys = arrays.sizes
    if intent.causal:
        return
    code = {"self": "over-blocked", "cross": "causal-on-cross"}.get(arrays.self_or_cross, "")
    for shift in dict.fromkeys((0, keys - queries)):
        triangle = intent.allowed & CAUSAL.allowed(queries, keys, shift)
        if queries < keys and shift == 0 and code != "causal-on-cross" and (queries == 1 or not intent.binding):
            yield "top-left-causal", triangle
        yield code or ("over-blocked" if queries == keys else "causal-on-cross"), triangle
        if not code and queries == keys:
            yield "causal-on-cross", triangle


def _joined(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """A triangle where none belongs, or in the wrong place, together with visible padding: two codes, joined by +."""
    if intent.padded:
        for code, allowed in _misplaced_causal(arrays, dataclasses.replace(intent, keep=np.ones_like(intent.keep))):
            yield f"{code}+padding-visible", allowed


def _wrong_padding(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """The padding of the other sentence, of another sample, or along the wrong axis."""
    b, _, _, queries, keys = arrays.sizes
    keep = intent.keep
    if arrays.query_keep is not None:
        for rest in (True, False):
            swapped = np.full((b, keys), rest)
            swapped[:, : min(queries, keys)] = arrays.query_keep[:, :keys]
            yield "padding-swapped", intent.base & as_columns(swapped)
    if b == queries and b > 1:
        yield "wrong-axis", intent.base & keep[None, None, None]
    if queries == keys:
        yield "wrong-axis", intent.base & keep[:, None, None, :, None]
    for sample in range(b if b > 1 else 0):
        yield "wrong-axis", intent.base & as_columns(keep[sample : sample + 1])


def _shifted(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """The boundary of the padding, or of the documents, one or two tokens away."""
    _, _, _, _, keys = arrays.sizes
    for step in (1, -1, 2, -2):
        if intent.padded or step < 0:
            moved = np.roll(intent.keep, step, -1)
            for edge in (True, False):
                ends = slice(0, step) if step > 0 else slice(step, None)
                moved[:, ends] = intent.keep[:, ends] if edge else moved[:, ends] & intent.keep[:, ends] & (step > 0)
                if moved.any(-1).all():
                    yield "mask-shifted", intent.base & as_columns(moved)
        if any(one.starts for one in intent.structures):
            yield "mask-shifted", _changed(arrays, intent, partial(_with_moved_starts, step=step, keys=keys))


def _with_moved_starts(structure: Structure, step: int, keys: int) -> Structure:
    starts = tuple(start + step for start in structure.starts if 0 < start + step < keys)
    return dataclasses.replace(structure, starts=starts)


def _other_samples(arrays: Arrays, evidence: Evidence, intent: Intent) -> Iterator[Hypothesis]:
    """The padding of another sample for each, as the weights show it: the batch in another order."""
    rows = evidence.informative_rows[..., None]
    attended = (evidence.nonzero & rows).any((1, 2, 3))
    same = (attended[:, None] == intent.keep[None]).all(-1)
    order = np.argmax(same, -1)
    if same.any(-1).all() and not np.diag(same).all() and len(set(map(bytes, intent.keep[order]))) > 1:
        yield "sample-order", intent.base & as_columns(intent.keep[order])


def _wrong_head_order(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """(N*H, ...) filled or read in the wrong order."""
    b, _, heads, _, _ = arrays.sizes
    if b < 2 or heads < 2:
        return
    index = np.arange(b)[:, None] * heads + np.arange(heads)[None, :]
    for sample in (index % b, (np.arange(heads)[None, :] * b + np.arange(b)[:, None]) // heads):
        yield "head-order", intent.base & intent.keep[sample][:, None, :, None, :]


def _inverted(arrays: Arrays, intent: Intent) -> Iterator[Hypothesis]:
    """The whole mask, its padding, or its structure inverted; tril and triu exchanged."""
    _, _, _, queries, keys = arrays.sizes
    yield "inverted", ~intent.allowed
    if intent.causal and queries == keys:
        yield "inverted", np.swapaxes(intent.base, -1, -2) & intent.columns
    if intent.padded:
        yield "inverted", intent.base & ~intent.columns
        yield "inverted", ~intent.base & intent.columns


def _holes(arrays: Arrays, evidence: Evidence, intent: Intent) -> Iterator[Hypothesis]:
    """Columns that no query attends to although they lie inside the sentence, unless their scores are reason enough."""
    rows = evidence.informative_rows[..., None]
    certain_cells = rows & ~evidence.maybe_underflow if evidence.from_scores else rows
    attended = (evidence.nonzero & rows).any(-2)
    each = ~attended & intent.allowed.any(-2) & certain_cells.any(-2)
    certain = intent.binding or arrays.key_keep is not None
    for unseen in (each.all((1, 2), keepdims=True), each.all(2, keepdims=True)):
        samples = unseen.reshape(-1, unseen.shape[-1])
        keeps = np.broadcast_to(intent.keep[:, None, None], unseen.shape).reshape(samples.shape)
        if samples.any() and all(_is_hole(one, keep, certain) for one, keep in zip(samples, keeps, strict=True)):
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
