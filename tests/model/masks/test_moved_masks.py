"""Windows that are missing, boundaries that moved, the masks of other samples, caches, and two faults at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.diagnose import diagnose
from attenscope.masks.softmax import softmax

T = 10
RANDOM = np.random.default_rng(0)
CAUSAL = np.tri(T, dtype=bool)
FAR = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
KEEP = np.arange(8) < np.array([[8], [5]])


def weights(allowed: np.ndarray, *shape: int) -> np.ndarray:
    return softmax(np.where(allowed, RANDOM.normal(size=shape), -np.inf))


def named(found: Any) -> list[str]:
    return [one.code for one in found.findings if one.level != "information"]


@pytest.mark.parametrize(
    ("allowed", "meant"),
    [
        (CAUSAL, "causal+window:4"),
        (CAUSAL, CAUSAL & (FAR < 4)),
        (np.ones((T, T), bool), "window:4"),
        (np.ones((1, T), bool), "causal+window:4"),
    ],
)
def test_a_window_that_is_missing_is_no_leak_of_the_future(allowed: np.ndarray, meant: Any) -> None:
    found = diagnose(weights(allowed, 1, 4, *allowed.shape), meant=meant)
    assert named(found) == ["window-missing"]


@pytest.mark.parametrize("width", [3, 5])
@pytest.mark.parametrize("meant", ["window:4", FAR < 4])
def test_a_two_sided_window_one_narrower_or_wider(width: int, meant: Any) -> None:
    found = diagnose(weights(width > FAR, 1, 4, T, T), meant=meant)
    assert named(found) == ["window-off-by-one"]
    assert "(i - j).abs() < 4" in found.findings[0].fix


@pytest.mark.parametrize("lengths", [(8, 6), (7, 4), (8, 7)])
def test_padding_that_ends_beside_its_place(lengths: tuple[int, int]) -> None:
    keep = np.arange(8) < np.array(lengths)[:, None]
    for meant in ("padding", KEEP[:, None, None]):
        assert named(diagnose(weights(keep[:, None, None], 2, 4, 8, 8), key_keep=KEEP, meant=meant)) == ["mask-shifted"]


@pytest.mark.parametrize("seed", range(6))
def test_padding_that_ends_beside_its_place_and_where_the_other_sentence_does_is_either(seed: int) -> None:
    random = np.random.default_rng(seed)
    length, step, heads = int(random.integers(3, 7)), int(random.choice([-1, 1, 2])), int(random.integers(1, 4))
    keys, queries = length + 3, length + int(random.integers(4, 8))
    keep, others = np.arange(keys) < length, np.arange(queries) < length + step
    mask = np.broadcast_to(np.arange(keys) < length + step, (queries, keys))
    told: dict[str, Any] = {"key_keep": keep[None], "meant": "padding"}
    found = diagnose(weights(mask, 1, heads, queries, keys), query_keep=others[None], **told)
    assert named(found) == ["padding-swapped", "mask-shifted"]
    assert "cannot rule this out" in found.findings[1].message
    elsewhere = np.arange(queries) < length + step + 1
    found = diagnose(weights(mask, 1, heads, queries, keys), query_keep=elsewhere[None], **told)
    assert named(found) == ["mask-shifted"]


@pytest.mark.parametrize("start", [3, 5])
def test_a_document_that_starts_beside_its_place(start: int) -> None:
    document = np.arange(T) >= start
    allowed = CAUSAL & (document[:, None] == document)
    assert named(diagnose(weights(allowed, 1, 4, T, T), meant="causal+packed:4,6")) == ["mask-shifted"]


def test_a_batch_in_another_order_than_its_mask() -> None:
    keep = np.arange(8) < np.array([[8], [5], [3], [6]])
    for order in ([1, 2, 3, 0], [3, 2, 1, 0], [0, 2, 1, 3]):
        found = diagnose(weights(keep[order][:, None, None], 4, 4, 8, 8), key_keep=keep, meant="padding")
        assert named(found) == ["sample-order"]
    assert named(diagnose(weights(keep[:, None, None], 4, 4, 8, 8), key_keep=keep, meant="padding")) == []


FILLED = np.arange(T) <= np.array([[4], [5]])
UNFILLED = np.arange(T) >= 6


@pytest.mark.parametrize("given", [{"meant": FILLED}, {"meant": "causal", "key_keep": ~UNFILLED[None]}])
def test_slots_of_a_cache_that_are_not_filled(given: dict[str, Any]) -> None:
    """Their keys are zeros, so that their scores are equal: no fill."""
    scores = RANDOM.normal(size=(1, 4, 2, T))
    scores[..., UNFILLED] = 0
    stale = softmax(np.where(FILLED | UNFILLED, scores, -np.inf))
    assert named(diagnose(stale, **given)) == ["stale-cache"]
    assert named(diagnose(softmax(np.where(FILLED, scores, -np.inf)), **given)) == []


def test_a_weak_fill_is_still_one() -> None:
    filled = softmax(np.where(CAUSAL, RANDOM.normal(size=(1, 4, T, T)), -15.0))
    assert named(diagnose(filled, meant="causal")) == ["weak-fill"]


def test_two_faults_are_named_both() -> None:
    causal = np.tri(6, 8, dtype=bool)
    for given in ({"map": "cross"}, {"map": "cross", "meant": "padding"}):
        found = diagnose(weights(causal, 2, 4, 6, 8), key_keep=KEEP, **given)
        assert named(found) == ["causal-on-cross", "padding-visible"]


def test_a_window_from_the_top_left_is_named() -> None:
    past = np.subtract.outer(np.arange(4), np.arange(T))
    allowed = (past >= 0) & (past < 3)
    assert named(diagnose(weights(allowed, 1, 4, 4, T), meant="causal+window:3")) == ["top-left-causal"]
