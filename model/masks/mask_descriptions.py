"""The mask in force in the words of the mask that was meant: one recogniser for both, and its difference by rows."""

from __future__ import annotations

import numpy as np

from ..language import say, say_many, to_say
from .findings import DiagnosisCase
from .index_ranges import format_query_ranges
from .intent import IntendedMask, recognise_unit_structures, unit_structures_text
from .structure import CAUSAL, Structure, recognise_structure

_BOTH_TEXT = to_say("in force: {found}; meant: {meant}")
_ORIGIN_TEXT = to_say("the chunks in force begin at another key: they count the padding, or leave out what is real")
_MOST_UNITS = 64
"""Samples, layers and heads of which masks are recognised."""
_MOST_CELLS, _MOST_ROW_CELLS = 2**20, 2**24
"""Cells of a map up to which groups of keys are looked for, and what wrong rows see among themselves."""


def describe_mask_difference(case: DiagnosisCase, intent: IntendedMask, cells: np.ndarray) -> str:
    """Return ``in force: causal, in chunks of 4; meant: a causal window of 4``, without the end of the sentence.

    ``cells`` (B, L, H, Q, K) are those on which the two differ. Empty where the mask in force has no name.
    """
    found = describe_mask_in_force(case, intent, cells)
    if found == intent.words and any(one.chunk or one.block for one in intent.structures):
        return say(_ORIGIN_TEXT)
    return say(_BOTH_TEXT, found=found, meant=intent.words) if found and found != intent.words else ""


def describe_mask_in_force(case: DiagnosisCase, intent: IntendedMask, cells: np.ndarray) -> str:
    """Return the mask in force in words where units that have such ``cells`` follow one, or one in each layer or head.

    Empty where they do not.
    """
    evidence = case.evidence
    rows = case.rows(intent) & evidence.informative_rows
    underflow = np.broadcast_to(evidence.maybe_underflow, evidence.nonzero.shape)
    known = rows[..., None] & (evidence.nonzero | ~underflow)
    wrong = cells.any(-1) & rows
    words: set[str] = set()
    for sample, layer, head in np.argwhere(wrong.any(-1))[:_MOST_UNITS]:
        unit = sample, layer, head
        columns = np.broadcast_to(intent.columns, (len(wrong), 1, 1, 1, intent.keep.shape[1]))[sample, 0, 0]
        words.add(_describe_unit(evidence.nonzero[unit], known[unit], columns, wrong[unit], intent))
    if len(words) > 1 and "" not in words:
        return _describe_masks_of_layers_or_heads(case, intent, cells)
    return words.pop() if len(words) == 1 else ""


def _describe_masks_of_layers_or_heads(case: DiagnosisCase, intent: IntendedMask, cells: np.ndarray) -> str:
    """Return the masks in force, by layer or else by head, where they explain all ``cells``; else empty."""
    _, layers, heads, queries, keys = case.arrays.sizes
    for shape in ((layers, 1), (layers, heads)):
        units = recognise_unit_structures(case.evidence, intent.keep, shape)
        if units is None:
            continue
        masks = np.stack([one.build_mask(queries, keys) for one in units]).reshape(1, *shape, queries, keys)
        # All heads of a layer together look dense where each leaves out other keys: then its cells tell.
        if not (((masks & intent.columns) ^ case.evidence.nonzero) & cells).any():
            words = unit_structures_text(units, shape)
            return words if intent.keep.all() else say("{mask}, without padding", mask=words)
    return ""


def _describe_unit(
    grid: np.ndarray, known: np.ndarray, columns: np.ndarray, wrong: np.ndarray, intent: IntendedMask
) -> str:
    """Return the mask of one map (Q, K) in words; ``wrong`` (Q,) are the rows that are not as meant."""
    judged = known & columns
    if not (grid & ~columns & known).any() and (words := _describe_grid(grid, judged)):
        return words if columns.all() else say("{mask}, without padding", mask=words)
    if not columns.all() and (words := _describe_grid(grid, known)):
        return words
    return _describe_wrong_rows(grid, known, columns, wrong)


def _describe_grid(grid: np.ndarray, known: np.ndarray) -> str:
    structure = recognise_structure(grid, known)
    if structure is not None:
        return structure.words()
    queries, keys = grid.shape
    if queries != keys and np.array_equal(CAUSAL.build_mask(queries, keys, 0) & known, grid & known):
        return say("causal from the top left")
    return _describe_groups(grid, known)


def _describe_groups(grid: np.ndarray, known: np.ndarray) -> str:
    """Return in words that tokens fall into groups that see themselves alone, as windows of an image do."""
    if grid.shape[0] != grid.shape[1] or grid.size > _MOST_CELLS or not known.all():
        return ""
    first = np.argmax(grid, 1)
    for causal in (False, True):
        number = np.where(grid.any(1), first, -1)
        same = number[:, None] == number[None, :]
        same = np.tril(same) if causal else same
        groups = len(set(number.tolist()))
        if 1 < groups < len(grid) and np.array_equal(grid, same):
            each = say("tokens in {count} groups, each of which sees itself alone", count=groups)
            return say("{mask}, causal", mask=each) if causal else each
    return ""


def _describe_wrong_rows(grid: np.ndarray, known: np.ndarray, columns: np.ndarray, wrong: np.ndarray) -> str:
    """Return in words what the rows that are not as meant see, where they follow one structure among themselves."""
    at = np.flatnonzero(wrong)
    if not at.size or wrong.all() or grid.size > _MOST_ROW_CELLS:
        return ""
    rows = np.zeros_like(wrong)
    rows[at] = True
    for where, padding in ((known & columns, True), (known, False)):
        structure = recognise_structure(grid, where & rows[:, None])
        if structure is not None and not (padding and (grid & ~columns & rows[:, None]).any()):
            return _describe_structure_in_rows(structure, at, len(wrong))
    return ""


def _describe_structure_in_rows(structure: Structure, at: np.ndarray, queries: int) -> str:
    if np.array_equal(at, np.arange(at[0], queries)):
        return say("{mask} from query {number} on", mask=structure.words(), number=int(at[0]) + 1)
    return say("{mask} in {queries}", mask=structure.words(), queries=format_query_ranges(at))


def describe_keys_ahead(count: int, offset: int) -> str:
    """Return in words that a triangle ends ``count`` keys too late; ``offset`` keys stand before the queries."""
    return say_many(
        "queries see up to {count} key ahead, as with tril({found}) in place of tril({meant})",
        "queries see up to {count} keys ahead, as with tril({found}) in place of tril({meant})",
        count,
        found=offset + count,
        meant=offset,
    )


def describe_affected_rows(rows: np.ndarray, judged: np.ndarray) -> str:
    """Return in words that only these ``rows`` (Q,) of those ``judged`` (Q,) are concerned; empty for all of them."""
    at, others = np.flatnonzero(rows), np.flatnonzero(judged & ~rows)
    if not others.size or not at.size:
        return ""
    if at[0] > others[-1]:
        return say("from query {number} on, as where cached steps are not given the mask", number=int(at[0]) + 1)
    return say("in {queries} alone", queries=format_query_ranges(at))
