"""A weight of exactly zero is no proof of a mask where rounding explains it, and is one where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.diagnose import diagnose
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.softmax import softmax
from tests.model.masks.sound_cases import sound

CAUSAL = np.tri(6, dtype=bool)


def named(weights: np.ndarray, **arrays: Any) -> list[str]:
    return [one.code for one in diagnose(weights, **arrays).findings if one.severity != "info"]


def scores(sharpness: float, *shape: int) -> np.ndarray:
    return sharpness * np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("window", 292), ("layers", 91), ("encoder", 402), ("cross", 432), ("cross", 623), ("decoder", 607)],
)
def test_sharp_heads_are_sound_without_their_scores(kind: str, seed: int) -> None:
    assert diagnose_arrays(normalise_arrays(sound(kind, seed))).sound


def test_a_calm_head_has_no_zeros_by_rounding() -> None:
    allowed = np.ones((2, 3, 20, 20), bool)
    allowed[0, 1, 4, 7] = False
    weights = softmax(np.where(allowed, scores(1.0, 2, 3, 20, 20), -np.inf)).astype(np.float16)
    assert named(weights, meant="full") == ["over-blocked"]


def test_scores_tell_cell_by_cell_which_zero_is_rounding() -> None:
    sharp = scores(20.0, 1, 4, 12, 12)
    weights = softmax(sharp).astype(np.float32)
    assert (weights == 0).any()
    assert named(weights, scores=sharp, meant="full") == []
    query, key = (int(at) for at in np.argwhere(sharp[0, 0] > sharp[0, 0].max(-1, keepdims=True) - 30)[5])
    blocked = np.where(np.arange(12)[:, None] * 12 + np.arange(12) == query * 12 + key, -np.inf, sharp)
    assert named(softmax(blocked).astype(np.float32), scores=sharp, meant="full") == ["over-blocked"]


def test_scores_after_the_mask_tell_it_too() -> None:
    masked = np.where(CAUSAL, scores(60.0, 2, 3, 6, 6), -np.inf)
    weights = softmax(masked).astype(np.float32)
    assert ((weights == 0) & CAUSAL).any()
    assert named(weights, masked_scores=masked, meant="causal") == []


def test_weights_where_the_given_mask_blocks_are_never_sound() -> None:
    weights = softmax(scores(1.0, 2, 3, 6, 6))
    keep = np.ones((2, 6), bool)
    assert named(weights, mask=CAUSAL, key_keep=keep)[:1] == ["mask-ignored"]


def test_lengths_that_differ_say_that_it_is_cross_attention() -> None:
    keys, queries = np.arange(6) < 6, np.arange(4) < 3
    causal = np.tri(4, 6, 2, dtype=bool)
    weights = softmax(np.where(causal, scores(1.0, 2, 4, 6), -np.inf))
    assert named(weights, key_keep=keys, query_keep=queries)[:1] == ["causal-on-cross"]
    assert named(weights) == []


def test_one_small_weight_beside_zeros_is_a_leak_and_no_fill() -> None:
    masked = np.where(CAUSAL, scores(1.0, 6, 6), -np.inf)
    masked[1, 4] = masked[1].max() - 12
    assert named(softmax(masked), meant="causal") == ["leak"]


def test_padding_that_is_small_by_nature_is_not_called_a_fill() -> None:
    sink = scores(1.0, 2, 2, 5, 5)
    sink[..., 0] += 14
    keep = np.arange(5) < np.array([5, 4])[:, None]
    assert named(softmax(sink), key_keep=keep, meant="padding") == ["padding-visible"]
    filled = np.where(keep[:, None, None], scores(1.0, 2, 2, 5, 5), -20.0)
    assert named(softmax(filled), key_keep=keep, meant="padding") == ["weak-fill"]


def test_rows_without_any_key_do_not_make_a_mask_upside_down() -> None:
    first = np.zeros((1, 6, 2, 3))
    second = softmax(np.where(np.tri(2, 3, dtype=bool), scores(1.0, 1, 6, 2, 3), -np.inf))
    keep = np.array([[False, True], [False, True]])
    assert "inverted" not in named(np.concatenate([first, second]), query_keep=keep)
