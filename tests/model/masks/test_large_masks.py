"""A mask of many tokens, alone: judged in a few times its own memory, and as a small one is."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.diagnose import diagnose
from attenscope.masks.fault_hypotheses import find_positions_counting_padding

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


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (
            {"scores": np.zeros((2**20, 1)), "mask": np.zeros((1, 2**20))},
            "The mask and the scores broadcast to 1,099,5",
        ),
        (
            {"key_keep": np.ones((2**18, 16), bool), "mask": np.ones((2**18, 16), bool)},
            "The mask and the padding broadcast to 1,099,511,627,776 cells; 67,108,864 are read.",
        ),
    ],
    ids=["scores", "padding"],
)
def test_arrays_that_make_more_cells_together_than_are_read_are_refused(arrays: dict[str, Any], said: str) -> None:
    with pytest.raises(DiagnosisError, match=said):
        diagnose(**arrays)


def pad_every_other_sample(samples: int) -> np.ndarray:
    """Padding (B, 4), True = a real token: the first two keys of every other sample."""
    keep = np.ones((samples, 4), bool)
    keep[::2, :2] = False
    return keep


def test_positions_of_many_samples_in_little_memory() -> None:
    keep = pad_every_other_sample(4096)
    positions = np.broadcast_to(np.arange(4), keep.shape)
    uniform = keep[:, None, None, None] / keep.sum(-1)[:, None, None, None, None]
    arrays = normalise_arrays({"weights": uniform, "key_keep": keep, "position_ids": positions})
    tracemalloc.start()
    found = find_positions_counting_padding(arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * keep.nbytes
    np.testing.assert_array_equal(found, keep & ~keep[:, :1])


def test_many_samples_in_another_order_in_little_memory() -> None:
    keep = pad_every_other_sample(4096)
    weights = keep[:, None, None, None] * np.random.default_rng(0).uniform(0.1, 1, (4096, 1, 1, 1, 4))
    tracemalloc.start()
    found = diagnose(weights / weights.sum(-1, keepdims=True), key_keep=keep[::-1])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * weights.nbytes
    assert [one.code for one in found.findings] == ["sample-order"]


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
