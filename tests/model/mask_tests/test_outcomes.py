"""The names of the behaviour tests, and the verdict on a difference."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from attenscope.language import say, use_language
from attenscope.mask_tests.checks import TEST_FUNCTIONS
from attenscope.mask_tests.outcomes import CACHE, CHECKS, FUTURE_TOKEN, PADDING_CONTENT, judge_difference, select_checks


def test_every_test_has_a_number_and_a_code_of_its_own() -> None:
    assert [check.number for check in CHECKS] == [f"B{number}" for number in range(1, 9)]
    assert len({check.code for check in CHECKS}) == 8
    assert tuple(TEST_FUNCTIONS) == CHECKS


def test_the_documents_list_them() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mask-tests.md").read_text(encoding="utf-8")
    listed = "\n".join(f"| `{check.code}` | {check.number} | {check.title} |" for check in CHECKS)
    assert listed in page


def test_both_spellings_are_read_and_the_order_is_that_of_the_tests() -> None:
    assert select_checks(["padding-content", "B1", "B2"]) == (FUTURE_TOKEN, PADDING_CONTENT)
    assert select_checks(()) == ()
    with pytest.raises(ValueError, match=r"no behaviour test B9, causal; there are future-token \(B1\), "):
        select_checks(["B9", "causal", "B1"])


def test_a_reason_is_in_the_language_in_which_the_test_runs() -> None:
    with use_language("de"):
        outcome = judge_difference(CACHE, 0.5, where=say("padded at the left"))
    assert outcome.reason.startswith("stimmt nicht: Dekodieren mit Cache")
    assert outcome.reason.endswith("die größte Änderung ist 0,5, mit Padding links")


def test_a_difference_is_judged_by_its_limit() -> None:
    assert judge_difference(CACHE, 0.0).status == judge_difference(CACHE, 0.5, 0.5).status == "pass"
    assert judge_difference(CACHE, 1e-30).status == judge_difference(CACHE, math.nan, 1.0).status == "fault"
    assert (
        judge_difference(CACHE, 1.0).reason
        == "not so: cached decoding equals one full forward; the largest change is 1"
    )
