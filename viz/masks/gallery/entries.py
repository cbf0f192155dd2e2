"""Everything the gallery shows: the faults of the catalogue, then bugs from public trackers."""

from __future__ import annotations

from model.faults.exhibits import Exhibit
from model.faults.gallery import EXHIBITS
from model.faults.reported.reports import REPORTS
from model.language.say import say

from .entry_text import EntryText
from .texts import TEXTS

ENTRIES: dict[str, Exhibit] = EXHIBITS | {name: one.exhibit for name, one in REPORTS.items()}
"""By name, in the order of the list."""
PLACES: dict[str, str] = {name: one.where.replace("#", " ") for name, one in REPORTS.items()}
"""Repository and number of those that were reported."""


def about(name: str) -> EntryText:
    """Return what is said of an entry, in the current language."""
    if name in TEXTS:
        return TEXTS[name].said()
    report = REPORTS[name]
    return EntryText(say(report.title), tuple(map(say, report.symptoms)), say(report.says), report.place)
