"""Where a fault is, as numbers for programs (from 0) and as words for people (from 1)."""

from __future__ import annotations

import numpy as np

from .findings import FAULTS, Finding, Severity


def finding(
    code: str,
    where: np.ndarray,
    map_name: str,
    severity: Severity | None = None,
    detail: str = "",
    fix: str | None = None,
    looks: str | None = None,
) -> Finding:
    """A finding of ``code`` at the cells ``where`` (B, L, H, Q, K) bool, with other words than usual where given."""
    fault = FAULTS[code]
    units = np.asarray(where.any((-1, -2)))
    sample, layer, head = (_only(units, axis) for axis in range(3))
    first = where[np.flatnonzero(where.any((1, 2, 3, 4)))[:1]]
    queries = tuple(int(row) for row in np.flatnonzero(first.any((0, 1, 2, 4))))
    keys = tuple(int(column) for column in np.flatnonzero(first.any((0, 1, 2, 3))))
    words = _words(map_name, units, sample, layer, head)
    message = f"{words}: {looks or fault.looks}{'; ' + detail if detail else ''}."
    rank = severity or fault.severity
    return Finding(code, rank, map_name, sample, layer, head, queries, keys, message, fault.fix if fix is None else fix)


def _only(units: np.ndarray, axis: int) -> int | None:
    """The one index concerned, or None for several; an axis of length 1 is index 0."""
    used = np.flatnonzero(units.any(tuple(other for other in range(3) if other != axis)))
    return int(used[0]) if used.size == 1 else None


def _words(map_name: str, units: np.ndarray, sample: int | None, layer: int | None, head: int | None) -> str:
    """``Decoder, layer 2, head 1``: only the axes that are longer than 1 are named."""
    parts = [map_name.capitalize()] if map_name else []
    for name, index, size in zip(("sample", "layer", "head"), (sample, layer, head), units.shape, strict=True):
        if size > 1 and index is not None:
            parts.append(f"{name} {index + 1}")
    if units.all() and units.size > 1:
        parts.append("everywhere")
    elif units.size > 1 and None in (sample, layer, head):
        parts.append(
            f"{int(units.sum())} of {units.size} heads"
            if units.shape[0] == 1
            else f"{int(units.sum())} of {units.size} maps"
        )
    text = ", ".join(parts) or "In this map"
    return text[0].upper() + text[1:]
