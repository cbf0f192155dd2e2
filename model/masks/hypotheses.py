"""The masks that each known mistake would have put in the place of the mask that was meant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from .arrays import Arrays, expand_to_columns
from .evidence import Evidence
from .intent import IntendedMask, stack_structures
from .structure import CAUSAL, Structure, recognise_structure

# A diagnosis compares what took effect with these masks. Every generator yields (code, allowed), ``allowed`` being
# (B, L, H, Q, K) bool with axes possibly 1.


Hypothesis = tuple[str, np.ndarray]
"""A code, and the mask that this mistake would have put in force."""


def generate_hypotheses(arrays: Arrays, evidence: Evidence, intent: IntendedMask) -> Iterator[Hypothesis]:
    """Yield every mistake worth trying, the most common first among those that would look the same."""
    yield from _omit_mask_parts(arrays, intent)
    yield from _misplace_causal(arrays, intent)
    yield from generate_layer_patterns(arrays, evidence, intent)
    yield from _misplace_padding(arrays, intent)
    yield from _reorder_heads(arrays, intent)
    yield from _invert_parts(arrays, intent)
    yield from _shift_boundaries(arrays, intent)
    yield from _reorder_samples(arrays, evidence, intent)
    yield from _misplace_causal_without_padding(arrays, intent)
    yield from _block_unseen_columns(arrays, evidence, intent)


def _change_structures(
    arrays: Arrays, intent: IntendedMask, change: Callable[[Structure], Structure], shift: int | None = None
) -> np.ndarray:
    """Return the mask of the intent with the structure of every sample changed."""
    _, _, _, queries, keys = arrays.sizes
    return stack_structures([change(one) for one in intent.structures], queries, keys, shift) & intent.columns


def _omit_mask_parts(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """A whole part of the mask left out."""
    if intent.has_padding:
        yield from _open_unfilled_slots(arrays, intent)
        yield "padding-visible", intent.base
    for change in _list_omissions(intent.structures):
        code = "document-leak" if change is _join_documents else "future-visible"
        yield code, _change_structures(arrays, intent, change)
    if not intent.structures:
        yield from _open_future_by_layer(intent)
    if not intent.allowed.all():
        yield "mask-ignored", np.ones_like(intent.allowed)


def _open_future_by_layer(intent: IntendedMask) -> Iterator[Hypothesis]:
    """The future open in layers or heads that differ, with their windows or without."""
    queries, keys = intent.base.shape[-2:]
    future = ~CAUSAL.build_mask(queries, keys)
    if not (intent.allowed & future).any():
        yield "future-visible", (intent.base | future) & intent.columns
        yield "future-visible", np.ones_like(intent.base) & intent.columns


def _open_unfilled_slots(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The slots of a cache after the newest token, open to every query."""
    _, _, _, queries, keys = arrays.sizes
    if queries < keys and intent.causal and arrays.self_or_cross != "cross":
        ends = keys - np.argmax(intent.keep[:, ::-1], -1)
        slots = np.arange(keys) >= ends[:, None]
        yield "stale-cache", intent.allowed | expand_to_columns(slots)


def _remove_window(structure: Structure) -> Structure:
    return dataclasses.replace(structure, lo=None, hi=structure.hi if structure.hi == 0 else None)


def _remove_causal(structure: Structure, n: int) -> Structure:
    ways = structure.drop_causal()
    return ways[min(n, len(ways) - 1)] if structure.causal else structure


def _shift_window_end(structure: Structure, n: int) -> Structure:
    return structure.shifted_ends()[n]


def _join_documents(structure: Structure) -> Structure:
    return dataclasses.replace(structure, starts=(), chunk=0)


def _list_omissions(structures: tuple[Structure, ...]) -> Iterator[Callable[[Structure], Structure]]:
    if any(one.starts or one.chunk for one in structures):
        yield _join_documents
    for n in range(max((len(one.drop_causal()) for one in structures if one.causal), default=0)):
        yield partial(_remove_causal, n=n)


