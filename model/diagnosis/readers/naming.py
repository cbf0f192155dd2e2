"""The names of arrays in a file: which are read, of which map, and what an array without one is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...language.say import listed, say
from ...trace import KINDS
from ..inputs.argument_names import ARGUMENTS, is_known
from ..inputs.arrays import NAMES, DiagnosisError

MAX_LISTED, MAX_CHARACTERS = 5, 24
"""Unknown names that a refusal lists, and the characters of each."""


def known_names(names: Iterable[Any]) -> list[str]:
    """Return those of ``names`` that are read: NAMES and the arguments of libraries, alone or as ``cross.weights``.

    Raises:
        DiagnosisError: where there is none; the message lists what there is.
    """
    present = list(names)
    known = [name for name in present if isinstance(name, str) and _is_known(name)]
    if known:
        return known
    short = (name if len(str(name)) <= MAX_CHARACTERS else f"{str(name)[:MAX_CHARACTERS]}…" for name in present)
    shown = _shown(sorted(map(repr, short))) or say("nothing")
    raise DiagnosisError(
        say(
            "The file holds {shown}. Name its arrays {names}, cross.weights or attn_mask.",
            shown=shown,
            names=listed(NAMES),
        )
    )


def unread_note(names: Iterable[Any]) -> tuple[str, ...]:
    """Return a sentence that lists the names that are not read, or nothing."""
    unread = [f"{name!r}"[:MAX_CHARACTERS] for name in names if not (isinstance(name, str) and _is_known(name))]
    return (say("Not read, since the name is not known: {names}.", names=_shown(unread)),) if unread else ()


def _shown(names: list[str]) -> str:
    """The first of these names, and how many more there are."""
    shown, more = listed(names[:MAX_LISTED]), len(names) - MAX_LISTED
    return say("{names} and {count} more", names=shown, count=more) if more > 0 else shown


def group_by_map(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Return arrays by the map that their names begin with (``cross.weights``; else ""), then by name.

    Raises:
        DiagnosisError: where no name is known.
    """
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name in known_names(arrays):
        kind, _, plain = name.rpartition(".")
        groups.setdefault(kind, {})[plain] = arrays[name]
    return groups


def name_array(array: np.ndarray, stem: str) -> dict[str, np.ndarray]:
    """Return a single array under the name ``stem`` of its file, or else the one that its values suggest."""
    if is_known(stem):
        role = ARGUMENTS.get(stem.lower())
        return {role if role in ("weights", "scores") else stem: array}
    if array.dtype.kind == "b" or _is_mask(array):
        return {"mask": array.astype(bool)}
    numbers = array.astype(np.float64) if array.dtype.kind in "iu" else array
    with np.errstate(invalid="ignore"):
        added = numbers.dtype.kind == "f" and bool((numbers < 0).any()) and not bool((numbers > 0).any())
    return {"mask": numbers} if added else {"weights": numbers}


def _is_mask(array: np.ndarray) -> bool:
    """Whether it holds nothing but 0 and 1, and not one 1 in each row: that would be one-hot weights."""
    if array.dtype.kind not in "iuf" or not ((array == 0) | (array == 1)).all():
        return False
    return array.ndim < 2 or not ((array == 1).sum(-1) == 1).all()


def _is_known(name: str) -> bool:
    kind, _, plain = name.rpartition(".")
    return is_known(plain) and kind in ("", *KINDS)
