"""Masks: True = may attend."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attenscope.network.attention import check_boolean_mask, combine_masks, make_causal_mask, make_padding_mask

SIZES = st.integers(1, 9)


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=4), st.integers(0, 3))
def test_padding_mask_is_false_at_pads_only(rows: list[list[int]], pad: int) -> None:
    mask = make_padding_mask(torch.tensor(rows), pad)
    assert mask.shape == (len(rows), 1, 1, 5)
    assert mask[:, 0, 0].tolist() == [[token != pad for token in row] for row in rows]


@given(SIZES, st.integers(0, 9))
def test_query_sees_keys_up_to_its_own_position(queries: int, cached: int) -> None:
    mask = make_causal_mask(queries, queries + cached)[0, 0]
    for query in range(queries):
        for key in range(queries + cached):
            assert mask[query, key].item() == (key <= query + cached)


def test_causal_mask_by_hand() -> None:
    assert make_causal_mask(3)[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    # Two cached keys: the newest of the queries sees everything.
    assert make_causal_mask(2, 4)[0, 0].tolist() == [[True, True, True, False], [True, True, True, True]]


def test_fewer_keys_than_queries_are_refused() -> None:
    with pytest.raises(ValueError, match="at least as many keys as queries; got 3 queries and 2 keys"):
        make_causal_mask(3, 2)


@given(SIZES, SIZES, st.integers(0, 2**32 - 1))
def test_combine_allows_what_all_allow(batch: int, length: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, 3, (batch, length), generator=random)
    combined = combine_masks(make_causal_mask(length), None, make_padding_mask(tokens, 0))
    assert combined is not None
    assert combined.shape == (batch, 1, length, length)
    for row in range(batch):
        for query in range(length):
            for key in range(length):
                assert combined[row, 0, query, key].item() == (key <= query and tokens[row, key].item() != 0)


def test_combining_nothing_restricts_nothing() -> None:
    assert combine_masks() is None
    assert combine_masks(None, None) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_masks_of_other_conventions_are_refused(dtype: torch.dtype) -> None:
    foreign = torch.zeros(1, 1, 2, 2, dtype=dtype)
    with pytest.raises(TypeError, match="boolean with True = may attend"):
        check_boolean_mask(foreign)
    with pytest.raises(TypeError, match="Convert it first"):
        combine_masks(make_causal_mask(2), foreign)
