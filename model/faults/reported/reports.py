"""All reports, in the order in which the gallery shows them."""

from __future__ import annotations

from . import causality, conventions, half_precision, packing, padding, windows
from .report import Report

_PARTS = (conventions, causality, padding, half_precision, windows, packing)
REPORTS: dict[str, Report] = {one.name: one for part in _PARTS for one in part.REPORTS}
"""By name."""
