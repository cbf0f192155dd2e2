"""Which codes could not be judged, and what would be needed."""

from __future__ import annotations

from .findings import FAULTS, Finding, Unknown
from .inputs import Arrays
from .intent import Intent


def cannot_tell(arrays: Arrays, said: Intent | None, found: tuple[Finding, ...]) -> tuple[Unknown, ...]:
    """Codes whose arrays are missing, in the catalogue's order; those that were named anyway are left out."""
    have = set(arrays.given) | ({"meant"} if said is not None else set())
    named = {one.code for one in found}
    lacking = {
        code: tuple(need for need in fault.needs if not have & set(need.split("|")))
        for code, fault in FAULTS.items()
        if code not in named
    }
    return tuple(Unknown(code, missing) for code, missing in lacking.items() if missing)
