"""All reports, in the order in which the gallery shows them."""

from __future__ import annotations

from . import causality, conventions, half_precision, packing, padding, windows
from .report import Report

_ALL = (
    *conventions.REPORTS,
    *causality.REPORTS,
    *padding.REPORTS,
    *half_precision.REPORTS,
    *windows.REPORTS,
    *packing.REPORTS,
)
REPORTS: dict[str, Report] = {report.name: report for report in _ALL}
"""By name."""
