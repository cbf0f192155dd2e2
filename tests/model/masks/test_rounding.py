"""A zero that the scores explain as rounding is no hole in a sentence; a zero that they do not explain is."""

from __future__ import annotations

import numpy as np

from attenscope.masks.diagnose import diagnose
from attenscope.masks.softmax import softmax

SCORES = np.array([[2.0, -19.0, 1.0, 0.0], [0.0, -18.0, 1.0, 2.0], [1.0, -20.0, 0.0, 2.5]])
KEEP = np.ones(4, bool)


def test_scores_too_low_for_half_precision_make_no_hole() -> None:
    weights = softmax(SCORES).astype(np.float16)
    assert (weights[:, 1] == 0).all()
    assert diagnose(weights, scores=SCORES, key_keep=KEEP, meant="padding").sound


def test_a_hole_is_still_named_where_the_scores_would_have_given_weight() -> None:
    scores = SCORES + np.array([0, 20.0, 0, 0])
    weights = softmax(np.where([True, False, True, True], scores, -np.inf)).astype(np.float16)
    found = diagnose(weights, scores=scores, key_keep=KEEP, meant="padding")
    assert "hole-inside" in [one.code for one in found.findings]


REAL = np.arange(8) < np.array([[8], [6]])
CAUSAL = REAL[:, None, None] & np.tri(8, dtype=bool)


def scores(sharpness: float) -> np.ndarray:
    return (sharpness * np.random.default_rng(1).standard_normal((2, 3, 8, 8))).astype(np.float16)


def named(weights: np.ndarray, given: np.ndarray, meant: np.ndarray | str) -> list[str]:
    found = diagnose(weights.astype(np.float16), scores=given, key_keep=REAL, meant=meant)
    return [one.code for one in found.findings if one.severity != "info"]


def test_rows_of_fills_leave_the_scores_worth_asking() -> None:
    """A window of two where none was meant empties the padding rows: what it closes elsewhere is still no rounding."""
    window = CAUSAL & ~np.tri(8, k=-2, dtype=bool)
    given = scores(4.0)
    filled = softmax(np.where(window, given.astype(np.float64), -1e9))
    assert "over-blocked" in named(filled, given, CAUSAL)


def test_padding_along_the_wrong_axis_is_seen_by_its_uniform_rows() -> None:
    given = scores(1.0)
    filled = softmax(np.where(REAL[:, None, :, None], given.astype(np.float64), -1e9))
    assert named(filled, given, "padding")[0] == "wrong-axis"


def test_a_fill_too_weak_is_no_missing_mask_where_the_scores_say_what_it_lowered() -> None:
    given = scores(0.5)
    added = softmax(given + np.where(CAUSAL, 0.0, -10.0))
    assert named(added, given, CAUSAL) == ["weak-fill"]


def test_equal_weights_show_a_fill_even_where_they_are_too_small_to_be_read_exactly() -> None:
    given = scores(2.0)
    filled = softmax(np.where(CAUSAL, given.astype(np.float64), -10.0))
    assert named(filled, given, CAUSAL) == ["weak-fill"]
