"""Two maps on the tokens both have."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attenscope.analysis.attention_steps import compare_maps, match_common_tokens, match_rows_and_columns
from attenscope.trace import AttentionMap, TraceError, select_head


def encoder(*tokens: str, heads: int = 1, seed: int = 0) -> AttentionMap:
    count = len(tokens)
    weights = np.random.default_rng(seed).dirichlet(np.ones(count), (1, heads, count)).astype(np.float32)
    return AttentionMap("encoder", weights, tokens, tokens, np.ones((count, count), dtype=bool))


def test_shared_tokens_keep_their_order_and_repeat() -> None:
    first, second = [" the", " old", " dog", " sees", " the", " dog"], [" the", " dog", " sees", " the", " red", " dog"]
    assert match_common_tokens(first, second) == [(0, 0), (2, 1), (3, 2), (4, 3), (5, 5)]
    assert match_common_tokens(["a"], ["b"]) == []


@given(st.lists(st.sampled_from("abc"), max_size=9), st.lists(st.sampled_from("abc"), max_size=9))
def test_shared_pairs_are_equal_and_rise(first: list[str], second: list[str]) -> None:
    pairs = match_common_tokens(first, second)
    assert all(first[one] == second[two] for one, two in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    assert len(match_common_tokens(first, first)) == len(first)


def test_a_difference_by_hand() -> None:
    first, second = encoder(" a", " b", " c"), encoder(" a", " x", " b", seed=1)
    found = compare_maps(first, second)
    assert found.first.key_tokens == found.second.key_tokens == (" a", " b")
    picked = second.weights[0, 0][[0, 2]][:, [0, 2]] - first.weights[0, 0][:2, :2]
    np.testing.assert_array_equal(found.weights[0, 0], picked)
    layer, head, row, column = found.largest
    assert abs(found.weights[layer, head, row, column]) == np.abs(picked).max()
    assert found.mask.all()


def test_a_map_and_itself_differ_nowhere() -> None:
    one = encoder(" a", " b", " a", heads=2)
    assert not compare_maps(one, one).weights.any()
    assert compare_maps(one, one).weights.shape == one.weights.shape


def test_what_is_masked_in_either_is_masked() -> None:
    one = encoder(" a", " b")
    other = dataclasses.replace(one, mask=np.tri(2, dtype=bool))
    assert compare_maps(one, other).mask.tolist() == [[True, False], [True, True]]


def test_rows_are_matched_by_the_chosen_label() -> None:
    first = dataclasses.replace(encoder(" a", " b"), kind="decoder", predicted_tokens=(" x", " y"))
    second = dataclasses.replace(first, predicted_tokens=(" y", " x"))
    assert compare_maps(first, second, "fed").weights.shape == (1, 1, 2, 2)
    assert compare_maps(first, second, "predicted").first.predicted_tokens in ((" x",), (" y",))


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (dataclasses.replace(encoder(" a"), kind="decoder"), "encoder and decoder attention"),
        (encoder(" a", heads=2), "1 layers of 1 heads, the second 1 of 2"),
        (encoder(" z"), "share no token"),
    ],
)
def test_what_cannot_be_compared_is_refused(second: AttentionMap, says: str) -> None:
    with pytest.raises(TraceError, match=says):
        compare_maps(encoder(" a"), second)


def test_what_is_shared_is_told_by_position() -> None:
    found = compare_maps(encoder(" a", " b", " c"), encoder(" x", " a", " c"))
    assert found.queries == found.keys == ((0, 1), (2, 2))


def test_kinds_share_the_axis_that_counts_the_same_tokens() -> None:
    own = encoder(" a", "</s>")
    cross = dataclasses.replace(own, kind="cross", query_tokens=("<s>", " x"), predicted_tokens=(" x", "</s>"))
    decoder = dataclasses.replace(cross, kind="decoder", key_tokens=("<s>", " x"))
    assert match_rows_and_columns(cross, decoder, "predicted") == (((0, 0), (1, 1)), ())
    assert match_rows_and_columns(own, cross) == ((), ((0, 0), (1, 1)))
    assert match_rows_and_columns(own, decoder, "predicted") == ((), ())


def test_how_much_of_a_row_lies_elsewhere() -> None:
    first = encoder(" a", " b")
    halves = np.array([[[[1, 0], [0, 1]]]], dtype=np.float32)
    one, other = (dataclasses.replace(first, weights=weights) for weights in (halves, halves[..., ::-1].copy()))
    assert compare_maps(one, other).mean_moved_weight_share == 1
    assert compare_maps(one, one).mean_moved_weight_share == 0
    alone = compare_maps(encoder(" a"), encoder(" a"))
    assert alone.mean_moved_weight_share == 0  # a row of one key has no choice


def test_a_map_of_one_head() -> None:
    whole = encoder(" a", " b", heads=3)
    np.testing.assert_array_equal(select_head(whole, 0, 2).weights[0, 0], whole.weights[0, 2])
    assert select_head(whole, 0, 2).weights.shape == (1, 1, 2, 2)
