"""Runs of cells, and queries, keys and layers in words, counted from 1, in ranges: ``1-3, 7``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..language import join_items, say_many

_CELLS_AT_ONCE = 2**19
"""Cells of two grids that are compared at once."""
_MOST_RANGES = 4
"""Ranges that a sentence lists; of more, the last ones are left out."""


def find_runs(cells: np.ndarray) -> list[tuple[int, int]]:
    """Return the first and one past the last of each run of True in (K,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]])))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def find_differing_rows(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return (..., Q) bool: rows of two grids (..., Q, K) that differ somewhere; axes may be 1.

    A part of the rows after the other, in the same memory.
    """
    queries = max(one.shape[-2], other.shape[-2])
    size = max(1, _CELLS_AT_ONCE * queries // max(one.size, other.size))
    parts = []
    for first in range(0, queries, size):
        at = slice(first, first + size)
        some, others = (grid[..., at, :] if grid.shape[-2] > 1 else grid for grid in (one, other))
        parts.append((some ^ others).any(-1))
    return np.concatenate(parts, -1)


def format_index_ranges(indices: Sequence[int] | np.ndarray, most: int | None = None) -> str:
    """Return sorted indices from 0 as numbers from 1, in ranges; ``…`` stands for those beyond the first ``most``."""
    cells = np.isin(np.arange(max(indices, default=-1) + 1), indices)
    ranges = [f"{first + 1}-{end}" if end - first > 1 else f"{end}" for first, end in find_runs(cells)]
    return join_items([*ranges[:most], *(["…"] if len(ranges) > len(ranges[:most]) else [])])


def format_query_ranges(indices: Sequence[int] | np.ndarray) -> str:
    """Return ``queries 1-3`` of indices from 0."""
    numbers = format_index_ranges(indices, _MOST_RANGES)
    return say_many("query {numbers}", "queries {numbers}", len(indices), numbers=numbers)


def format_key_ranges(indices: Sequence[int] | np.ndarray) -> str:
    """Return ``keys 1-3`` of indices from 0."""
    numbers = format_index_ranges(indices, _MOST_RANGES)
    return say_many("key {numbers}", "keys {numbers}", len(indices), numbers=numbers)
