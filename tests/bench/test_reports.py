"""Public reports rebuilt: named, no tick over a broken one, no alarm over a fixed one, and fixes that mend."""

from __future__ import annotations

import re

import pytest

from attenscope.gallery.reported_padding_bugs import REPORTS as EXHIBITED
from bench.reports.__main__ import TABLE
from bench.reports.cases import REPORTS, Report
from bench.reports.run import judge
from bench.reports.unseen import UNSEEN

MISNAMED = ("huggingface/transformers#30437",)
"""What is faulty by another name: a cache of which nothing is masked is told as a mask that is ignored."""
FIXED_ELSEWHERE = ("idiap/fast-transformers#131",)
"""What is fixed where the model is run."""


def test_there_are_sixty_that_the_gallery_does_not_show() -> None:
    places = [report.where for report in REPORTS]
    assert len(set(places)) == len(places) >= 60
    assert not {report.where for report in UNSEEN} & set(places)
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", place) for place in places)
    assert not {one.where for one in EXHIBITED.values()} & set(places)


@pytest.mark.parametrize("report", [*REPORTS, *UNSEEN], ids=lambda report: report.where)
def test_a_report(report: Report) -> None:
    found = judge(report)
    assert not found.ticked
    assert not found.alarmed
    assert found.fixed or report.where in FIXED_ELSEWHERE
    assert found.named or report.where in MISNAMED
    row = next(line for line in TABLE.read_text(encoding="utf-8").splitlines() if f"| {report.where} |" in line)
    assert f"| {', '.join(found.said)} | {'yes' if found.exact else 'no'} |" in row
