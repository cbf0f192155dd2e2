"""Bands, prefixes and documents."""

from __future__ import annotations

import pytest

from attenscope.masks.structure import Structure


@pytest.mark.parametrize(
    ("structure", "ends"),
    [
        (Structure(lo=-3), [(-4, None), (-2, None)]),
        (Structure(lo=-3, hi=0), [(-4, 0), (-2, 0)]),
        (Structure(lo=-1, hi=2), [(-2, 1), (-2, 2), (-2, 3), (-1, 1), (-1, 3), (0, 1), (0, 2), (0, 3)]),
        (Structure(hi=0), []),
    ],
)
def test_a_window_is_moved_at_its_ends_in_one_order(structure: Structure, ends: list[tuple[int, int | None]]) -> None:
    """The order of a set of windows without an end would be another in each process."""
    assert [(window.lo, window.hi) for window in structure.shifted_ends()] == ends
