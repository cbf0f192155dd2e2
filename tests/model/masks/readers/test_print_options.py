"""Prints under any options of torch and numpy are read as what they show, or refused where they leave something out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.read_text import read_printed_tensors

SEEDS = range(60)
PROFILES = ("default", "short", "full")


@contextmanager
def torch_options(**options: Any) -> Iterator[None]:
    try:
        torch.set_printoptions(**options)
        yield
    finally:
        torch.set_printoptions(profile="default", sci_mode=None)


def draw_array(random: np.random.Generator) -> np.ndarray:
    """Return weights, an additive mask, a mask, or 0 and 1, with one to four axes before the keys."""
    shape = (*random.integers(1, 4, random.integers(0, 3)), *random.integers(2, 14, 2))
    allowed = np.broadcast_to(np.tri(*shape[-2:]).astype(bool), shape)
    scores = np.where(allowed, random.normal(scale=random.choice([1, 8]), size=shape), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    kinds = (weights, weights.astype(np.float32), np.where(allowed, 0, -np.inf), allowed, allowed.astype(np.int64))
    return kinds[random.integers(len(kinds))].copy()


def check(text: str, array: np.ndarray, digits: int) -> None:
    if "..." in text:
        with pytest.raises(DiagnosisError, match="shortened"):
            read_printed_tensors(text)
        return
    (found,) = read_printed_tensors(text).values()
    assert found.shape == array.shape
    if array.dtype.kind in "bi":
        np.testing.assert_array_equal(found, array)
    else:
        finite = np.isfinite(array)
        np.testing.assert_array_equal(found[~finite], array[~finite])
        np.testing.assert_allclose(found[finite], array[finite], rtol=10.0**-digits, atol=10.0**-digits)


@pytest.mark.parametrize("seed", SEEDS)
def test_torch(seed: int) -> None:
    random = np.random.default_rng(seed)
    array, digits = draw_array(random), int(random.integers(0, 9))
    options: dict[str, Any] = {
        "precision": digits,
        "threshold": int(random.choice([4, 60, 1000, 10**6])),
        "edgeitems": int(random.integers(1, 5)),
        "linewidth": int(random.integers(10, 200)),
        "sci_mode": [None, True, False][seed % 3],
    }
    with torch_options(**options):
        check(str(torch.from_numpy(array)), array, digits)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("size", [5, 40])
def test_profiles_of_torch(profile: str, size: int) -> None:
    array = np.tri(size) / np.arange(1, size + 1)[:, None]
    with torch_options(profile=profile):
        text = f"weights = {torch.from_numpy(array)!r}"
    assert ("..." in text) == (size == 40 and profile != "full")
    check(text, array, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    array, digits = draw_array(random), int(random.integers(0, 9))
    options: dict[str, Any] = {
        "precision": digits,
        "threshold": int(random.choice([4, 60, 1000, 10**6])),
        "edgeitems": int(random.integers(1, 5)),
        "linewidth": int(random.integers(10, 200)),
        "suppress": bool(random.integers(2)),
        "sign": str(random.choice(["-", "+", " "])),
        "floatmode": str(random.choice(["fixed", "unique", "maxprec", "maxprec_equal"])),
        "infstr": str(random.choice(["inf", "Inf", "Infinity"])),
        "legacy": [False, "1.21", "1.25"][seed % 3],
    }
    with np.printoptions(**options):
        check(repr(array) if seed % 2 else str(array), array, digits)


def test_a_word_of_ones_own_for_infinity_is_refused() -> None:
    with np.printoptions(infstr="∞"), pytest.raises(DiagnosisError, match="∞"):
        read_printed_tensors(str(np.array([[0, -np.inf], [0, 0]])))


def test_a_format_of_ones_own_is_read() -> None:
    array = np.array([[1, 0], [0.25, 0.75]])
    with np.printoptions(formatter={"float": "{:.3f}".format}):
        check(str(array), array, 3)
