"""Sound attention of today's models that does not look like a plain mask: no error, and no guess taken for a fact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.masks.softmax import softmax

T = 10
RANDOM = np.random.default_rng(0)
CAUSAL = np.tri(T, dtype=bool)
AGE = np.subtract.outer(np.arange(T), np.arange(T))
WINDOW = CAUSAL & (AGE < 4)
IMAGE = CAUSAL.copy()
IMAGE[3:6, 3:6] = True
MEANT: list[dict[str, Any]] = [{}, {"map": "decoder"}, {"meant": "causal"}]


def scores(allowed: np.ndarray, *shape: int) -> np.ndarray:
    return np.where(allowed, RANDOM.normal(size=(*shape, T, T)), -np.inf)


def weights(allowed: np.ndarray, *shape: int) -> np.ndarray:
    return softmax(scores(allowed, *shape))


def codes(found: Diagnosis) -> list[tuple[str, str]]:
    return [(one.code, one.level) for one in found.findings]


def alarms(found: Diagnosis) -> list[tuple[str, str]]:
    return [one for one in codes(found) if one[1] != "information"]


@pytest.mark.parametrize("said", MEANT)
def test_a_window_hides_the_future_too(said: dict[str, Any]) -> None:
    found = diagnose(weights(WINDOW, 1, 3, 2), **said)
    assert alarms(found) == []
    assert "window of 4" in found.meaning


@pytest.mark.parametrize("said", MEANT)
@pytest.mark.parametrize("mask", [None, CAUSAL])
def test_layers_may_alternate_between_local_and_global(said: dict[str, Any], mask: np.ndarray | None) -> None:
    """Gemma 2; a capture joins the masks of all layers."""
    found = diagnose(np.stack([weights(WINDOW, 1, 2), weights(CAUSAL, 1, 2)] * 2, 1), mask=mask, **said)
    assert alarms(found) == []
    assert found.meaning == "a causal window of 4 in layer 1, 3; causal in layer 2, 4"


def test_a_window_is_no_proof_against_a_meant_array() -> None:
    assert alarms(diagnose(weights(WINDOW, 1, 3, 2), meant=CAUSAL)) == [("over-blocked", "certain")]


@pytest.mark.parametrize("odd", [(3,), (0, 5)])
def test_few_layers_that_see_the_future_are_asked_about(odd: tuple[int, ...]) -> None:
    layers = [weights(np.ones((T, T), bool) if at in odd else CAUSAL, 1, 2) for at in range(8)]
    found = diagnose(np.stack(layers, 1))
    assert codes(found) == [("future-visible", "likely")]
    assert found.findings[0].layer == (odd[0] if len(odd) == 1 else None)
    stated = diagnose(np.stack(layers, 1), meant="causal")
    assert alarms(stated) == [("future-visible", "certain")]


@pytest.mark.parametrize("kind", ["", "encoder"])
def test_heads_may_look_forward_and_backward(kind: str) -> None:
    both = np.stack([weights(CAUSAL, 1, 2), weights(CAUSAL.T, 1, 2)], 2).reshape(1, 4, T, T)
    assert alarms(diagnose(both, map=kind)) == []


@pytest.mark.parametrize("kind", ["", "decoder"])
def test_the_blocks_of_an_image_are_read_in_both_directions(kind: str) -> None:
    for given in ({"weights": weights(IMAGE, 1, 4)}, {"mask": IMAGE}, {"weights": weights(IMAGE, 1, 4), "mask": IMAGE}):
        assert alarms(diagnose(**given, map=kind)) == []


@pytest.mark.parametrize("said", MEANT)
def test_a_sink_in_the_denominator_is_information(said: dict[str, Any]) -> None:
    masked = scores(CAUSAL, 1, 2)
    sink = softmax(np.concatenate([masked, RANDOM.normal(size=(1, 2, T, 1))], -1))
    assert codes(diagnose(sink[..., :-1], **said)) == [("extra-mass", "information")]
    assert codes(diagnose(sink, **said)) == [("extra-mass", "information")]
    leaky = softmax(np.concatenate([scores(np.ones((T, T), bool), 1, 2), np.zeros((1, 2, T, 1))], -1))[..., :-1]
    assert ("future-visible", "certain") in codes(diagnose(leaky, meant="causal"))


def sparsemax(values: np.ndarray) -> np.ndarray:
    """Martins and Astudillo 2016, by its definition."""
    out = np.zeros_like(values)
    for at in np.ndindex(*values.shape[:-1]):
        row = np.sort(values[at][np.isfinite(values[at])])[::-1]
        total = np.cumsum(row)
        size = np.arange(1, len(row) + 1)
        support = int((1 + size * row > total).sum())
        out[at] = np.maximum(values[at] - (total[support - 1] - 1) / support, 0)
    return out


def sparsely(kind: str, masked: np.ndarray) -> np.ndarray:
    """Weights of sparsemax, or of a softmax over the three largest scores of each row."""
    third = np.sort(masked, -1)[..., -3, None]
    return sparsemax(masked) if kind == "sparsemax" else softmax(np.where(masked >= third, masked, -np.inf))


@pytest.mark.parametrize("meant", ["causal", CAUSAL])
@pytest.mark.parametrize("kind", ["sparsemax", "top 3"])
def test_sparse_weights_are_no_holes(meant: Any, kind: str) -> None:
    for _ in range(20):  # by chance no head looks at one of the last keys in a third of the draws
        assert codes(diagnose(sparsely(kind, scores(CAUSAL, 1, 4)), meant=meant)) == [("over-blocked", "information")]


@pytest.mark.parametrize("kind", ["sparsemax", "top 3"])
def test_a_key_that_many_rows_leave_out_is_a_hole_in_sparse_weights_too(kind: str) -> None:
    blocked = CAUSAL.copy()
    blocked[3:, 1] = False
    found = diagnose(sparsely(kind, scores(blocked, 1, 4)), meant="causal")
    assert ("over-blocked", "certain") in codes(found)


@pytest.mark.parametrize("samples", [1, 2])
def test_a_random_mask_in_each_layer_is_not_taken_for_sparse_weights(samples: int) -> None:
    """Its heads and its samples leave out the same keys: the scores of each would have chosen others."""
    random = np.random.default_rng(3)
    opened = (random.random((2, T, T)) > 0.3) | np.eye(T, dtype=bool)
    masked = np.where(opened[None, :, None], random.normal(size=(samples, 2, 4, T, T)), -np.inf)
    assert ("over-blocked", "information") not in codes(diagnose(softmax(masked), meant="full"))
    assert codes(diagnose(sparsely("sparsemax", random.normal(size=masked.shape)), meant="full")) == [
        ("over-blocked", "information")
    ]


def test_a_mask_multiplied_in_after_the_softmax() -> None:
    plain = RANDOM.normal(size=(2, 3, T, T))
    late = softmax(plain) * CAUSAL
    assert codes(diagnose(late, meant="causal"))[0] == ("applied-late", "certain")
    assert codes(diagnose(late, scores=plain))[0] == ("applied-late", "certain")
    keep = np.arange(T) < np.array([[T - 1], [T - 3]])
    padded = softmax(plain) * (CAUSAL & keep[:, None, None])
    assert ("applied-late", "likely") in codes(diagnose(padded, key_keep=keep, meant="causal"))
    assert codes(diagnose(padded, scores=plain, key_keep=keep))[0] == ("applied-late", "certain")


def test_dropout_is_still_dropout() -> None:
    kept = RANDOM.random((1, 4, T, T)) > 0.2
    assert codes(diagnose(weights(CAUSAL, 1, 4) * kept / 0.8, meant="causal"))[0] == ("dropout-on", "certain")


@pytest.mark.parametrize("said", MEANT)
def test_a_window_beside_left_padding_whose_rows_are_fills(said: dict[str, Any]) -> None:
    """GPT-Neo: the rows of padding queries hold nothing but the lowest number, and are uniform."""
    keep = np.arange(T) >= np.array([[0], [4]])
    plain, columns = RANDOM.normal(size=(2, 1, 3, T, T)), keep[:, None, None, None]
    layers = [softmax(np.where(allowed & columns, plain, -1e9)) for allowed in (CAUSAL, WINDOW)]
    found = diagnose(np.concatenate(layers, 1), mask=(CAUSAL & keep[:, None])[:, None], **said)
    assert alarms(found) == []


def test_a_sink_column_may_stand_beside_padding_without_it() -> None:
    keep = np.arange(T) < np.array([[T], [T - 3]])
    masked = np.concatenate([scores(CAUSAL & keep[:, None, None], 2, 2), np.zeros((2, 2, T, 1))], -1)
    found = diagnose(softmax(masked), key_keep=keep, map="decoder")
    assert alarms(found) == []


def test_an_outlier_in_half_precision_makes_no_hole() -> None:
    plain = RANDOM.normal(size=(1, 2, T, T))
    plain[0, 0, 4, 2], plain[0, 0, 4, 7], plain[0, 0, 4, 8] = 7.0, -12.0, -6.0
    half = softmax(plain).astype(np.float16)
    assert (half == 0).sum() == 1
    assert alarms(diagnose(half, meant="full")) == []
