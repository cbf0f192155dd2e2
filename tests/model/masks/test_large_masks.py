"""A mask of many tokens, alone: judged in a few times its own memory, and as a small one is."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
import torch

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.diagnose import diagnose

TOKENS = 4096
MOST = 6
"""Times its own memory that a mask of float32 may take, itself among them."""
LOWEST = float(np.finfo(np.float32).min)


def causal_mask(tokens: int, fill: float, *opened: tuple[int, int]) -> np.ndarray:
    mask = np.where(np.tri(tokens, dtype=bool), np.float32(0), np.float32(fill))
    for cell in opened:
        mask[cell] = 0
    return mask


@pytest.mark.parametrize("meant", [None, "causal"])
@pytest.mark.parametrize("opened", [(), ((100, 3000),)], ids=["sound", "a leak"])
def test_a_large_mask_in_little_memory(meant: str | None, opened: tuple[tuple[int, int], ...]) -> None:
    mask = causal_mask(TOKENS, LOWEST, *opened)
    tracemalloc.start()
    found = diagnose(mask=mask, meant=meant)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak + mask.nbytes < MOST * mask.nbytes
    assert found.verdict == ("open" if meant is None else "faulty" if opened else "sound")
    if meant and opened:
        (leak,) = found.findings
        assert (leak.code, leak.queries, leak.keys) == ("leak", (100,), (3000,))


@pytest.mark.slow
@pytest.mark.parametrize("meant", [None, "causal"])
def test_a_mask_of_8192_tokens_in_six_seconds(meant: str | None) -> None:
    mask = causal_mask(8192, LOWEST, (100, 5000))
    took = []
    for _ in range(3):  # A system that is short of memory takes seconds to hand it out.
        before = time.process_time()
        assert diagnose(mask=mask, meant=meant).verdict == ("faulty" if meant else "open")
        took.append(time.process_time() - before)
    assert min(took) < 6


@pytest.mark.parametrize("fill", [LOWEST, -1e4, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_of_fills_alone_are_told_as_softmax_leaves_them(fill: float, kind: type[np.floating]) -> None:
    mask = causal_mask(8, fill).astype(kind)
    mask[3] = fill
    found = diagnose(mask=mask, meant="causal")
    (row,) = [one for one in found.findings if one.severity != "info"]
    assert row.queries == (3,)
    assert ("NaN" in row.message) == np.isneginf(fill)


@pytest.mark.parametrize("seed", range(8))
def test_weights_that_a_mask_implies_are_its_softmax(seed: int) -> None:
    random = np.random.default_rng(seed)
    levels = np.array([0, -np.inf, -1e3, -1001, -1e9, LOWEST], np.float32)
    mask = levels[random.integers(0, len(levels), (2, 3, 6, 7))]
    mask[0, 0, 2] = levels[1:][random.integers(0, 5, 7)]
    mask[0, 0, 3] = -np.inf
    implied = normalise_arrays({"mask": mask})
    expected = torch.softmax(torch.from_numpy(mask), -1).numpy()
    np.testing.assert_allclose(implied.weights[:, 0], expected, rtol=1e-6)
    largest = np.nanmax(expected, -1, keepdims=True, initial=0)
    uneven = (expected > 0) & (np.abs(expected - largest) > 1e-6)
    assert implied.has_even_rows == (not uneven.any())
