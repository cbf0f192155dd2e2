"""A zero that the scores explain as rounding is no hole in a sentence; a zero that they do not explain is."""

from __future__ import annotations

import numpy as np

from model.diagnosis import diagnose


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.asarray(
        np.exp(scores - scores.max(-1, keepdims=True))
        / np.exp(scores - scores.max(-1, keepdims=True)).sum(-1, keepdims=True)
    )


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
