"""What an array is taken for, and which axis is read as what."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import OPPOSITE_ROLES, ArrayRole, DiagnosisError, convert_to_role, guess_role
from attenscope.masks.read_text import ambiguous_axes_text, describe_axes, interpret_array_axes
from attenscope.masks.softmax import softmax

CAUSAL = np.tri(6, dtype=bool)
PADDED = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], bool)
BAND = CAUSAL & ~np.tri(6, k=-3, dtype=bool)
SCORES = np.random.default_rng(0).normal(size=(2, 4, 4))


@pytest.mark.parametrize(
    ("array", "role", "why"),
    [
        (CAUSAL, "mask keeps", "it is causal"),
        (~CAUSAL, "mask blocks", "it is causal"),
        (CAUSAL.astype(int), "mask keeps", "it is causal"),
        (np.where(CAUSAL, 0, -np.inf), "mask added", "zeros and values that block"),
        (np.where(CAUSAL, 0, -1e9), "mask added", "zeros and values that block"),
        (BAND, "mask keeps", "a causal window of 3"),
        (~BAND, "mask blocks", "a causal window of 3"),
        (PADDED, "key_keep", "most tokens are real"),
        (~PADDED, "key_blocks", "most tokens are real"),
        (softmax(SCORES), "weights", "sum to 1"),
        (SCORES, "scores", "none that blocks"),
        (np.where(CAUSAL[:4, :4], SCORES, -np.inf), "masked_scores", "scores beside values that block"),
    ],
)
def test_values_tell_what_an_array_is(array: np.ndarray, role: ArrayRole, why: str) -> None:
    found = guess_role(array)
    assert found.role == role
    assert 0.5 <= found.sure <= 1
    assert why in found.why


def test_what_cannot_be_told_is_said_to_be_unsure() -> None:
    assert guess_role(np.array([[0, 1, 1], [0, 1, 1], [0, 1, 1]])).sure < 0.6
    assert guess_role(np.tri(4)).sure < 0.6  # floats of 0 and 1: added by some, compared with 0 by others


def test_a_name_is_believed_and_a_reading_can_be_flipped() -> None:
    assert guess_role(~PADDED, "key_padding_mask").role == "key_blocks"
    name, keeps = convert_to_role(~PADDED, "key_blocks")
    assert name == "key_keep"
    np.testing.assert_array_equal(keeps, PADDED)
    for role, other in OPPOSITE_ROLES.items():
        one, two = convert_to_role(CAUSAL, role)[1], convert_to_role(CAUSAL, other)[1]
        np.testing.assert_array_equal(one, ~two)
    with pytest.raises(DiagnosisError, match="True and False"):
        convert_to_role(SCORES, "mask keeps")


@pytest.mark.parametrize(
    ("name", "shape", "own", "words"),
    [
        ("mask", (5, 7), [None, None, None, 5, 7], "5 queries × 7 keys; shared by all 2 samples and all 4 heads"),
        ("mask", (2, 1, 1, 7), [2, None, 1, 1, 7], "shared by all 4 heads and all 5 queries"),
        ("mask", (8, 5, 7), [2, None, 4, 5, 7], "one after the other"),
        ("mask", (2, 5, 7), [2, None, None, 5, 7], "shared by all 4 heads"),
        ("key_keep", (2, 7), [2, None, None, None, 7], "2 samples × 7 keys; shared by all 4 heads and all 5 queries"),
        ("key_keep", (7,), [None, None, None, None, 7], "(7,) was read as 7 keys"),
    ],
)
def test_axes_are_traced_as_they_are_read(name: str, shape: tuple[int, ...], own: list[int], words: str) -> None:
    weights = np.full((2, 4, 5, 7), 1 / 7)
    found = normalise_arrays({"weights": weights, name: np.ones(shape, bool)})
    sizes = found.sizes
    assert [axis.own_size for axis in interpret_array_axes(name, shape, sizes)] == own
    assert words in describe_axes(name, shape, sizes)


def test_a_shape_that_fits_two_readings_is_pointed_out() -> None:
    assert "key_keep" in ambiguous_axes_text("mask", (5, 5), (5, 1, 1, 5, 5))
    assert not ambiguous_axes_text("mask", (5, 5), (2, 1, 1, 5, 5))
    assert "heads" in ambiguous_axes_text("mask", (3, 5, 5), (3, 1, 3, 5, 5))
