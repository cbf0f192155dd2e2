"""The mask that was meant: stated by name, given as an array, or proposed from the mask and the weights."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ..language import join_items, say
from .arrays import Arrays, broadcast_key_mask
from .evidence import Evidence
from .rule import build_layer_masks, build_meaning_mask, parse_meaning, split_layer_meanings
from .softmax import find_position_restarts
from .structure import CAUSAL, FULL, Structure, recognise_structure


@dataclass(frozen=True, eq=False)
class IntendedMask:
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
    layer_structures: tuple[Structure, ...] = ()
    """One for each layer, where they were stated in turn."""

    @property
    def columns(self) -> np.ndarray:
        """(B, 1, 1, 1, K) bool: ``keep``, able to broadcast to the weights."""
        return broadcast_key_mask(self.keep)

    @property
    def allowed(self) -> np.ndarray:
        """(B, L, H, Q, K) bool, axes may be 1: the whole mask, True = may attend."""
        return self.base & self.columns if self.has_padding else self.base

    @property
    def causal(self) -> bool:
        """Whether it hides the future of any sample."""
        return any(one.causal for one in self.structures)

    @property
    def has_padding(self) -> bool:
        """Whether any key is padding."""
        return not self.keep.all()

    def count_blocking_reasons(self, units: np.ndarray) -> int:
        """Return how many kinds of cells it blocks in ``units`` (B, L, H): padding, future, far ones, documents."""
        kinds = [any(getattr(one, name) is not None for one in self.structures) for name in ("lo", "hi")]
        if not self.structures:
            later = ~CAUSAL.build_mask(*self.base.shape[-2:])
            closed = ~self.allowed & self.columns & units[..., None, None]
            kinds = [bool((closed & side).any()) for side in (~later, later)]
        return sum(kinds) + self.has_padding + any(one.starts for one in self.structures)


def stack_structure_masks(
    structures: Sequence[Structure], queries: int, keys: int, shift: int | None = None
) -> np.ndarray:
    """Return (B, 1, 1, Q, K) bool, True = may attend, of one structure for each sample."""
    # Many samples of a batch are alike; those whose chunks count from elsewhere are not, though they compare equal.
    kinds = {(one, one.origin): one for one in structures}
    masks = {kind: one.build_mask(queries, keys, shift) for kind, one in kinds.items()}
    if len(structures) == 1:
        return masks.popitem()[1][None, None, None]
    return np.stack([masks[one, one.origin] for one in structures])[:, None, None]


def fill_keep_mask_gaps(keep: np.ndarray) -> np.ndarray:
    """Return (B, K): True from the first to the last True of each sample."""
    before = np.maximum.accumulate(keep, -1)
    after = np.maximum.accumulate(keep[:, ::-1], -1)[:, ::-1]
    return before & after


def find_padding_between_segments(keep: np.ndarray) -> np.ndarray:
    """Return (B, K): padding between two segments of a row, such as a text and an image after it.

    One run of padding a sample, two keys long somewhere, that ends in the same place in all samples that have one, or
    begins there: the end of the first segment, or the start of the second.
    """
    holes = fill_keep_mask_gaps(keep) & ~keep
    runs = [np.flatnonzero(np.diff(np.pad(row.astype(int), 1))) for row in holes[holes.any(-1)]]
    if not runs or any(len(run) != 2 for run in runs):
        return np.zeros_like(holes)
    starts, ends = np.transpose(runs)
    shared = len(set(starts.tolist())) == 1 or len(set(ends.tolist())) == 1
    return holes if shared and (ends - starts).max() > 1 else np.zeros_like(holes)


def build_intent_from_structures(
    structures: tuple[Structure, ...], keep: np.ndarray, queries: int, sure: float, binding: bool
) -> IntendedMask:
    """Return an intent from one structure for each sample, or one for all."""
    samples, keys = keep.shape
    each = structures * samples if len(structures) == 1 else structures
    base = stack_structure_masks(each, queries, keys)
    words = " / ".join(dict.fromkeys(one.words() for one in dict.fromkeys(each)))
    words = words if keep.all() else say("{mask}, without padding", mask=words)
    return IntendedMask(base, keep, each, words, sure, binding, np.zeros((samples, queries), bool))


def build_intent_from_name(arrays: Arrays, name: str, keep: np.ndarray) -> IntendedMask:
    """Return what a meaning states for the real keys ``keep`` (B, K): chunks count from the first, layers in turn.

    Raises ValueError for a name that is none, or that names more layers than there are.
    """
    _, layers, _, queries, keys = arrays.sizes
    parts = split_layer_meanings(name)
    structures = [parse_meaning(part) for part in parts]
    if len(parts) == 1 and structures[0] is not None:
        return build_intent_from_structures(
            _align_structure_per_sample(structures[0], arrays, keep), keep, queries, 1.0, True
        )
    build_layer_masks(name, layers, 1, 1)  # raises where the layers do not fit
    each = [
        stack_structure_masks(_align_structure_per_sample(structure, arrays, keep), queries, keys)
        if structure is not None
        else build_meaning_mask(part, queries, keys)[None, None, None]
        for part, structure in zip(parts, structures, strict=True)
    ]
    samples = max(len(one) for one in each)
    each = [np.broadcast_to(one, (samples, *one.shape[1:])) for one in each]
    base = np.concatenate([each[layer % len(each)] for layer in range(layers if len(parts) > 1 else 1)], 1)
    found = _recognise_sample_structures(np.broadcast_to(base, (len(keep), *base.shape[1:])), keep)
    if found:
        return build_intent_from_structures(found, keep, queries, 1.0, True)
    known = [one for one in structures if one is not None]
    each_layer = [known[layer % len(known)] for layer in range(layers)] if len(known) == len(parts) else []
    words = unit_structures_text(each_layer, (layers, 1)) if each_layer else say("a mask of its own kind")
    words = words if keep.all() else say("{mask}, without padding", mask=words)
    keyless = np.zeros((len(keep), queries), bool)
    return IntendedMask(base, keep, (), words, 1.0, True, keyless, tuple(each_layer))


def _align_structure_per_sample(structure: Structure, arrays: Arrays, keep: np.ndarray) -> tuple[Structure, ...]:
    """Return the structure for each sample: at the newest key that is filled, chunks from the first that is real."""
    aligned = _align_to_newest_key(structure, keep, arrays.sizes[3])
    return tuple(aligned.copy_with_chunk_start(int(first)) for first in np.argmax(keep, -1))


def build_intent_from_array(arrays: Arrays, allowed: np.ndarray, sure: float) -> IntendedMask:
    """Return an intent from (B, L, H, Q, K) booleans, axes possibly 1, with its structure where it has one."""
    b, _, _, queries, keys = arrays.sizes
    if arrays.key_keep is None and queries < keys and (window := _recognise_window(allowed)) is not None:
        return build_intent_from_structures((window,), np.ones((b, keys), bool), queries, sure, True)
    keep = _find_allowed_keys(allowed, b, keys)
    keep = keep if arrays.key_keep is None else keep & arrays.key_keep
    allowed = np.broadcast_to(allowed, (b, *allowed.shape[1:3], queries, keys))
    structures = _recognise_sample_structures(allowed, keep)
    if structures:
        intent = build_intent_from_structures(structures, keep, queries, sure, True)
        keyless = intent.allowed.any((1, 2, 4)) & ~np.asarray(allowed.any((1, 2, 4)))
        return dataclasses.replace(intent, keyless_queries=np.asarray(keyless))
    base = allowed | ~broadcast_key_mask(keep)
    return IntendedMask(base, keep, (), say("a mask of its own kind"), sure, True, np.zeros((b, queries), bool))


def _recognise_window(allowed: np.ndarray) -> Structure | None:
    """Return the causal window, or chunk, of fewer queries than keys whose closed keys are no padding, or None.

    All samples, layers and heads share it, and the newest key is open; padding of one length would look the same.
    """
    grids = allowed.reshape(-1, *allowed.shape[-2:])
    grid = grids[0]
    if not grid[-1, -1] or grid[:, 0].any() or not (grids == grid).all():
        return None
    found = recognise_structure(grid, np.ones_like(grid))
    if found is None or (found.lo is None and not found.chunk):
        return None
    found = dataclasses.replace(found, hi=0)
    return found if np.array_equal(found.build_mask(*grid.shape), grid) else None


def find_real_keys(arrays: Arrays, self_or_cross: str = "") -> np.ndarray:
    """Return (B, K): the keys that are real as far as the arrays say; all of them when they say nothing.

    ``self_or_cross`` is the kind of attention where what was meant says more of it than the arrays.
    """
    b, _, _, _, keys = arrays.sizes
    if arrays.key_keep is not None:
        return arrays.key_keep
    if arrays.meant is not None:
        return _find_allowed_keys(arrays.meant, b, keys)
    if arrays.mask is not None and not is_top_left_causal(arrays.mask, self_or_cross or arrays.self_or_cross):
        return _find_allowed_keys(arrays.mask, b, keys)
    return np.ones((b, keys), bool)


def contradicts_padding(arrays: Arrays, mask: np.ndarray) -> bool:
    """Whether a mask (B, L, H, Q, K; axes may be 1) leaves some real query nothing but padding, by ``key_keep``."""
    if arrays.key_keep is None:
        return False
    columns = broadcast_key_mask(arrays.key_keep)
    emptied = mask.any(-1) & ~(mask & columns).any(-1) & columns.any(-1)
    return bool((emptied & arrays.real_queries[:, None, None]).any())


def is_top_left_causal(mask: np.ndarray, self_or_cross: str) -> bool:
    """Whether a mask of fewer queries than keys is causal from the top left: its closed end is no padding then.

    Cross-attention of one query onto one real key looks the same, so the kind must be known for a single query.
    """
    queries, keys = mask.shape[-2:]
    if queries >= keys or self_or_cross == "cross" or (queries == 1 and self_or_cross != "self"):
        return False
    return bool((mask == CAUSAL.build_mask(queries, keys, 0)).all())


def find_attended_keys(evidence: Evidence) -> np.ndarray:
    """Return (B, K): keys between the first and the last that any informative row of any head attends to."""
    nonzero = evidence.nonzero & ~evidence.uniform_nonzero[..., None]
    keys = fill_keep_mask_gaps(nonzero.any((1, 2, 3)))
    return keys | ~keys.any(-1, keepdims=True)


def _find_allowed_keys(allowed: np.ndarray, samples: int, keys: int) -> np.ndarray:
    """Return (B, K): columns that some row of some head may attend to; all of a sample without any."""
    columns = allowed.any((1, 2, 3))
    columns = columns | ~columns.any(-1, keepdims=True)
    return np.broadcast_to(columns, (samples, keys))


def _recognise_sample_structures(allowed: np.ndarray, keep: np.ndarray) -> tuple[Structure, ...]:
    """Return the structures of the samples where all heads and layers share them, else ()."""
    if allowed.shape[1:3] != (1, 1) and not (allowed == allowed[:, :1, :1]).all():
        return ()
    grids = allowed[:, 0, 0]
    columns = np.broadcast_to(keep[:, None, :], grids.shape)
    used = np.asarray(grids.any(-1))
    for where in (columns, *([] if used.all() else [columns & used[:, :, None]])):
        if structures := recognise_structures(grids, where):
            return structures
    return ()


def recognise_structures(grids: np.ndarray, where: np.ndarray) -> tuple[Structure, ...]:
    """Return one structure for each of (B, Q, K) grids, or one for all, that agrees with them where ``where`` is True.

    () where a sample follows none. A sample without an allowed cell follows any.
    """
    # Many samples of a batch are alike, and each kind is looked at once. No np.unique: it gives each byte a field.
    of_kinds: dict[tuple[bytes, bytes], Structure | None] = {}
    found = []
    for grid, judged in zip(grids, where, strict=True):
        kind = (np.packbits(grid & judged).tobytes(), np.packbits(judged).tobytes()) if len(grids) > 1 else (b"", b"")
        if kind not in of_kinds:
            of_kinds[kind] = recognise_structure(grid, judged)
        found.append(of_kinds[kind])
    if len(of_kinds) == 1:
        return () if found[0] is None and (grids[0] & where[0]).any() else (found[0] or FULL,)
    for structure in dict.fromkeys(one for one in found if one is not None):
        same = structure.build_mask(*grids.shape[1:])
        if ((same & where) == (grids & where)).all():
            return (structure,)
    empty = ~(grids & where).any((1, 2))
    each = [FULL if nothing else structure for structure, nothing in zip(found, empty, strict=True)]
    known = tuple(structure for structure in each if structure is not None)
    return known if len(known) == len(each) else ()


# Where an intent comes from: a name, an array, the kind of the map, or else the mask and the weights themselves.


def find_stated_intent(arrays: Arrays, name: str | None) -> IntendedMask | None:
    """Return what was stated: by name, as an array, or by the kind of the map together with its mask; else None."""
    if name is not None:
        structures = [parse_meaning(part) for part in split_layer_meanings(name)]
        causal = all(one is not None and one.causal for one in structures)
        return build_intent_from_name(arrays, name, find_real_keys(arrays, "self" if causal else ""))
    if arrays.meant is not None:
        return build_intent_from_array(arrays, arrays.meant, 1.0)
    if arrays.map:
        return _find_usual_intent_for_kind(arrays)
    return None


def find_intent_with_edge_padding(arrays: Arrays, evidence: Evidence, name: str | None) -> IntendedMask | None:
    """Return what a name states, for the keys that have weight: those at the ends that have none may be padding.

    None where the padding is known, where every key has weight, where ``full`` says that all are meant, and where a
    query newer than all keys with weight could not see itself.
    """
    known = arrays.key_keep is not None or arrays.mask is not None
    if name is None or known or "full" in re.split(r"[\s+/]+", name.lower()):
        return None
    keep = find_attended_keys(evidence)
    return (
        None
        if keep.all() or not _can_newest_query_see_itself(arrays, name, keep)
        else build_intent_from_name(arrays, name, keep)
    )


def find_intent_with_initial_padding(arrays: Arrays, evidence: Evidence, name: str | None) -> IntendedMask | None:
    """Return what a causal name states for the keys that no first query sees, and every later one: padding.

    So it looks where the padding mask is given to the prompt and not to the cached steps.
    """
    known = arrays.key_keep is not None or arrays.mask is not None or arrays.sizes[3] != arrays.sizes[4]
    if (
        name is None
        or known
        or any(one is None or one.hi != 0 for one in map(parse_meaning, split_layer_meanings(name)))
    ):
        return None
    keep = ~find_initially_hidden_keys(evidence)
    return None if keep.all() else build_intent_from_name(arrays, name, keep)


def find_initially_hidden_keys(evidence: Evidence) -> np.ndarray:
    """Return (B, K): first keys of a sample that all queries see from one on, and none of at least two before it."""
    seen = np.asarray(evidence.nonzero.any((1, 2))) & np.asarray(evidence.informative_rows.any((1, 2)))[..., None]
    samples, _, keys = seen.shape
    late = np.zeros((samples, keys), bool)
    first = np.where(seen.any(1), np.argmax(seen, 1), keys)
    for sample, (start, *_) in enumerate(first):
        count = int(np.argmax(np.append(first[sample] != start, True)))
        before = seen[sample, count:start]
        if start >= count + 2 and start < keys and before.any(1).sum() >= 2 and seen[sample, start:, :count].all():
            late[sample, :count] = True
    return late


def _can_newest_query_see_itself(arrays: Arrays, name: str, keep: np.ndarray) -> bool:
    """Whether the newest query could see its own key, where it is newer than others: a causal name needs it."""
    _, _, _, queries, keys = arrays.sizes
    causal = any(one is not None and one.causal for one in map(parse_meaning, split_layer_meanings(name)))
    return not causal or queries >= keys or bool(keep[:, -1].all())


def _find_usual_intent_for_kind(arrays: Arrays) -> IntendedMask:
    """Return what is usual on a map of this kind, or its own mask where that is a case of the usual."""
    _, _, _, queries, keys = arrays.sizes
    usual = CAUSAL if arrays.map == "decoder" else FULL
    if arrays.mask is not None and not _is_mask_refuted(arrays, arrays.mask):
        own = build_intent_from_array(arrays, arrays.mask, 0.9)
        narrower = (own.base <= usual.build_mask(queries, keys)).all()
        if all(
            _is_usual_structure(arrays.map, one) and (narrower or opens_future(one, keys)) for one in own.structures
        ):
            return own
    keep = find_real_keys(arrays)
    return build_intent_from_structures((_align_to_newest_key(usual, keep, queries),), keep, queries, 0.8, True)


def _align_to_newest_key(structure: Structure, keep: np.ndarray, queries: int) -> Structure:
    """Return a causal structure with the newest query at the newest key (B, K) that is filled, as in a static cache."""
    unfilled = np.argmax(keep[:, ::-1], -1)
    slots = int(unfilled[0])
    if structure.hi != 0 or queries >= keep.shape[1] or not slots or (unfilled != slots).any():
        return structure
    return dataclasses.replace(structure, hi=-slots, lo=None if structure.lo is None else structure.lo - slots)


def _is_mask_refuted(arrays: Arrays, mask: np.ndarray) -> bool:
    """Whether a mask cannot be what was meant: it contradicts the padding given, or hides a query's own key."""
    return contradicts_padding(arrays, mask) or is_top_left_causal(mask, arrays.self_or_cross)


