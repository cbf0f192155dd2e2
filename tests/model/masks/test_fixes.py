"""Fixes carried out on the arrays, and judged again."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.gallery.fault_generators import generate_fault_case, list_fault_codes
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import Arrays
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.findings import Diagnosis
from attenscope.masks.fixes import apply_fix, can_fix

SEEDS = range(4)
MOST = 5


def mended(arrays: Arrays) -> tuple[Arrays, Diagnosis, list[str]]:
    """Fix after fix until nothing is above info, or no fix can be carried out."""
    found, done = diagnose_arrays(arrays), []
    for _ in range(MOST):
        bad = (one.code for one in found.findings if one.severity != "info" and can_fix(one.code, arrays, found))
        code = next(bad, None)
        if code is None:
            break
        arrays = normalise_arrays(apply_fix(code, arrays, found).arrays, arrays.map)
        found = diagnose_arrays(arrays)
        done.append(code)
    return arrays, found, done


@pytest.mark.parametrize("code", list_fault_codes())
def test_fixes_leave_nothing_wrong(code: str) -> None:
    for seed in SEEDS:
        case = generate_fault_case(code, True, seed)
        arrays = normalise_arrays(case.arrays)
        _, found, done = mended(arrays)
        needs_scores = code in ("softmax-axis", "dropout-on") and arrays.scores is None
        holes_given = code == "hole-inside" and arrays.key_keep is not None
        for_the_model = code in ("batch-axis", "positions-wrong", "scores-mismatch")
        if not (needs_scores or holes_given or for_the_model):
            assert found.sound, (seed, done, [one.code for one in found.findings])
            assert done


def test_weights_alone_are_masked_exactly() -> None:
    """Leaving cells out of a softmax is dividing by the new sum."""
    scores = np.random.default_rng(0).normal(size=(5, 5))
    lifted = np.exp(scores)
    arrays = normalise_arrays({"weights": lifted / lifted.sum(-1, keepdims=True), "meant": np.tri(5, dtype=bool)})
    found = diagnose_arrays(arrays)
    result = apply_fix("future-visible", arrays, found)
    kept = lifted * np.tri(5)
    np.testing.assert_allclose(result.arrays["weights"][0, 0, 0], kept / kept.sum(-1, keepdims=True), atol=1e-6)
    assert result.invented_scores == 0


def test_a_score_is_made_up_only_where_the_fix_opens_a_cell() -> None:
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    arrays = normalise_arrays({"weights": weights, "meant": np.tri(3, dtype=bool)})
    assert apply_fix("over-blocked", arrays, diagnose_arrays(arrays)).invented_scores == 1


def test_padding_that_the_meant_mask_alone_names_is_blocked() -> None:
    meant = np.broadcast_to(np.arange(5) < 3, (5, 5))
    arrays = normalise_arrays({"weights": np.full((5, 5), 0.2), "meant": meant})
    result = apply_fix("padding-visible", arrays, diagnose_arrays(arrays))
    np.testing.assert_allclose(result.arrays["weights"][0, 0, 0], meant / 3, atol=1e-6)


def test_a_fix_without_its_arrays_is_refused() -> None:
    case = generate_fault_case("dropout-on", True, 0)
    arrays = normalise_arrays({"weights": case.arrays["weights"]})
    found = diagnose_arrays(arrays)
    assert not can_fix("dropout-on", arrays, found)
    with pytest.raises(ValueError, match="dropout-on"):
        apply_fix("dropout-on", arrays, found)
