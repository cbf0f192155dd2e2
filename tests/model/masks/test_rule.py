"""Masks from words."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.masks.rule import MaskSizes, RuleError, build_mask, parse_sample_lengths
from attenscope.masks.softmax import lengths_to_keep_mask

SIZES = MaskSizes(5, 5, (5, 3))


def grid(rule: str, sizes: MaskSizes = SIZES, sample: int = 1) -> np.ndarray:
    found = build_mask(rule, sizes)
    assert found.shape == (len(sizes.lengths), 1, sizes.queries, sizes.keys)
    return found[sample, 0]


def test_kinds_are_joined_by_and_or_not_and_brackets() -> None:
    i, j = np.indices((5, 5))
    causal, real = j <= i, j < 3
    np.testing.assert_array_equal(grid("causal and padding"), causal & real)
    np.testing.assert_array_equal(grid("causal or padding"), causal | real)
    np.testing.assert_array_equal(grid("not causal & padding"), ~causal & real)
    np.testing.assert_array_equal(grid("not (causal & padding)"), ~(causal & real))
    np.testing.assert_array_equal(grid("causal or not causal and padding"), causal | real)  # and binds closer
    np.testing.assert_array_equal(grid("causal and window 2"), causal & (i - j < 2))
    np.testing.assert_array_equal(grid("packed 2,3"), (i < 2) == (j < 2))
    np.testing.assert_array_equal(grid("prefix 2"), causal | (j < 2))
    assert grid("full").all()


def test_padding_stands_at_either_side_and_a_cache_is_aligned_at_the_newest() -> None:
    assert lengths_to_keep_mask((3, 5), 5, "left").tolist() == [[False, False, True, True, True], [True] * 5]
    assert grid("causal", MaskSizes(2, 5, (5,)), 0).astype(int).tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


@pytest.mark.parametrize(
    "rule", ["", "and", "causal causal", "causal and", "(causal", "causal)", "window", "window 0", "cats", "not", "1"]
)
def test_a_rule_that_cannot_be_read_is_refused_in_a_sentence(rule: str) -> None:
    with pytest.raises(RuleError, match=r"[.]$"):
        build_mask(rule, SIZES)


@pytest.mark.parametrize("rule", ["(" * 390, "not " * 97 + "causal", "((((causal" * 50, "é", "causal; import os"])
def test_no_text_does_more_than_be_refused(rule: str) -> None:
    with pytest.raises(RuleError, match=r"^.{1,250}$"):
        build_mask(rule, SIZES)


def test_lengths() -> None:
    assert parse_sample_lengths(" 5, 3 ;4", 5) == (5, 3, 4)
    for wrong in ("", "a", "6", "-1", "5,,x"):
        with pytest.raises(RuleError):
            parse_sample_lengths(wrong, 5)