def opens_future(structure: Structure, keys: int) -> bool:
    """Whether a causal mask opens the future on purpose: inside spans, or inside a prefix of no more than half."""
    return structure.hi == 0 and (bool(structure.spans or structure.block) or 0 < 2 * structure.prefix <= keys)


def _is_usual_structure(kind: str, structure: Structure) -> bool:
    """Whether such a mask is common on such a map: none causal on an encoder, none at all on cross-attention."""
    if kind == "cross":
        return structure == FULL
    return structure.is_plausible and (kind == "decoder" or structure.hi != 0)


def propose_intents(arrays: Arrays, evidence: Evidence) -> list[IntendedMask]:
    """Return the intents to try when none is stated, the most likely first."""
    _, _, _, queries, _ = arrays.sizes
    if arrays.mask is not None:
        return _propose_from_mask(arrays, arrays.mask)
    keep = find_real_keys(arrays) if arrays.key_keep is not None else find_attended_keys(evidence)
    nonzero = np.asarray(evidence.nonzero.any((1, 2)))
    informative = np.asarray(evidence.informative_rows.any((1, 2)))
    if (documents := _propose_documents_from_positions(arrays, nonzero, keep)) is not None:
        return [documents]
    structures = recognise_structures(nonzero, keep[:, None, :] & informative[:, :, None])
    may_be_causal = _can_be_causal(arrays)
    usual = _propose_usual_intents(arrays, keep)
    if structures and all(
        one.is_plausible and not (one.block or one.tree) and (may_be_causal or not one.causal) for one in structures
    ):
        return [build_intent_from_structures(structures, keep, queries, 0.7, False), *usual]
    return usual


