"""Runs of cells, and queries, keys and layers in words, counted from 1, in ranges: ``1-3, 7``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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


def iterate_row_parts(shape: Sequence[int]) -> Iterator[slice]:
    """Yield the rows of a grid (..., Q, K) in parts, each so small that what is computed of it reuses its memory."""
    *_, queries, _ = shape
    size = max(1, _CELLS_AT_ONCE * queries // max(1, math.prod(shape)))
    return (slice(first, first + size) for first in range(0, queries, size))


def take_rows(grid: np.ndarray, rows: slice) -> np.ndarray:
    """Return some rows of a grid (..., Q, K), whose axis of queries may be 1."""
    return grid[..., rows, :] if grid.shape[-2] > 1 else grid


def find_last_keys(seen: np.ndarray) -> np.ndarray:
    """Return (Q,) the last key that each row of (Q, K) bool has; of a row without any, the last of all."""
    ends = [seen[part, ::-1].argmax(1) for part in iterate_row_parts(seen.shape)]  # numpy copies what is reversed
    return seen.shape[1] - 1 - np.concatenate(ends)


def find_differing_rows(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return (..., Q) bool: rows of two grids (..., Q, K) that differ somewhere; axes may be 1."""
    shape = np.broadcast_shapes(one.shape, other.shape)
    return np.concatenate(
        [(take_rows(one, part) ^ take_rows(other, part)).any(-1) for part in iterate_row_parts(shape)], -1
    )


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
