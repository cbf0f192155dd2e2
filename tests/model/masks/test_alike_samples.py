"""Samples of a batch that are alike are looked at once, so that a long batch is judged in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.structure import Structure


@pytest.mark.parametrize("samples", [20, 2_000])
def test_a_structure_of_many_samples_is_built_as_often_as_that_of_few(
    monkeypatch: pytest.MonkeyPatch, samples: int
) -> None:
    built = []
    build = Structure.build_mask

    def count(structure: Structure, *sizes: Any, **rows: Any) -> np.ndarray:
        built.append(structure)
        return build(structure, *sizes, **rows)

    monkeypatch.setattr(Structure, "build_mask", count)
    causal = np.broadcast_to(np.tril(np.ones((3, 3), bool)), (samples, 3, 3))
    weights = causal / causal.sum(-1, keepdims=True)
    assert diagnose_arrays(normalise_arrays({"weights": weights[:, None, None], "mask": causal[:, None]})).sound
    assert len(built) < 100