def _propose_documents_from_positions(arrays: Arrays, nonzero: np.ndarray, keep: np.ndarray) -> IntendedMask | None:
    """Return packed documents where positions begin anew inside a sample; ``nonzero`` is (B, Q, K) bool.

    They are causal where no query has weight on a later key.
    """
    samples, _, _, queries, keys = arrays.sizes
    if arrays.position_ids is None or queries != keys:
        return None
    restarts = find_position_restarts(arrays.position_ids)
    if not restarts.any():
        return None
    hi = None if (nonzero & ~CAUSAL.build_mask(queries, keys)).any() else 0
    each = tuple(Structure(hi=hi, starts=tuple(np.flatnonzero(row).tolist())) for row in restarts)
    return build_intent_from_structures(each if samples > 1 else each[:1], keep, queries, 0.7, True)


def _propose_from_mask(arrays: Arrays, mask: np.ndarray) -> list[IntendedMask]:
    """Return the mask given first where it is plausible; one of no known family comes after the usual ones."""
    b, _, _, _, keys = arrays.sizes
    own = build_intent_from_array(arrays, mask, 0.8)
    real = arrays.key_keep if arrays.key_keep is not None else np.ones((b, keys), bool)
    if _is_mask_refuted(arrays, mask):
        return _propose_usual_intents(arrays, real)
    if not own.structures or any(one.block or one.tree for one in own.structures):
        return [*_propose_usual_intents(arrays, real), own]
    if all(one.is_plausible for one in own.structures) and (_can_be_causal(arrays) or not own.causal):
        return [own, *_propose_usual_intents(arrays, find_real_keys(arrays))]
    return _propose_usual_intents(arrays, real)


