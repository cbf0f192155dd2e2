"""Every printed fix, executed on the arrays it was printed for, mends the verdict and takes no meant cell away."""

from __future__ import annotations

import pytest

from attenscope.gallery.fault_generators import generate_fault_case, list_fault_codes
from tests.model.masks.executed_fixes import BY_HAND, execute_fixes

NAMED = [code for code in list_fault_codes() if code not in BY_HAND]
MENDED = 0.95


def failed(code: str, seeds: range) -> list[tuple[str, int, list[str]]]:
    wrong = []
    for seed in seeds:
        found, kept = execute_fixes(generate_fault_case(code, True, seed).arrays)
        left = [one.code for one in found.findings if one.severity != "info"]
        if left or not kept:
            wrong.append((code, seed, left))
    return wrong


@pytest.mark.parametrize("code", NAMED)
def test_a_printed_fix_mends(code: str) -> None:
    assert failed(code, range(1)) == []


@pytest.mark.slow
def test_printed_fixes_mend_in_many_cases() -> None:
    wrong = [one for code in NAMED for one in failed(code, range(25))]
    assert len(wrong) <= (1 - MENDED) * 25 * len(NAMED), wrong
