"""The greatest numbers of long rows against torch's own."""

from __future__ import annotations

import pytest
import torch

from attenscope.decoding.greedy_and_sampling import LONG_ROW, partitioned_topk


@pytest.mark.parametrize("length", [7, LONG_ROW - 1, LONG_ROW, 4 * 8000, 4 * 10_000, 232_404, 2 * 1_000_003])
@pytest.mark.parametrize("count", [1, 2, 8, 20])
def test_they_are_those_of_a_sorted_row(length: int, count: int) -> None:
    count = min(count, length)
    torch.manual_seed(length + count)
    values = torch.randn(3, length)
    values[1, torch.rand(length) < 0.9] = -torch.inf  # as tokens that may not be written
    values[2, : length // 2] = -torch.inf  # as hypotheses that there are not yet
    found, at = partitioned_topk(values, count)
    wanted = values.sort(descending=True)
    torch.testing.assert_close(found, wanted.values[:, :count], rtol=0, atol=0)
    assert torch.equal(values.gather(1, at), found)
    assert all(len(set(row.tolist())) == count for row in at)


def test_of_equal_numbers_none_is_taken_twice() -> None:
    found, at = partitioned_topk(torch.zeros(2, 4096), 8)
    assert not found.any()
    assert all(len(set(row.tolist())) == 8 for row in at)
