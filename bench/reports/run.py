"""One report judged: broken and fixed, in some draws, and its printed fixes executed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from bench.reports.cases import Draw, Report
from tests.model.masks.executed_fixes import execute_fixes

SEEDS = range(3)


@dataclass(frozen=True)
class Outcome:
    """What was said of a report, in all draws."""

    report: Report
    said: tuple[str, ...]
    """The first code of each draw, those that differ."""
    named: bool
    """Whether it is faulty by its code, or by one that helps as well."""
    exact: bool
    """Whether it is faulty by its code first, with the words that its message needs."""
    ticked: bool
    """Whether some draw is called sound although it is broken."""
    alarmed: bool
    """Whether something above information is said of the fixed side."""
    fixed: bool
    """Whether the printed fixes, executed, make it sound and take no meant cell away."""


def judge(report: Report) -> Outcome:
    """Return what is said of a report."""
    cases = [report.make(Draw(seed)) for seed in SEEDS]
    broken = [diagnose(**case[0]) for case in cases]
    first = [next((one for one in found.findings if one.severity != "info"), None) for found in broken]
    codes = [one.code if one else "nothing" for one in first]
    faulty = all(found.verdict == "faulty" for found in broken)
    helps = {report.code, *report.also}
    texts = [f"{one.message} queries {one.queries}" if one else "" for one in first]
    return Outcome(
        report,
        tuple(dict.fromkeys(codes)),
        faulty and all(code in helps for code in codes),
        faulty and all(code == report.code for code in codes) and all(report.words in text for text in texts),
        any(found.verdict == "sound" for found in broken),
        any(_is_alarm(diagnose(**case[1])) for case in cases),
        all(map(_is_mended, (case[0] for case in cases))),
    )


def _is_alarm(found: Diagnosis) -> bool:
    return any(one.severity != "info" for one in found.findings)


def _is_mended(arrays: dict[str, Any]) -> bool:
    """Whether the fixes of a broken case make it sound; what is fixed where the model is run is left out."""
    named = dict(arrays)
    meant = named.pop("meant") if isinstance(named.get("meant"), str) else None
    kind = named.pop("map", "")
    try:
        found, kept = execute_fixes(named, meant, kind)
    except (NameError, RuntimeError, TypeError, StopIteration):
        return False
    return kept and not _is_alarm(found)