def _propose_usual_intents(arrays: Arrays, keep: np.ndarray) -> list[IntendedMask]:
    """Return causal (where it can be) and full."""
    _, _, _, queries, _ = arrays.sizes
    kinds = (CAUSAL, FULL) if _can_be_causal(arrays) else (FULL,)
    return [build_intent_from_structures((structure,), keep, queries, 0.4, False) for structure in kinds]


def _can_be_causal(arrays: Arrays) -> bool:
    """Whether there is a diagonal at all: cross-attention has none."""
    return arrays.self_or_cross != "cross"


# Sound masks that the weights themselves follow, and that somebody may mean although they are not the usual ones.
#
# They are looked for over the whole map first, then layer by layer, then head by head: layers alternate between local
# and global attention (Gemma 2), and heads between forward and backward.


_MAX_ODD_PART = 1 / 3
"""Layers or heads that differ from all others are odd where they are no more than this part."""


@dataclass(frozen=True, eq=False)
class AlternativeMask:
    """One reading of the weights as a sound mask."""

    intent: IntendedMask
    odd: np.ndarray | None = None
    """(1, L, H) bool: the few layers or heads that see more, or less, than all the others; None for none."""
    hides_future: bool = False
    """Whether every layer and head hides all that comes after the query."""


def find_alternative_masks(arrays: Arrays, evidence: Evidence, keep: np.ndarray | None) -> Iterator[AlternativeMask]:
    """Yield readings of the weights, for the keys ``keep`` (B, K) or else those that have weight."""
    keep = find_attended_keys(evidence) if keep is None else keep
    samples, layers, heads, queries, keys = arrays.sizes
    for shape in dict.fromkeys(((1, 1), (layers, 1), (layers, heads))):
        units = recognise_unit_structures(evidence, keep, shape)
        if units is None or not _has_plausible_structures(arrays, units):
            continue
        forward = all(one.forward for one in units)
        if len(set(units)) == 1:
            yield AlternativeMask(build_intent_from_structures((units[0],), keep, queries, 0.7, False), None, forward)
            continue
        base = np.stack([one.build_mask(queries, keys) for one in units]).reshape(1, *shape, queries, keys)
        keyless = np.zeros((samples, queries), bool)
        few = _find_odd_direction_units(units)
        if few is None:
            yield AlternativeMask(
                IntendedMask(base, keep, (), unit_structures_text(units, shape), 0.6, False, keyless), None, forward
            )
        else:
            usual = Counter(units).most_common(1)[0][0]
            intent = build_intent_from_structures((usual,), keep, queries, 0.6, False)
            yield AlternativeMask(intent, np.array(few).reshape(1, *shape))


