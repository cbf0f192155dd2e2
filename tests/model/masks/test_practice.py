"""Sound practice of 2026 gives no alarm: chunks beside padding, sinks on one layer, padding between segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.masks.softmax import softmax
from attenscope.masks.structure import parse_structure

SEEDS = range(6)
FORMATS = (np.float32, np.float64, np.float16)


def named(found: Diagnosis) -> list[str]:
    return [one.code for one in found.findings if one.severity != "info"]


def weights(mask: np.ndarray, seed: int, heads: int = 2) -> np.ndarray:
    """Weights of (B, Q, K) or (B, L, Q, K) masks, zeros in rows without a key."""
    mask = mask[:, :, None] if mask.ndim == 4 else mask[:, None]
    shape = (*mask.shape[:-3], heads, *mask.shape[-2:])
    return softmax(np.where(mask, np.random.default_rng(seed).normal(size=shape), -np.inf)).astype(FORMATS[seed % 3])


def left_padded(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Padding (B, K), and the places of the real tokens."""
    random = np.random.default_rng(seed)
    size, pads = int(random.integers(9, 15)), random.integers(0, 4, (int(random.integers(1, 4)), 1))
    return np.arange(size) >= pads, np.arange(size) - pads


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("meant", ["causal+chunked:3", "blocks:3", "causal+chunked:3 / causal"])
@pytest.mark.parametrize("told", [True, False])
def test_chunks_count_from_the_first_real_token(seed: int, meant: str, told: bool) -> None:
    keep, place = left_padded(seed)
    kinds = {
        "causal": place[:, None, :] <= place[:, :, None],
        "blocks:3": place[:, None, :] // 3 <= place[:, :, None] // 3,
    }
    kinds["causal+chunked:3"] = kinds["causal"] & (place[:, None, :] // 3 == place[:, :, None] // 3)
    layers = np.stack([kinds[one] & keep[:, None, :] & keep[:, :, None] for one in meant.split(" / ")], 1)
    more: dict[str, Any] = {"key_keep": keep} if told else {}
    found = diagnose(weights(layers if layers.shape[1] > 1 else layers[:, 0], seed), meant=meant, **more)
    assert (found.verdict, named(found)) == ("sound", [])
    late = kinds["causal"] & (np.arange(keep.shape[1])[:, None] // 3 == np.arange(keep.shape[1]) // 3)
    if meant == "causal+chunked:3" and ((~keep).sum(-1) % 3).any() and told:
        wrong = diagnose(weights(late & keep[:, None, :] & keep[:, :, None], seed), meant=meant, **more)
        assert wrong.verdict == "faulty"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_fix_of_layers_in_turn_counts_chunks_from_the_padding(seed: int) -> None:
    keep, _ = left_padded(seed)
    causal = np.tri(keep.shape[1], dtype=bool) & keep[:, None, :]
    found = diagnose(weights(np.stack([causal, causal], 1), seed), meant="causal+chunked:3 / causal", key_keep=keep)
    assert found.verdict == "faulty"
    assert all("// 3" not in one.fix for one in found.findings) or keep[:, 0].all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_told_from_the_weights_for_layers_in_turn(seed: int, side: str) -> None:
    keep, _ = left_padded(seed)
    keep = keep if side == "left" else keep[:, ::-1]
    size = keep.shape[1]
    window = parse_structure("window:3").build_mask(size, size)
    layers = np.stack([one & keep[:, None, :] for one in (np.ones((size, size), bool), window, window)], 1)
    known = "open" if keep.all() else "sound"  # Without a column that nobody looks at, nothing says what is padding.
    assert diagnose(weights(layers, seed), meant="padding / window:3 / window:3").verdict == known
    swapped = diagnose(weights(layers[:, ::-1], seed), meant="padding / window:3 / window:3", key_keep=keep)
    assert named(swapped) == ["wrong-layer-pattern"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("meant", ["causal+window:3", "causal"])
def test_a_learned_sink_on_one_layer(seed: int, layers: int, meant: str) -> None:
    random = np.random.default_rng(seed)
    size, heads = int(random.integers(6, 12)), int(random.integers(1, 4))
    mask = parse_structure(meant).build_mask(size, size)
    scores = np.where(mask, random.normal(size=(1, layers, heads, size, size)), -np.inf)
    sink = np.broadcast_to(random.normal(size=(1, layers, heads, 1, 1)), (*scores.shape[:-1], 1))
    found = diagnose(softmax(np.concatenate([scores, sink], -1))[..., :-1].astype(np.float32), meant=meant)
    assert (found.verdict, named(found)) == ("sound", [])
    assert "extra-mass" in [one.code for one in found.findings]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("said", [{}, {"map": "decoder"}], ids=str)
def test_learned_sinks_beside_padding_of_which_nothing_is_said(seed: int, side: str, said: dict[str, str]) -> None:
    random = np.random.default_rng(seed)
    size, layers = int(random.integers(8, 20)), int(random.integers(1, 4))
    keep = np.ones((2, size), bool)
    keep[1, : size // 3] = False
    keep = keep if side == "left" else keep[:, ::-1]
    window = parse_structure("causal+window:3").build_mask(size, size)
    mask = window & keep[:, None, None, None, :]
    scores = np.where(mask, random.normal(size=(2, layers, 2, size, size)), -np.inf)
    sink = np.broadcast_to(random.normal(size=(1, layers, 2, 1, 1)), (*scores.shape[:-1], 1))
    found = diagnose(softmax(np.concatenate([scores, sink], -1))[..., :-1].astype(np.float32), key_keep=keep, **said)
    assert named(found) == []
    assert "extra-mass" in [one.code for one in found.findings]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("given", ["meant", "mask", "scores", "masked_scores"])
def test_the_finite_fill_of_swin(seed: int, given: str) -> None:
    """A fill of -100, on the regions of a shifted window; one of -15 leaves weight that counts."""
    random = np.random.default_rng(seed)
    region = random.integers(0, 3, (4, 1, 16))
    allowed = region[..., :, None] == region[..., None, :]
    scores = random.normal(scale=random.choice([1, 3]), size=(4, 2, 16, 16)).astype(np.float32)

    def judge(fill: float) -> Diagnosis:
        filled = np.where(allowed, scores, scores + np.float32(fill))
        more = {
            "meant": {"meant": allowed},
            "mask": {"mask": np.where(allowed, 0, fill).astype(np.float32)},
            "scores": {"scores": scores, "meant": allowed},
            "masked_scores": {"masked_scores": filled, "meant": allowed},
        }
        return diagnose(softmax(filled), **more[given])

    found = judge(-100)
    assert (found.verdict, named(found)) == ("open" if given == "mask" else "sound", [])
    assert "weak-fill" in [one.code for one in found.findings]
    assert named(judge(-15)) == ["weak-fill"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("meant", [None, "padding"])
def test_padding_between_two_segments(seed: int, meant: str | None) -> None:
    random = np.random.default_rng(seed)
    text, image = int(random.integers(4, 8)), int(random.integers(3, 7))
    real = np.minimum(text - 2, random.integers(1, text, (int(random.integers(1, 4)), 1)))
    keep = (np.arange(text + image) < real) | (np.arange(text + image) >= text)
    whole = np.ones((len(keep), text + image, text + image), bool)
    found = diagnose(weights(whole & keep[:, None, :], seed), key_keep=keep, meant=meant)
    assert named(found) == []
    broken = diagnose(weights(whole, seed), key_keep=keep, meant=meant)
    assert named(broken) == ["padding-visible"]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_missing_token_is_still_a_hole(seed: int) -> None:
    keep = np.ones((2, 9), bool)
    keep[:, 2 + seed % 5] = False
    assert "hole-inside" in named(diagnose(weights(np.broadcast_to(keep[:, None], (2, 9, 9)), seed), key_keep=keep))


def test_a_difference_of_two_softmaxes_is_explained() -> None:
    first, second = (weights(np.tri(6, dtype=bool)[None], seed) for seed in (0, 3))
    with pytest.raises(DiagnosisError, match=r"sums to 0\.40: the difference of two softmaxes"):
        diagnose(first - 0.6 * second)
    with pytest.raises(DiagnosisError, match="name them scores"):
        diagnose(np.random.default_rng(0).normal(size=(6, 6)))
