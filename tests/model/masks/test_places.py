"""Numbers in ranges, and their nouns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from attenscope.language import use_language
from attenscope.masks.index_ranges import (
    find_differing_rows,
    find_last_keys,
    find_runs,
    format_index_ranges,
    format_key_ranges,
    format_query_ranges,
)


@pytest.mark.parametrize("seed", range(20))
def test_runs_are_the_cells(seed: int) -> None:
    cells = np.random.default_rng(seed).random(seed) < 0.5
    runs = find_runs(cells)
    assert [at for first, end in runs for at in range(first, end)] == np.flatnonzero(cells).tolist()
    assert all(end < first for (_, end), (first, _) in pairwise(runs))


@pytest.mark.parametrize("size", [(1, 1), (5, 9), (3000, 700)])
def test_what_is_computed_in_parts_is_that_of_the_whole(size: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    one, other = random.random((2, *size)) < 2 / size[1]
    other[::2] = one[::2]
    want = [int(np.flatnonzero(row)[-1]) if row.any() else size[1] - 1 for row in one]
    assert find_last_keys(one).tolist() == want
    np.testing.assert_array_equal(find_differing_rows(one[None], other[None])[0], (one ^ other).any(1))
    np.testing.assert_array_equal(find_differing_rows(one, other[-1:]), (one ^ other[-1:]).any(1))


def test_ranges_count_from_one() -> None:
    assert format_index_ranges([0, 1, 2, 4, 6, 7]) == "1-3, 5, 7-8"
    assert format_index_ranges([0, 2, 4, 6, 8], 4) == "1, 3, 5, 7, …"
    assert format_index_ranges(np.array([3])) == "4"
    assert format_index_ranges([]) == ""
    with use_language("zh"):
        assert format_index_ranges([0, 2]) == "1、3"


def test_one_is_no_plural() -> None:
    assert (format_query_ranges([0]), format_query_ranges([0, 1])) == ("query 1", "queries 1-2")
    assert (format_key_ranges((4,)), format_key_ranges((4, 6))) == ("key 5", "keys 5, 7")