def recognise_unit_structures(evidence: Evidence, keep: np.ndarray, shape: tuple[int, int]) -> list[Structure] | None:
    """Return one structure for each unit of layers x heads (axes of 1 are joined), or None where one has none."""
    axes = tuple(axis for axis, size in zip((1, 2), shape, strict=True) if size == 1)
    nonzero = np.asarray(evidence.nonzero.any(axes, keepdims=True))
    rows = np.asarray(evidence.informative_rows.any(axes, keepdims=True))
    units = []
    for layer in range(shape[0]):
        for head in range(shape[1]):
            where = keep[:, None, :] & rows[:, layer, head, :, None]
            found = set(recognise_structures(nonzero[:, layer, head], where))
            if len(found) != 1:
                return None
            units.append(found.pop())
    return units


def _has_plausible_structures(arrays: Arrays, units: list[Structure]) -> bool:
    """Whether masks of these structures are in use on such a map."""
    if not all(one.is_plausible and not (one.one_key_ahead or one.block or one.tree) for one in units):
        return False
    both_ways = {_classify_attention_direction(one) for one in units} == {"forward", "backward"}
    if arrays.self_or_cross == "cross":
        return all(one == FULL for one in units)
    if arrays.map == "decoder":
        return all(one.hi == 0 and 2 * one.prefix <= arrays.sizes[4] for one in units)
    if arrays.map == "encoder":
        return both_ways or all(one.hi != 0 and not one.anti_causal for one in units)
    return both_ways or not any(one.anti_causal for one in units)


