"""Correct attention of every kind gives nothing above info, whatever is given along with it."""

from __future__ import annotations

import pytest

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.diagnosis_checks import diagnose_arrays
from tests.model.masks.sound_cases import KINDS, sound


@pytest.mark.parametrize("kind", KINDS)
def test_correct_attention_is_sound(kind: str) -> None:
    found = {
        seed: one.findings
        for seed in range(60)
        if not (one := diagnose_arrays(normalise_arrays(sound(kind, seed)))).sound
    }
    assert found == {}
