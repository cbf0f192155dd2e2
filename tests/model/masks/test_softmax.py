"""Softmax in numpy against that of torch."""

from __future__ import annotations

import numpy as np
import torch

from attenscope.masks.softmax import softmax

SCORES = np.random.default_rng(0).normal(size=(2, 3, 4, 5)) * 40


def test_it_is_that_of_torch() -> None:
    np.testing.assert_allclose(softmax(SCORES), torch.from_numpy(SCORES).softmax(-1).numpy(), atol=1e-15)
    blocked = np.where(np.arange(5) < 3, SCORES, -np.inf)
    np.testing.assert_allclose(softmax(blocked), torch.from_numpy(blocked).softmax(-1).numpy(), atol=1e-15)


def test_a_row_without_a_key_is_zero_or_as_in_torch_nan() -> None:
    empty = np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    np.testing.assert_array_equal(softmax(empty), [[0, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(softmax(empty, nan_rows=True), torch.from_numpy(empty).softmax(-1).numpy())


def test_nan_stays_in_its_row() -> None:
    found = softmax(np.array([[np.nan, 0.0], [0.0, 0.0]]))
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], [0.5, 0.5])