def _classify_attention_direction(structure: Structure) -> str:
    if structure.anti_causal or (structure.lo == 0 and structure.hi is not None):
        return "backward"
    return "forward" if structure.hi == 0 else "both"


def _find_odd_direction_units(units: list[Structure]) -> list[bool] | None:
    """Return which units are the few that look in another direction than the others; None where none does."""
    directions = Counter(map(_classify_attention_direction, units))
    if "backward" in directions or len(directions) == 1:
        return None
    (usual, _), (_, few) = directions.most_common(2)
    return [_classify_attention_direction(one) != usual for one in units] if few <= _MAX_ODD_PART * len(units) else None


def unit_structures_text(units: list[Structure], shape: tuple[int, int]) -> str:
    """Return each structure with the layers or heads that follow it."""
    places: dict[str, list[str]] = {}
    for at, one in enumerate(units):
        layer, head = divmod(at, shape[1])
        place = f"{layer + 1}" if shape[1] == 1 else f"{layer + 1}.{head + 1}" if shape[0] > 1 else f"{head + 1}"
        places.setdefault(one.words(), []).append(place)
    if shape[1] == 1:
        each = (say("{mask} in layer {numbers}", mask=words, numbers=join_items(at)) for words, at in places.items())
    else:
        each = (say("{mask} in head {numbers}", mask=words, numbers=join_items(at)) for words, at in places.items())
    return reduce(lambda one, other: say("{one}; {other}", one=one, other=other), each)
