"""Everything the gallery shows: the faults of the catalogue, then bugs from public trackers."""

from __future__ import annotations

from model.faults.exhibits import Exhibit
from model.faults.gallery import EXHIBITS
from model.faults.reported.report import Report
from model.faults.reported.reports import REPORTS

from .entry_text import EntryText
from .texts import TEXTS


def _about(report: Report) -> EntryText:
    return EntryText(report.title, report.symptoms, report.says, report.place)


ENTRIES: dict[str, Exhibit] = EXHIBITS | {name: one.exhibit for name, one in REPORTS.items()}
"""By name, in the order of the list."""
ABOUT: dict[str, EntryText] = TEXTS | {name: _about(one) for name, one in REPORTS.items()}
PLACES: dict[str, str] = {name: one.where.replace("#", " ") for name, one in REPORTS.items()}
"""Repository and number of those that were reported."""
