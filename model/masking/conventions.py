"""Masks from any convention to any other, as arrays and as the lines of torch that do it.

All go through one form: boolean, True = may attend, (B, 1 or H, 1 or Q, K). A convention that can only say which
keys are padding cannot hold a causal mask, and says so.
"""

from __future__ import annotations

import numpy as np

from ..language.say import listed, say
from .blocked import is_blocked
from .convention_table import CONVENTIONS, Convention


class ConversionError(ValueError):
    """A mask that the other convention cannot hold, or that is not of the convention it is said to be."""


def to_boolean(array: np.ndarray, source: str, heads: int = 1) -> np.ndarray:
    """Return the mask of any convention as booleans, True = may attend, (B, 1 or H, 1 or Q, K).

    Raises:
        ConversionError: when the values or axes are not those of the convention.
    """
    convention = _convention(source)
    array = np.asarray(array)
    if convention.layout == "lengths":
        return _from_lengths(array)
    return _axes_in(_values_in(array, convention), convention, heads)


def from_boolean(allowed: np.ndarray, target: str, heads: int = 1) -> np.ndarray:
    """Return booleans (B, 1 or H, 1 or Q, K), True = may attend, as any convention writes them.

    Raises:
        ConversionError: when the convention cannot hold this mask.
    """
    convention = _convention(target)
    allowed = np.asarray(allowed, bool)
    if allowed.ndim != 4:
        raise ConversionError(
            say("A mask needs the axes (batch, heads, queries, keys); this one has {shape}.", shape=allowed.shape)
        )
    if convention.layout == "lengths":
        return _to_lengths(_only_keys(allowed, convention))
    return _values_out(_axes_out(allowed, convention, heads), convention)


def convert(array: np.ndarray, source: str, target: str, heads: int = 1) -> np.ndarray:
    """Return a mask of one convention as another writes it. Raises ConversionError as the two steps do."""
    return from_boolean(to_boolean(array, source, heads), target, heads)


def code(source: str, target: str) -> str:
    """Return the lines of torch that turn ``given``, in one convention, into the argument of the other."""
    return f"{_convention(source).undo}\n{_convention(target).make}"


def _convention(name: str) -> Convention:
    if name not in CONVENTIONS:
        raise ConversionError(
            say("There is no convention {name}; there are {names}.", name=repr(name), names=listed(CONVENTIONS))
        )
    return CONVENTIONS[name]


def _values_in(array: np.ndarray, convention: Convention) -> np.ndarray:
    if convention.values == "added":
        if array.dtype.kind != "f" or np.isnan(array).any():
            raise ConversionError(
                say(
                    "{convention} is added to the scores, so it must hold floating-point numbers.",
                    convention=say(convention.name),
                )
            )
        if np.isin(array, (0, 1)).all() and array.any():
            raise ConversionError(say("This mask of zeros and ones would be added to the scores and block nothing."))
        return ~is_blocked(array)
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise ConversionError(
            say("{convention} holds booleans, or nothing but 0 and 1.", convention=say(convention.name))
        )
    return array.astype(bool) if convention.values in ("true keeps", "one keeps") else ~array.astype(bool)


def _values_out(allowed: np.ndarray, convention: Convention) -> np.ndarray:
    if convention.values == "added":
        return np.where(allowed, 0.0, convention.fill).astype(np.float32)
    values = allowed if convention.values in ("true keeps", "one keeps") else ~allowed
    return values if convention.values.startswith("true") else values.astype(np.int64)


def _axes_in(allowed: np.ndarray, convention: Convention, heads: int) -> np.ndarray:
    if convention.layout == "keys":
        if allowed.ndim != 2:
            raise _other_axes(allowed, convention)
        return allowed[:, None, None, :]
    if convention.layout == "heads in batch" and allowed.ndim == 3:
        if allowed.shape[0] % heads:
            raise ConversionError(
                say("The first axis, {size}, is not a multiple of {heads} heads.", size=allowed.shape[0], heads=heads)
            )
        return allowed.reshape(-1, heads, *allowed.shape[1:])
    if allowed.ndim == 3:
        return allowed[:, None]
    if allowed.ndim not in (2, 4):
        raise _other_axes(allowed, convention)
    return allowed if allowed.ndim == 4 else allowed[None, None]


def _other_axes(allowed: np.ndarray, convention: Convention) -> ConversionError:
    return ConversionError(
        say(
            "{convention} has the axes {axes}; this mask has {shape}.",
            convention=say(convention.name),
            axes=say(convention.shape),
            shape=allowed.shape,
        )
    )


def _axes_out(allowed: np.ndarray, convention: Convention, heads: int) -> np.ndarray:
    if convention.layout == "keys":
        return _only_keys(allowed, convention)
    if convention.layout == "heads in batch":
        if allowed.shape[1] not in (1, heads):
            raise ConversionError(
                say("The mask has {heads} heads, but {expected} are expected.", heads=allowed.shape[1], expected=heads)
            )
        whole = np.broadcast_to(allowed, (allowed.shape[0], heads, *allowed.shape[2:]))
        return whole.reshape(-1, *allowed.shape[2:])
    if convention.layout == "queries and keys":
        if (allowed != allowed[:, :1]).any():
            raise ConversionError(
                say(
                    "{convention} has no head axis, and this mask differs between heads.",
                    convention=say(convention.name),
                )
            )
        return allowed[:, 0]
    return allowed


def _only_keys(allowed: np.ndarray, convention: Convention) -> np.ndarray:
    """Return (B, K) where that holds the whole mask. Raises ConversionError."""
    keys = allowed[:, 0, 0]
    if (allowed != keys[:, None, None, :]).any():
        raise ConversionError(
            say(
                "{convention} can only say which keys are padding; this mask differs between queries.",
                convention=say(convention.name),
            )
        )
    return keys


def _to_lengths(keep: np.ndarray) -> np.ndarray:
    if (keep[:, 1:] & ~keep[:, :-1]).any():
        raise ConversionError(say("FlashAttention counts lengths, so padding must be at the right."))
    return np.concatenate([[0], np.cumsum(keep.sum(-1))]).astype(np.int32)


def _from_lengths(ends: np.ndarray) -> np.ndarray:
    if ends.ndim != 1 or ends.size < 2 or ends.dtype.kind not in "iu" or (np.diff(ends) < 0).any() or ends[-1] > 2**20:
        raise ConversionError(say("cu_seqlens is a list of growing whole numbers that starts at 0."))
    lengths = np.diff(ends)
    return (np.arange(max(int(lengths.max()), 1)) < lengths[:, None])[:, None, None, :]
