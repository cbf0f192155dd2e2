"""Under which name an array of a file is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...trace import KINDS
from ..inputs import NAMES, DiagnosisError

LISTED = 5
"""Unknown names that a refusal tells, and the characters of each."""
LONGEST = 24


def known(names: Iterable[Any]) -> list[str]:
    """Those that are read: of NAMES, alone or as ``cross.weights``. DiagnosisError, telling the others, for none."""
    there = list(names)
    found = [name for name in there if isinstance(name, str) and _is_known(name)]
    if found:
        return found
    shown = sorted(repr(name if len(str(name)) <= LONGEST else f"{str(name)[:LONGEST]}…") for name in there)[:LISTED]
    more = f" and {len(there) - LISTED} more" if len(there) > LISTED else ""
    raise DiagnosisError(
        f"The file holds {', '.join(shown) or 'nothing'}{more}. Name its arrays {', '.join(NAMES)}, or cross.weights "
        "and the like."
    )


def by_map(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Arrays by the map that their names begin with (``cross.weights``; else ""), then by NAMES. DiagnosisError."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name in known(arrays):
        kind, _, plain = name.rpartition(".")
        groups.setdefault(kind, {})[plain] = arrays[name]
    return groups


def named(array: np.ndarray, stem: str) -> dict[str, np.ndarray]:
    """A single array under the name that its file has, or else the one that its values suggest."""
    if stem in NAMES:
        return {stem: array}
    if array.dtype.kind == "b" or _switches(array):
        return {"mask": array.astype(bool)}
    numbers = array.astype(np.float64) if array.dtype.kind in "iu" else array
    with np.errstate(invalid="ignore"):
        added = numbers.dtype.kind == "f" and bool((numbers < 0).any()) and not bool((numbers > 0).any())
    return {"mask": numbers} if added else {"weights": numbers}


def _switches(array: np.ndarray) -> bool:
    """Nothing but 0 and 1, and not one 1 in each row: that would be weights that look at one key."""
    if array.dtype.kind not in "iuf" or not ((array == 0) | (array == 1)).all():
        return False
    return array.ndim < 2 or not ((array == 1).sum(-1) == 1).all()


def _is_known(name: str) -> bool:
    kind, _, plain = name.rpartition(".")
    return plain in NAMES and kind in ("", *KINDS)
