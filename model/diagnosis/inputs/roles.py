"""The role of an array without a known name: weights, scores, or a mask and its convention, guessed.

A guess comes with how sure it is, and a person can overrule it. Conventions are compared by what the mask would mean in
each: one that is causal in the first and "everything but the past" in the second was most likely written in the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from ...language.say import say, to_say
from ...masking.blocked import is_blocked
from ...masking.structure import recognise
from .argument_names import ARGUMENTS, Role
from .arrays import DiagnosisError

ROLES: tuple[Role, ...] = get_args(Role)
ROLE_NAMES: dict[Role, str] = {
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
_OF_MASK = to_say("A mask holds nothing but True and False, or 1 and 0.")
_OF_KEYS = to_say("A key padding holds nothing but True and False, or 1 and 0.")
_BOOLEANS: dict[Role, str] = {
    "mask keeps": _OF_MASK,
    "mask blocks": _OF_MASK,
    "key_keep": _OF_KEYS,
    "key_blocks": _OF_KEYS,
    "query_keep": to_say("A query padding holds nothing but True and False, or 1 and 0."),
    "meant": to_say("What was meant holds nothing but True and False, or 1 and 0."),
}
"""What is said of an array of such a role that holds other values."""
FLIPPED: dict[Role, Role] = {
    "mask keeps": "mask blocks",
    "mask blocks": "mask keeps",
    "key_keep": "key_blocks",
    "key_blocks": "key_keep",
}
"""The role of the same values read the other way around."""


@dataclass(frozen=True)
class Guess:
    """One role, how sure it is (0 to 1), and why."""

    role: Role
    sure: float
    why: str
    """In the reader's language, to stand behind "since"."""
    by_name: bool = False
    """Whether its name says it."""


_PADDING_NAMES = ("attention_mask", "encoder_attention_mask", "decoder_attention_mask")
"""With two axes these are padding of Hugging Face, 1 being a real token."""
_OWN_NAMES: dict[str, Role] = {
    "captured_keep": "key_keep",
    "position_ids": "position_ids",
    **{name: name for name in ("weights", "scores", "masked_scores", "key_keep", "query_keep", "meant")},
}


def guess(array: np.ndarray, name: str = "") -> Guess:
    """Return what ``array`` most likely is, judged by its name, its values and its shape."""
    known = _OWN_NAMES.get(name) or ARGUMENTS.get(name.lower())
    if known:
        return Guess(known, 0.95, say("its name is {name}", name=name), by_name=True)
    if name.lower() in _PADDING_NAMES and array.ndim == 2 and array.shape[0] != array.shape[1]:
        return Guess("key_keep", 0.95, say("its name is {name}: 1 is a real token", name=name), by_name=True)
    if name == "mask" and array.dtype.kind != "f":
        return Guess("mask keeps", 0.9, say("its name is mask, which here means True = may attend"), by_name=True)
    if array.dtype.kind in "biu" and np.isin(array, (0, 1)).all():
        return _guess_boolean(array.astype(bool))
    return _guess_numbers(array.astype(np.float64))


def in_role(array: np.ndarray, role: Role) -> tuple[str, np.ndarray]:
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
        raise DiagnosisError(say(_BOOLEANS[role]))
    name = {"key_blocks": "key_keep", "mask keeps": "mask", "mask blocks": "mask"}.get(role, role)
    return name, ~array.astype(bool) if role.endswith("blocks") else array.astype(bool)


def _guess_numbers(values: np.ndarray) -> Guess:
    finite = values[np.isfinite(values)]
    blocked = is_blocked(values)
    if blocked.any():
        rest = values[~blocked]
        if not rest[np.isfinite(rest)].any():
            return Guess("mask added", 0.99, say("it holds nothing but zeros and values that block"))
        return Guess("masked_scores", 0.9, say("it holds scores beside values that block"))
    if np.isposinf(values).any() or (finite < 0).any():
        return Guess("scores", 0.8, say("it holds values below zero, and none that blocks"))
    if np.isin(values, (0, 1)).all() and not (values.ndim > 1 and (values.sum(-1) == 1).all()):
        return _guess_float_triangle(values)
    if values.ndim > 1 and _sums_to_one(values):
        return Guess("weights", 0.97, say("its rows or columns sum to 1"))
    return Guess("weights", 0.7, say("its values are not negative"))


def _guess_float_triangle(values: np.ndarray) -> Guess:
    """Return the role of zeros and ones as floats: compared with 0 they are a mask; added they would block nothing."""
    found = _guess_boolean(values.astype(bool))
    why = say("{why}; added, zeros and ones would block nothing", why=found.why)
    return Guess(found.role, min(found.sure, 0.55), why)


def _sums_to_one(values: np.ndarray) -> bool:
    """Whether most sums that are no NaN are 1, along keys, queries or heads."""
    clean = np.nan_to_num(values)
    for axis in range(-1, -min(values.ndim, 3) - 1, -1):
        sums = clean.sum(axis)
        nonzero = sums > 0
        if nonzero.any() and np.mean(np.abs(sums[nonzero] - 1) < 0.02) > 0.6:
            return True
    return False


def _guess_boolean(values: np.ndarray) -> Guess:
    """Return the role of booleans, or of whole numbers 0 and 1."""
    if values.ndim < 2 or _looks_like_padding(values):
        rows = np.atleast_2d(values)
        keeps = float(np.mean(rows[:, 0] | (rows.mean(-1) > 0.5)))
        role: Role = "key_keep" if keeps >= 0.5 else "key_blocks"
        sure = 0.5 + 0.3 * abs(2 * keeps - 1)
        why = say("each row is one run of real tokens and one of padding, and most tokens are real")
        return Guess(role, sure, why)
    grids = values.reshape(-1, *values.shape[-2:])[:8]
    keep = float(np.mean([_plausibility(grid) for grid in grids]))
    block = float(np.mean([_plausibility(~grid) for grid in grids]))
    sure = max(keep, block) / max(keep + block, 1e-9)
    if keep >= block:
        return Guess("mask keeps", sure, _reason(grids[0]))
    return Guess("mask blocks", sure, _reason(~grids[0]))


def _reason(allowed: np.ndarray) -> str:
    found = recognise(allowed, np.broadcast_to(allowed.any(0), allowed.shape))
    if found is None or not found.plausible:
        return say("neither way does it read as a mask of a known kind, and this way more of it is allowed")
    return say("read this way it is {mask}", mask=found.words())


def _plausibility(allowed: np.ndarray) -> float:
    """Return how likely somebody would mean this (Q, K), 0 to 1."""
    if not allowed.any():
        return 0.02
    columns = np.broadcast_to(allowed.any(0), allowed.shape)
    found = recognise(allowed, columns)
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
