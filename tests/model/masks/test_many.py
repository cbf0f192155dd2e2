"""More than 700 faulty and as many sound cases, of other sizes and scores than the recipes draw; and their fixes."""

from __future__ import annotations

import pytest

from attenscope.gallery.fault_generators import RECIPES
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.diagnosis_checks import diagnose_arrays
from tests.model.masks.many_cases import cases
from tests.model.masks.test_fixes import mended

EACH, FAULTY, SOUND = 20, 700, 700
NAMED, MENDED = 0.99, 0.95
BY_HAND = ("batch-axis", "positions-wrong")
"""Codes whose fix is made in the model."""


@pytest.mark.slow
def test_faults_of_other_sizes_and_scores_are_named() -> None:
    missed, total = [], 0
    for code, seed, arrays in cases(True, EACH):
        total += 1
        named = [one.code for one in diagnose_arrays(normalise_arrays(arrays)).findings if one.severity != "info"]
        if code not in named:
            missed.append((code, seed, named))
    assert total >= FAULTY
    assert len(missed) <= (1 - NAMED) * total, missed


@pytest.mark.slow
def test_sound_attention_of_other_sizes_and_scores_is_never_an_error() -> None:
    alarms, total = [], 0
    for code, seed, arrays in cases(False, EACH):
        total += 1
        found = diagnose_arrays(normalise_arrays(arrays))
        if not found.sound:
            alarms.append((code, seed, [one.code for one in found.findings]))
    assert total >= SOUND
    assert alarms == []


@pytest.mark.slow
def test_fixes_leave_nothing_wrong_in_other_sizes_and_scores() -> None:
    wrong, total = [], 0
    for code, seed, arrays in cases(True, EACH // 4):
        arranged = normalise_arrays(arrays)
        without_scores = code in ("softmax-axis", "dropout-on") and arranged.scores is None
        if code in BY_HAND or without_scores or (code == "hole-inside" and arranged.key_keep is not None):
            continue
        total += 1
        _, found, _ = mended(arranged)
        if not found.sound:
            wrong.append((code, seed, [one.code for one in found.findings]))
    assert total >= 2 * len(RECIPES)
    assert len(wrong) <= (1 - MENDED) * total, wrong
