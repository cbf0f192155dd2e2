"""What may reach an output through several layers, by hand and against the gradients of a small model."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attenscope.mask_tests.outcomes import compute_layer_reach, find_reachable_inputs, measure_dependencies
from attenscope.mask_tests.subjects import Subject

ROW, COLUMN = np.indices((6, 6))
WINDOW = (ROW >= COLUMN) & (ROW - COLUMN < 2)


def test_a_window_adds_up_over_the_layers() -> None:
    np.testing.assert_array_equal(compute_layer_reach(WINDOW, 3), (ROW >= COLUMN) & (ROW - COLUMN < 4))


def test_one_layer_reaches_what_it_allows_and_its_own_input() -> None:
    np.testing.assert_array_equal(compute_layer_reach(ROW < 0, 1), np.eye(6, dtype=bool))
    np.testing.assert_array_equal(compute_layer_reach(COLUMN > ROW, 1), COLUMN >= ROW)


def test_samples_are_reached_each_by_its_own_mask() -> None:
    causal = COLUMN <= ROW
    np.testing.assert_array_equal(
        compute_layer_reach(np.stack([WINDOW, causal]), 2), np.stack([compute_layer_reach(WINDOW, 2), causal])
    )


def test_gradients_arrive_from_what_is_reachable_and_nothing_else() -> None:
    weights = torch.tensor(WINDOW).float()

    def run(x: Tensor, keep: Tensor) -> Tensor:
        for _ in range(2):
            x = x + (weights * keep[:, None, :].float()) @ x
        return x

    keep = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    subject = Subject(run, torch.randn(2, 6, 3), keep, True, layers=2, allowed=torch.tensor(WINDOW))
    found = measure_dependencies(subject)
    assert found is not None
    assert torch.equal(found > 0, find_reachable_inputs(subject))
