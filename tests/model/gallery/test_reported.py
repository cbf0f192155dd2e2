"""Bugs of public trackers: the broken program is named by its code, the fixed one is sound."""

from __future__ import annotations

import re

import numpy as np
import pytest

from attenscope.gallery.exhibits import EXHIBITS, run_exhibit
from attenscope.gallery.reported_padding_bugs import REPORTS
from attenscope.masks.fault_catalogue import FAULTS


def test_there_are_many_reports_each_with_its_place_and_a_name_of_its_own() -> None:
    assert len(REPORTS) >= 50
    assert not set(REPORTS) & set(EXHIBITS)
    places = [one.where for one in REPORTS.values()]
    assert len(set(places)) == len(places)
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", place) for place in places)
    assert len({one.code for one in REPORTS.values()}) >= 18
    assert {one.code for one in REPORTS.values()} <= set(FAULTS)


@pytest.mark.parametrize("name", REPORTS)
def test_the_broken_program_is_named_and_the_fixed_one_is_sound(name: str) -> None:
    report = REPORTS[name]
    broken, fixed = run_exhibit(report.exhibit)
    assert broken.codes[0] == (report.tests[0] if report.subject else report.code)
    assert fixed.codes == ()
    assert not fixed.error
    assert not np.isnan(fixed.weights).any()
