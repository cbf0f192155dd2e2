"""Arrays under the names of their libraries, as a diagnosis takes them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...language.say import say
from ...masking.meaning import meaning_mask
from .argument_names import ARGUMENTS, CAPTURED_KEEP, Role
from .arrays import NAMES, DiagnosisError
from .roles import FLIPPED, ROLE_NAMES, guess, in_role

SURE, AGREEMENT = 0.75, 0.8
"""A role that is guessed with less is asked about, unless so many of its cells are as meant."""


def by_role(arrays: Mapping[str, np.ndarray], meant: str | None = None) -> tuple[dict[str, np.ndarray], bool]:
    """Return arrays of known names under the names of a diagnosis, and whether the mask came as True = blocked.

    ``meant``, a name, or the array ``meant`` tells the convention of a mask that reads both ways.

    Raises:
        DiagnosisError: for two arrays of one role, and where the values do not tell which role it is.
    """
    found: dict[str, np.ndarray] = {}
    blocks = False
    for name, array in arrays.items():
        if name == CAPTURED_KEEP:
            continue
        if name in NAMES:
            role_name, values = name, array
        else:
            role = _role(name, array, meant or arrays.get("meant"))
            role_name, values = in_role(array, role)
            blocks = blocks or role == "mask blocks"
        if role_name in found:
            raise DiagnosisError(
                say(
                    "{name} and another array are both read as {role}; leave one of them out.",
                    name=name,
                    role=role_name,
                )
            )
        found[role_name] = values
    if CAPTURED_KEEP in arrays:
        found.setdefault("key_keep", arrays[CAPTURED_KEEP])
    return found, blocks


def _role(name: str, array: np.ndarray, meant: str | np.ndarray | None) -> Role:
    fixed = ARGUMENTS[name.lower()]
    if fixed is not None:
        return fixed
    found = guess(array, name)
    if found.sure < SURE and found.role in FLIPPED and (by_meaning := _role_by_meaning(array, found.role, meant)):
        return by_meaning
    if found.sure < SURE and found.role in FLIPPED:
        raise DiagnosisError(
            say(
                "{name} could be a {one}, or a {other}: interfaces differ. Name it mask or key_keep, where True keeps.",
                name=name,
                one=say(ROLE_NAMES[found.role]),
                other=say(ROLE_NAMES[FLIPPED[found.role]]),
            )
        )
    return found.role


def _role_by_meaning(array: np.ndarray, role: Role, meant: str | np.ndarray | None) -> Role | None:
    """Return the role in which most cells of a mask are as meant, if there is one."""
    if meant is None or array.ndim < 2 or not role.startswith("mask"):
        return None
    cells = meaning_mask(meant, *array.shape[-2:]) if isinstance(meant, str) else np.asarray(meant, bool)
    try:
        agreement = float(np.mean(array.astype(bool) == cells))
    except ValueError:
        return None
    if max(agreement, 1 - agreement) < AGREEMENT:
        return None
    return "mask keeps" if agreement > 0.5 else "mask blocks"