def _misplace_causal(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The triangle in the wrong place, or where none belongs; windows of the wrong width."""
    _, _, _, queries, keys = arrays.sizes
    diagonal = np.eye(queries, keys, keys - queries, dtype=bool)
    if queries < keys and intent.causal:
        yield "top-left-causal", _change_structures(arrays, intent, lambda one: one, shift=0)
    if (queries == keys and arrays.self_or_cross != "cross") or (queries < keys and intent.causal):
        yield "diagonal-blocked", intent.allowed & ~diagonal
    yield from _add_causal(arrays, intent)
    for n in range(max((len(one.shifted_ends()) for one in intent.structures), default=0)):
        ends = [one.shifted_ends() for one in intent.structures]
        if all(len(one) > n for one in ends):
            yield "window-off-by-one", _change_structures(arrays, intent, partial(_shift_window_end, n=n))
    if any(one.lo is not None for one in intent.structures):
        yield "window-missing", _change_structures(arrays, intent, _remove_window)


def _add_causal(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """A triangle where the intent is not causal."""
    _, _, _, queries, keys = arrays.sizes
    if intent.causal:
        return
    code = {"self": "over-blocked", "cross": "causal-on-cross"}.get(arrays.self_or_cross, "")
    for shift in dict.fromkeys((0, keys - queries)):
        triangle = intent.allowed & CAUSAL.build_mask(queries, keys, shift)
        if queries < keys and shift == 0 and code != "causal-on-cross" and (queries == 1 or not intent.binding):
            yield "top-left-causal", triangle
        yield code or ("over-blocked" if queries == keys else "causal-on-cross"), triangle
        if not code and queries == keys:
            yield "causal-on-cross", triangle


def _misplace_causal_without_padding(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """A triangle where none belongs, or in the wrong place, together with visible padding: two codes, joined by +."""
    if intent.has_padding:
        for code, allowed in _misplace_causal(arrays, dataclasses.replace(intent, keep=np.ones_like(intent.keep))):
            yield f"{code}+padding-visible", allowed


def _misplace_padding(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The padding of the other sentence, of another sample, or along the wrong axis."""
    b, _, _, queries, keys = arrays.sizes
    keep = intent.keep
    if arrays.query_keep is not None:
        for rest in (True, False):
            swapped = np.full((b, keys), rest)
            swapped[:, : min(queries, keys)] = arrays.query_keep[:, :keys]
            yield "padding-swapped", intent.base & expand_to_columns(swapped)
    if b == queries and b > 1:
        yield "wrong-axis", intent.base & keep[None, None, None]
    if queries == keys:
        yield "wrong-axis", intent.base & keep[:, None, None, :, None]
    for sample in range(b if b > 1 else 0):
        yield "wrong-axis", intent.base & expand_to_columns(keep[sample : sample + 1])


def _shift_boundaries(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The boundary of the padding, or of the documents, one or two tokens away."""
    _, _, _, _, keys = arrays.sizes
    for step in (1, -1, 2, -2):
        if intent.has_padding or step < 0:
            moved = np.roll(intent.keep, step, -1)
            for edge in (True, False):
                ends = slice(0, step) if step > 0 else slice(step, None)
                moved[:, ends] = intent.keep[:, ends] if edge else moved[:, ends] & intent.keep[:, ends] & (step > 0)
                if moved.any(-1).all():
                    yield "mask-shifted", intent.base & expand_to_columns(moved)
        if any(one.starts for one in intent.structures):
            yield (
                "mask-shifted",
                _change_structures(arrays, intent, partial(_move_document_starts, step=step, keys=keys)),
            )


def _move_document_starts(structure: Structure, step: int, keys: int) -> Structure:
    starts = tuple(start + step for start in structure.starts if 0 < start + step < keys)
    return dataclasses.replace(structure, starts=starts)


def _reorder_samples(arrays: Arrays, evidence: Evidence, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The padding of another sample for each, as the weights show it: the batch in another order."""
    rows = evidence.informative_rows[..., None]
    attended = (evidence.nonzero & rows).any((1, 2, 3))
    same = (attended[:, None] == intent.keep[None]).all(-1)
    order = np.argmax(same, -1)
    if same.any(-1).all() and not np.diag(same).all() and len(set(map(bytes, intent.keep[order]))) > 1:
        yield "sample-order", intent.base & expand_to_columns(intent.keep[order])


def _reorder_heads(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """(N*H, ...) filled or read in the wrong order."""
    b, _, heads, _, _ = arrays.sizes
    if b < 2 or heads < 2:
        return
    index = np.arange(b)[:, None] * heads + np.arange(heads)[None, :]
    for sample in (index % b, (np.arange(heads)[None, :] * b + np.arange(b)[:, None]) // heads):
        yield "head-order", intent.base & intent.keep[sample][:, None, :, None, :]


def _invert_parts(arrays: Arrays, intent: IntendedMask) -> Iterator[Hypothesis]:
    """The whole mask, its padding, or its structure inverted; tril and triu exchanged."""
    _, _, _, queries, keys = arrays.sizes
    yield "inverted", ~intent.allowed
    if intent.causal and queries == keys:
        yield "inverted", np.swapaxes(intent.base, -1, -2) & intent.columns
    if intent.has_padding:
        yield "inverted", intent.base & ~intent.columns
        yield "inverted", ~intent.base & intent.columns


def _block_unseen_columns(arrays: Arrays, evidence: Evidence, intent: IntendedMask) -> Iterator[Hypothesis]:
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


# Masks of the right kinds in the wrong layers or heads, and patterns that have lost their global tokens.


_LAYER_PATTERN_CODE = "wrong-layer-pattern"


def generate_layer_patterns(
    arrays: Arrays, evidence: Evidence, intent: IntendedMask
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (code, allowed): layers, then heads, that follow the mask meant for another; lost global tokens.

    ``allowed`` is (B, L, H, Q, K) bool, axes possibly 1.
    """
    for axis in (1, 2):
        if arrays.sizes[axis] > 1 and intent.allowed.shape[axis] > 1:
            yield from _exchange_masks(evidence, intent.allowed, axis)
    if not intent.structures:
        same = (intent.base == intent.base[:1]).all()
        for base in _remove_global_tokens(intent.base[:1] if same else intent.base):
            yield _LAYER_PATTERN_CODE, base & intent.columns
    elif any(one.sinks for one in intent.structures):
        without = [dataclasses.replace(one, sinks=0) for one in intent.structures]
        yield _LAYER_PATTERN_CODE, stack_structures(without, *arrays.sizes[3:]) & intent.columns


def _exchange_masks(evidence: Evidence, allowed: np.ndarray, axis: int) -> Iterator[tuple[str, np.ndarray]]:
    """Put in the place of each layer's (``axis`` 1) or head's (2) mask the first meant for another that it follows."""
    units = [np.take(allowed, [at], axis) for at in range(allowed.shape[axis])]
    distinct = [one for at, one in enumerate(units) if not any((one == other).all() for other in units[:at])]
    if len(distinct) == 1:
        return
    taken = []
    for at, own in enumerate(units):
        follows = (one for one in (own, *distinct) if _is_mask_followed(evidence, one, at, axis))
        taken.append(next(follows, own))
    found = np.concatenate(taken, axis)
    if (found != allowed).any():
        yield _LAYER_PATTERN_CODE, found


def _is_mask_followed(evidence: Evidence, allowed: np.ndarray, at: int, axis: int) -> bool:
    """Whether the weights of one layer or head, in rows that show a mask, lie on all ``allowed`` cells and no other."""
    nonzero, rows = (np.take(one, [at], axis) for one in (evidence.nonzero, evidence.informative_rows))
    underflow = np.take(np.broadcast_to(evidence.maybe_underflow, evidence.nonzero.shape), [at], axis)
    live = (rows & allowed.any(-1))[..., None]
    stray, gaps = nonzero & ~allowed, allowed & ~nonzero & ~underflow
    return not ((stray | gaps) & live).any()


def _remove_global_tokens(base: np.ndarray) -> Iterator[np.ndarray]:
    """Yield a mask (B, L, H, Q, K) without its global queries and keys: both, the queries alone, the keys alone.

    Global tokens see every key that any token may see, and are seen by every query; the rest is a band.
    """
    grids = base.reshape(-1, *base.shape[-2:])
    parts = [_split_global_tokens(grid) for grid in grids]
    known = [part for part in parts if part is not None]
    if not known:
        return
    for with_queries, with_keys in ((False, False), (False, True), (True, False)):
        lost = [
            grid if part is None else part[0] | (grid & part[1] & with_queries) | (grid & part[2] & with_keys)
            for grid, part in zip(grids, parts, strict=True)
        ]
        yield np.stack(lost).reshape(base.shape)


def _split_global_tokens(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the band of (Q, K), the rows of global queries and the columns of global keys; None without any."""
    widest = CAUSAL.build_mask(*grid.shape)
    widest = widest if not (grid & ~widest).any() else np.ones_like(grid)
    queries = (grid | ~widest).all(1)
    keys = (grid | ~widest).all(0)
    local = ~queries[:, None] & ~keys[None, :]
    structure = recognise_structure(grid, local) if local.any() else None
    if structure is None:
        return None
    band = structure.build_mask(*grid.shape) & widest
    if (band & ~grid).any() or not (grid & ~band).any():
        return None
    return band, np.broadcast_to(queries[:, None], grid.shape), np.broadcast_to(keys[None, :], grid.shape)


# Positions that count the padding in front of a sentence, read off the position ids.


def find_counted_padding(arrays: Arrays) -> np.ndarray | None:
    """Return (B, K) bool: real tokens whose positions count the padding at their left; None where there are none.

    A sample is compared with those that have less padding: the first real token of each should have the same position,
    whatever the model counts from. Without another sample two pads or more must be counted one by one, since a single
    pad may be the position kept for padding.
    """
    positions, keep = arrays.position_ids, arrays.key_keep
    if positions is None or keep is None:
        return None
    pads = np.argmax(keep, -1)
    first = np.take_along_axis(positions, pads[:, None], 1)[:, 0]
    counted = np.array([_is_counting_up(row, count) for row, count in zip(positions, pads, strict=True)])
    fewer = pads[None, :] < pads[:, None]
    late = first[:, None] - first[None, :] == pads[:, None] - pads[None, :]
    same = first[:, None] == first[None, :]
    wrong = counted & np.where(fewer.any(1), (fewer & late).any(1) & ~(fewer & same).any(1), pads > 1)
    return keep & wrong[:, None] if wrong.any() else None


def _is_counting_up(positions: np.ndarray, pads: int) -> bool:
    """Whether ``pads`` positions in front of the first real one lead up to it in steps of one."""
    return pads > 0 and bool((np.diff(positions[: pads + 1]) == 1).all())
