"""Every fault code: generated cases, broken and fixed. ``pytest -k wrong-axis`` runs one code."""

from __future__ import annotations

import pytest

from attenscope.gallery.fault_generators import generate_fault_case, list_fault_codes
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.fault_catalogue import FAULTS

CASES = [pytest.param(range(8), id="8"), pytest.param(range(8, 24), id="16 more", marks=pytest.mark.slow)]
"""Seeds of cases of a code."""
NOT_FAULTS = {"pad-query", "extra-mass"}


def above_info(code: str, broken: bool, seed: int) -> list[str]:
    found = diagnose_arrays(normalise_arrays(generate_fault_case(code, broken, seed).arrays)).findings
    return [one.code for one in found if one.severity != "info"]


def test_every_code_has_cases() -> None:
    assert set(list_fault_codes()) | NOT_FAULTS == set(FAULTS)


@pytest.mark.parametrize("seeds", CASES)
@pytest.mark.parametrize("code", list_fault_codes())
def test_broken_attention_is_named(code: str, seeds: range) -> None:
    missed = [seed for seed in seeds if code not in above_info(code, True, seed)]
    assert missed == []


@pytest.mark.parametrize("seeds", CASES)
@pytest.mark.parametrize("code", list_fault_codes())
def test_fixed_attention_is_sound(code: str, seeds: range) -> None:
    wrong = {seed: found for seed in seeds if (found := above_info(code, False, seed))}
    assert wrong == {}
