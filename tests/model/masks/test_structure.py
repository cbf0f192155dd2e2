"""Bands, prefixes and documents."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.masks.structure import Structure, name_structure, parse_structure


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
    assert [(window.lo, window.hi) for window in structure.list_shifted_windows()] == ends


@pytest.mark.parametrize("name", ["blocks:3", "causal+chunked:3"])
def test_blocks_and_chunks_count_from_the_first_real_key(name: str) -> None:
    structure = parse_structure(name)
    late = structure.copy_with_chunk_start(2)
    assert np.array_equal(late.build_mask(9, 9)[2:, 2:], structure.build_mask(7, 7))
    assert np.array_equal(late.build_mask(2, 9), late.build_mask(9, 9)[-2:])
    assert late == structure
    assert name_structure(late, 9) == name


def test_a_block_sees_itself_whole_and_all_before_it() -> None:
    number = np.arange(7) // 3
    assert np.array_equal(parse_structure("blocks:3").build_mask(7, 7), number <= number[:, None])
