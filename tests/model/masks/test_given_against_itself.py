"""What was given is checked against itself: weights beside scores, masked scores and biases, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.masks.rule import build_meaning_mask
from attenscope.masks.softmax import softmax

SEEDS = range(6)


class Draw:
    """Sizes, heads, scores and a number format."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.samples, self.heads, self.tokens = (int(self.random.integers(*ends)) for ends in ((2, 4), (2, 5), (5, 14)))
        self.format = [np.float32, np.float64][seed % 2]
        self.causal = np.tri(self.tokens, dtype=bool)
        self.scores = self.random.normal(size=(self.samples, self.heads, self.tokens, self.tokens)).astype(self.format)
        distance = np.subtract.outer(np.arange(self.tokens), np.arange(self.tokens))
        self.bias = (-np.abs(distance) * self.random.uniform(0.3, 0.9, (self.heads, 1, 1))).astype(self.format)

    def weights(self, scores: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return softmax(np.where(self.causal if mask is None else mask, scores, -np.inf)).astype(self.format)

    def meant(self) -> Any:
        return ["causal", self.causal][int(self.random.integers(2))]


def named(found: Diagnosis) -> list[str]:
    return [one.code for one in found.findings if one.severity != "info"]


def judged(x: Draw, weights: np.ndarray, **arrays: Any) -> Diagnosis:
    return diagnose(weights, meant=x.meant(), **({"scores": x.scores} | arrays))


def says(found: Diagnosis, *words: str) -> None:
    (finding,) = (one for one in found.findings if one.severity != "info")
    assert (found.verdict, finding.code, finding.level) == ("faulty", "scores-mismatch", "certain")
    for word in words:
        assert word in finding.message


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", [4.0, 0.25, 0.125])
def test_a_scale_is_told(seed: int, scale: float) -> None:
    x = Draw(seed)
    says(judged(x, x.weights(scale * x.scores)), f"softmax of {scale:.3g} times these scores")
    assert named(judged(x, x.weights(x.scores))) == []
    masked = np.where(x.causal, x.scores, -np.inf)
    says(judged(x, x.weights(scale * x.scores), masked_scores=masked), f"{scale:.3g} times")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fill", [-1e9, -1e8])
def test_scores_drown_in_a_large_number(seed: int, fill: float) -> None:
    x = Draw(seed)
    masked = np.where(x.causal, np.float32(fill) + x.scores.astype(np.float32), -np.inf).astype(np.float32)
    weights = softmax(masked).astype(np.float32)
    says(judged(x, weights, masked_scores=masked), "drown", "float32")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bias_that_is_missing_in_later_rows(seed: int) -> None:
    x = Draw(seed)
    start = int(x.random.integers(2, x.tokens - 1))
    late = np.where(np.arange(x.tokens)[:, None] >= start, 0, x.bias)
    mask = np.where(x.causal, x.bias, -np.inf).astype(x.format)
    found = judged(x, x.weights(x.scores + late), mask=mask)
    says(found, "the bias given is missing")
    assert found.findings[0].queries == tuple(range(start, x.tokens))
    assert named(judged(x, x.weights(x.scores + x.bias), mask=mask)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bias_of_another_sample(seed: int) -> None:
    x = Draw(seed)
    bias = x.random.normal(size=(x.samples, 1, x.tokens, x.tokens)).astype(x.format)
    mask = np.where(x.causal, bias, -np.inf).astype(x.format)
    found = judged(x, x.weights(x.scores + np.roll(bias, 1, 0)), mask=mask)
    says(found, "bias of another sample")


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_another_head(seed: int) -> None:
    x = Draw(seed)
    says(judged(x, x.weights(np.roll(x.scores, 1, 1))), "another head")


@pytest.mark.parametrize("seed", SEEDS)
def test_samples_without_a_key_in_common_are_not_said_to_be_exchanged(seed: int) -> None:
    """Two rows that share one key are the softmax of any scores there."""
    x = Draw(seed)
    x.scores, tokens = x.scores[:2], x.tokens
    keep = np.stack([np.arange(tokens) < tokens // 2, np.arange(tokens) >= tokens // 2])
    mask = np.broadcast_to(keep[:, None, None], x.scores.shape)
    noise = x.weights(x.random.normal(size=x.scores.shape), mask)
    found = diagnose(noise, scores=x.scores, key_keep=keep, meant="padding")
    assert "scores-mismatch" in named(found)
    assert not any("another sample" in one.message for one in found.findings)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_key_that_a_score_function_raises(seed: int) -> None:
    x = Draw(seed)
    raised = x.scores + np.where(np.arange(x.tokens) == 0, 1.5, 0)
    says(judged(x, x.weights(raised)), "key 1 moved by the same amount", "1.5")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_softmax_in_parts(seed: int) -> None:
    """Each half of the keys has a normaliser of its own, as where parts are merged without their sums."""
    x = Draw(seed)
    half = np.arange(x.tokens) < 2
    parts = [softmax(np.where(x.causal & part, x.scores, -np.inf)) for part in (half, ~half)]
    weights = (parts[0] + parts[1]) / np.maximum(1, sum(one.any(-1, keepdims=True) for one in parts))
    says(judged(x, weights.astype(x.format)), "normaliser of their own")


@pytest.mark.parametrize("seed", SEEDS)
def test_what_nothing_explains_is_told_too(seed: int) -> None:
    x = Draw(seed)
    noise = x.random.normal(size=x.scores.shape)
    says(judged(x, x.weights(x.scores + noise)), "no known mistake explains it")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("practice", ["cap", "distance"])
def test_common_practice_is_no_mistake(seed: int, practice: str) -> None:
    """Scores are capped after they are shown (Gemma 2); a relative bias is added that nobody gave (T5)."""
    x = Draw(seed)
    table = x.random.normal(size=(x.heads, 2 * x.tokens)).astype(x.format)
    distance = np.subtract.outer(np.arange(x.tokens), np.arange(x.tokens)) + x.tokens
    made = 2.0 * np.tanh(x.scores / 2.0) if practice == "cap" else x.scores + table[:, distance]
    found = judged(x, x.weights(made))
    assert (found.verdict, named(found)) == ("sound", [])
    assert "scores-mismatch" in [one.code for one in found.findings]


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_zero_that_count_as_blocked(seed: int) -> None:
    x = Draw(seed)
    zero = np.maximum(x.scores + 0.3, 0)
    zero[..., 0] += 0.5
    masked = np.where(x.causal & (zero != 0), zero, -np.inf).astype(x.format)
    found = judged(x, softmax(masked).astype(x.format), scores=zero, masked_scores=masked)
    assert (found.verdict, named(found)) == ("faulty", ["over-blocked"])
    assert "scores of 0 were taken for blocked" in found.findings[0].message


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("view", ["mask", "weights"])
@pytest.mark.parametrize("heads", [1, 4])
def test_a_mask_is_no_choice_of_the_top_k(seed: int, view: str, heads: int) -> None:
    """Chunks where a window is meant, and windows of an image where all is: the same in every head."""
    random = np.random.default_rng(seed)
    size, count = int(random.integers(3, 6)), int(random.integers(3, 5))
    number = np.arange(size * count) // size
    causal = np.tri(size * count, dtype=bool)
    chunks = causal & (number[:, None] == number)
    side = np.arange(16)
    window = side // 4 // 2 * 2 + side % 4 // 2
    for mask, meant, words in (
        (chunks, f"causal+window:{size}", f"in force: causal, in chunks of {size}; meant: a causal window of {size}"),
        (window[:, None] == window, "full", "tokens in 4 groups, each of which sees itself alone; meant: every key"),
    ):
        scores = random.normal(size=(1, heads, *mask.shape))
        given = {"mask": mask} if view == "mask" else {"weights": softmax(np.where(mask, scores, -np.inf))}
        found = diagnose(**given, meant=meant)
        assert (found.verdict, named(found)) == ("faulty", ["over-blocked"])
        assert words in found.findings[0].message


WRONG_BY_TURNS = [
    ("window:2", "window:3", "window:5", "a window from -1 to 1", "a window from -2 to 2"),
    ("causal+window:3", "causal+window:5", "window:5", "a causal window of 3", "a causal window of 5"),
    ("causal+window:2", "causal+chunked:4", "causal+window:5", "a causal window of 2", "causal, in chunks of 4"),
]
"""Two masks, what was meant in the place of both, and the words for the two."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize(("axis", "layers", "heads"), [("layer", 4, 2), ("head", 1, 4)])
@pytest.mark.parametrize(("one", "other", "meant", "first", "second"), WRONG_BY_TURNS)
def test_masks_that_differ_by_layer_or_head_are_no_choice_of_the_top_k(
    seed: int,
    samples: int,
    axis: str,
    layers: int,
    heads: int,
    one: str,
    other: str,
    meant: str,
    first: str,
    second: str,
) -> None:
    masks = np.stack([build_meaning_mask(name, 10, 10) for name in (one, other, one, other)])
    scores = np.random.default_rng(seed).normal(size=(samples, layers, heads, 10, 10))
    found = diagnose(softmax(np.where(masks[:, None] if axis == "layer" else masks, scores, -np.inf)), meant=meant)
    assert (found.verdict, named(found)) == ("faulty", ["over-blocked"])
    assert f"in force: {first} in {axis} 1, 3; {second} in {axis} 2, 4; meant: " in found.findings[0].message


@pytest.mark.parametrize("seed", SEEDS)
def test_the_top_k_needs_a_proof(seed: int) -> None:
    random = np.random.default_rng(seed)
    tokens = 12
    scores = np.where(np.tri(tokens, dtype=bool), random.normal(size=(1, 1, tokens, tokens)), -np.inf)
    third = np.sort(scores, -1)[..., -3, None]
    assert diagnose(softmax(np.where(scores >= third, scores, -np.inf)), meant="causal").verdict == "sound"
    dropped = random.random(scores.shape) < 0.4
    dropped[..., np.eye(tokens, dtype=bool)] = False
    weights = softmax(np.where(dropped, -np.inf, scores))
    assert diagnose(weights, meant="causal").verdict != "sound"
    assert diagnose(weights, meant="causal", scores=np.where(np.isfinite(scores), scores, 0)).verdict == "faulty"
