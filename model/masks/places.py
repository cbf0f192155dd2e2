"""Queries and keys in words, counted from 1, in ranges: ``1-3, 7``."""

from __future__ import annotations

from collections.abc import Iterable

from ..language import say

_MOST_RANGES = 4
"""Ranges that are listed; of more, the last ones are left out."""


def list_ranges(indices: Iterable[int]) -> str:
    """Return sorted indices from 0 as numbers from 1, in ranges; ``…`` stands for those beyond the first few."""
    ranges: list[list[int]] = []
    for index in indices:
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1][1] = int(index)
        else:
            ranges.append([int(index), int(index)])
    shown = [f"{a + 1}-{b + 1}" if a != b else f"{a + 1}" for a, b in ranges[:_MOST_RANGES]]
    return ", ".join([*shown, *(["…"] if len(ranges) > _MOST_RANGES else [])])


def name_queries(indices: Iterable[int]) -> str:
    """Return ``queries 1-3`` of indices from 0."""
    return say("queries {numbers}", numbers=list_ranges(indices))


def name_keys(indices: Iterable[int]) -> str:
    """Return ``keys 1-3`` of indices from 0."""
    return say("keys {numbers}", numbers=list_ranges(indices))
