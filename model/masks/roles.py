"""The role of an array, by its name in a library or guessed from its values: weights, scores, mask, padding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np

from ..language import say, to_say
from .arrays import ARGUMENT_ROLES, ARRAY_NAMES, CAPTURED_KEEP, ArrayRole, DiagnosisError
from .rule import build_meaning_mask
from .softmax import is_blocked
from .structure import recognise_structure

# The role of an array without a known name is guessed. A guess comes with how sure it is, and a person can overrule it.
# Conventions are compared by what the mask would mean in each: one that is causal in the first and "everything but the
# past" in the second was most likely written in the first.


ARRAY_ROLES: tuple[ArrayRole, ...] = get_args(ArrayRole)
ROLE_NAMES: dict[ArrayRole, str] = {
    "weights": to_say("attention weights"),
    "mask keeps": to_say("mask, True = may attend"),
    "mask blocks": to_say("mask, True = blocked"),
    "mask added": to_say("mask, added to the scores"),
    "scores": to_say("scores before the mask"),
    "masked_scores": to_say("scores after the mask"),
    "key_keep": to_say("key padding, True = a real token"),
    "key_blocks": to_say("key padding, True = padding"),
    "query_keep": to_say("query padding, True = a real token"),
    "meant": to_say("what was meant, True = may attend"),
    "position_ids": to_say("positions of the tokens"),
}
_MASK_VALUES_TEXT = to_say("A mask holds nothing but True and False, or 1 and 0.")
_PADDING_VALUES_TEXT = to_say("A key padding holds nothing but True and False, or 1 and 0.")
_BOOLEAN_ROLE_TEXTS: dict[ArrayRole, str] = {
    "mask keeps": _MASK_VALUES_TEXT,
    "mask blocks": _MASK_VALUES_TEXT,
    "key_keep": _PADDING_VALUES_TEXT,
    "key_blocks": _PADDING_VALUES_TEXT,
    "query_keep": to_say("A query padding holds nothing but True and False, or 1 and 0."),
    "meant": to_say("What was meant holds nothing but True and False, or 1 and 0."),
}
"""What is said of an array of such a role that holds other values."""
OPPOSITE_ROLES: dict[ArrayRole, ArrayRole] = {
    "mask keeps": "mask blocks",
    "mask blocks": "mask keeps",
    "key_keep": "key_blocks",
    "key_blocks": "key_keep",
}
"""The role of the same values read the other way around."""


@dataclass(frozen=True)
class RoleGuess:
    """One role, how sure it is (0 to 1), and why."""

    role: ArrayRole
    sure: float
    why: str
    """In the reader's language, to stand behind "since"."""
    by_name: bool = False
    """Whether its name says it."""


_PADDING_NAMES = ("attention_mask", "encoder_attention_mask", "decoder_attention_mask")
"""With two axes these are padding of Hugging Face, 1 being a real token."""
_ROLES_BY_NAME: dict[str, ArrayRole] = {
    "captured_keep": "key_keep",
    "position_ids": "position_ids",
    **{name: name for name in ("weights", "scores", "masked_scores", "key_keep", "query_keep", "meant")},
}


def guess_role(array: np.ndarray, name: str = "") -> RoleGuess:
    """Return what ``array`` most likely is, judged by its name, its values and its shape."""
    known = _ROLES_BY_NAME.get(name) or ARGUMENT_ROLES.get(name.lower())
    if known:
        return RoleGuess(known, 0.95, say("its name is {name}", name=name), by_name=True)
    if name.lower() in _PADDING_NAMES and array.ndim == 2 and array.shape[0] != array.shape[1]:
        return RoleGuess("key_keep", 0.95, say("its name is {name}: 1 is a real token", name=name), by_name=True)
    if name == "mask" and array.dtype.kind != "f":
        return RoleGuess("mask keeps", 0.9, say("its name is mask, which here means True = may attend"), by_name=True)
    if array.dtype.kind in "biu" and np.isin(array, (0, 1)).all():
        return _guess_boolean(array.astype(bool))
    return _guess_numbers(array.astype(np.float64))


def convert_to_role(array: np.ndarray, role: ArrayRole) -> tuple[str, np.ndarray]:
    """Return the name of the array in a diagnosis, and its values in the convention of a diagnosis.

    Raises:
        DiagnosisError: when the values cannot have this role.
    """
    if role == "mask added":
        return "mask", array.astype(np.float32) if array.dtype.kind != "f" else array
    if role == "position_ids":
        return role, array
    if role in ("weights", "scores", "masked_scores"):
        return role, array.astype(np.float32) if array.dtype.kind in "iu" else array
    if not np.isin(array, (0, 1)).all():
        raise DiagnosisError(say(_BOOLEAN_ROLE_TEXTS[role]))
    name = {"key_blocks": "key_keep", "mask keeps": "mask", "mask blocks": "mask"}.get(role, role)
    return name, ~array.astype(bool) if role.endswith("blocks") else array.astype(bool)


def _guess_numbers(values: np.ndarray) -> RoleGuess:
    finite = values[np.isfinite(values)]
    blocked = is_blocked(values)
    if blocked.any():
        rest = values[~blocked]
        if not rest[np.isfinite(rest)].any():
            return RoleGuess("mask added", 0.99, say("it holds nothing but zeros and values that block"))
        return RoleGuess("masked_scores", 0.9, say("it holds scores beside values that block"))
    if np.isposinf(values).any() or (finite < 0).any():
        return RoleGuess("scores", 0.8, say("it holds values below zero, and none that blocks"))
    if np.isin(values, (0, 1)).all() and not (values.ndim > 1 and (values.sum(-1) == 1).all()):
        return _guess_float_triangle(values)
    if values.ndim > 1 and _has_unit_sums(values):
        return RoleGuess("weights", 0.97, say("its rows or columns sum to 1"))
    return RoleGuess("weights", 0.7, say("its values are not negative"))


def _guess_float_triangle(values: np.ndarray) -> RoleGuess:
    """Return the role of zeros and ones as floats: compared with 0 they are a mask; added they would block nothing."""
    found = _guess_boolean(values.astype(bool))
    why = say("{why}; added, zeros and ones would block nothing", why=found.why)
    return RoleGuess(found.role, min(found.sure, 0.55), why)


def _has_unit_sums(values: np.ndarray) -> bool:
    """Whether most sums that are no NaN are 1, along keys, queries or heads."""
    clean = np.nan_to_num(values)
    for axis in range(-1, -min(values.ndim, 3) - 1, -1):
        sums = clean.sum(axis)
        nonzero = sums > 0
        if nonzero.any() and np.mean(np.abs(sums[nonzero] - 1) < 0.02) > 0.6:
            return True
    return False


def _guess_boolean(values: np.ndarray) -> RoleGuess:
    """Return the role of booleans, or of whole numbers 0 and 1."""
    if values.ndim < 2 or _looks_like_padding(values):
        rows = np.atleast_2d(values)
        keeps = float(np.mean(rows[:, 0] | (rows.mean(-1) > 0.5)))
        role: ArrayRole = "key_keep" if keeps >= 0.5 else "key_blocks"
        sure = 0.5 + 0.3 * abs(2 * keeps - 1)
        why = say("each row is one run of real tokens and one of padding, and most tokens are real")
        return RoleGuess(role, sure, why)
    grids = values.reshape(-1, *values.shape[-2:])[:8]
    keep = float(np.mean([_rate_plausibility(grid) for grid in grids]))
    block = float(np.mean([_rate_plausibility(~grid) for grid in grids]))
    sure = max(keep, block) / max(keep + block, 1e-9)
    if keep >= block:
        return RoleGuess("mask keeps", sure, _reading_text(grids[0]))
    return RoleGuess("mask blocks", sure, _reading_text(~grids[0]))


def _reading_text(allowed: np.ndarray) -> str:
    found = recognise_structure(allowed, np.broadcast_to(allowed.any(0), allowed.shape))
    if found is None or not found.plausible:
        return say("neither way does it read as a mask of a known kind, and this way more of it is allowed")
    return say("read this way it is {mask}", mask=found.words())


def _rate_plausibility(allowed: np.ndarray) -> float:
    """Return how likely somebody would mean this (Q, K), 0 to 1."""
    if not allowed.any():
        return 0.02
    columns = np.broadcast_to(allowed.any(0), allowed.shape)
    found = recognise_structure(allowed, columns)
    if found is None or not found.plausible:
        return 0.1 + 0.1 * float(allowed.any(-1).mean())
    return 1.0 if allowed.any(-1).all() else 0.7


def _looks_like_padding(values: np.ndarray) -> bool:
    """Whether each row of (B, K) is one run from an end, and they are not the staircase of a causal mask."""
    if values.ndim != 2 or len(values) == values.shape[1]:
        return False
    changes = (values[:, 1:] != values[:, :-1]).sum(-1)
    lengths = values.sum(-1)
    stairs = len(values) > 1 and abs(np.diff(lengths)).max() == 1 == abs(np.diff(lengths)).min()
    return bool((changes <= 1).all()) and not stairs


# From the names of libraries to those of a diagnosis.


MIN_SURENESS, MIN_AGREEMENT = 0.75, 0.8
"""A role guessed with less sureness is asked about, unless at least this part of its cells is as meant."""


def assign_roles(arrays: Mapping[str, np.ndarray], meant: str | None = None) -> tuple[dict[str, np.ndarray], bool]:
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
        if name in ARRAY_NAMES:
            role_name, values = name, array
        else:
            role = _find_role(name, array, meant or arrays.get("meant"))
            role_name, values = convert_to_role(array, role)
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


def _find_role(name: str, array: np.ndarray, meant: str | np.ndarray | None) -> ArrayRole:
    fixed = ARGUMENT_ROLES[name.lower()]
    if fixed is not None:
        return fixed
    found = guess_role(array, name)
    if (
        found.sure < MIN_SURENESS
        and found.role in OPPOSITE_ROLES
        and (by_meaning := _find_role_by_meaning(array, found.role, meant))
    ):
        return by_meaning
    if found.sure < MIN_SURENESS and found.role in OPPOSITE_ROLES:
        raise DiagnosisError(
            say(
                "{name} could be a {one}, or a {other}: interfaces differ. Name it mask or key_keep, where True keeps.",
                name=name,
                one=say(ROLE_NAMES[found.role]),
                other=say(ROLE_NAMES[OPPOSITE_ROLES[found.role]]),
            )
        )
    return found.role


def _find_role_by_meaning(array: np.ndarray, role: ArrayRole, meant: str | np.ndarray | None) -> ArrayRole | None:
    """Return the role in which most cells of a mask are as meant, if there is one."""
    if meant is None or array.ndim < 2 or not role.startswith("mask"):
        return None
    cells = build_meaning_mask(meant, *array.shape[-2:]) if isinstance(meant, str) else np.asarray(meant, bool)
    try:
        agreement = float(np.mean(array.astype(bool) == cells))
    except ValueError:
        return None
    if max(agreement, 1 - agreement) < MIN_AGREEMENT:
        return None
    return "mask keeps" if agreement > 0.5 else "mask blocks"
