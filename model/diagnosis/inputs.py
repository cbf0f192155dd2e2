"""From arrays of any accepted shape to one form: (B, L, H, Q, K) weights and everything else able to broadcast to it.

Shapes are right-aligned: (Q, K), (H, Q, K), (B, H, Q, K), (B, L, H, Q, K). ``key_keep`` is (K,) or (B, K),
``query_keep`` (Q,) or (B, Q). A boolean mask is True where a query may attend, a float mask is added to the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

NAMES = ("weights", "scores", "masked_scores", "mask", "key_keep", "query_keep", "meant")
MAX_CELLS = 2**26
"""Largest number of weights that one diagnosis accepts."""
BLOCKS = -1e3
"""An additive value at or below this is meant to block; above it, it may be a position bias."""


class DiagnosisError(ValueError):
    """Arrays that cannot be judged; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """One map's arrays in one form. Everything but ``weights`` may be missing."""

    weights: np.ndarray
    """(B, L, H, Q, K) floating."""
    given: frozenset[str]
    """Names of what was really given."""
    map: str = ""
    scores: np.ndarray | None = None
    """(B, L, H, Q, K), scaled, before the mask."""
    masked_scores: np.ndarray | None = None
    """(B, L, H, Q, K), after the mask."""
    bias: np.ndarray | None = None
    """(B, L, H, Q, K), a float mask as it was given; axes may be 1."""
    mask: np.ndarray | None = None
    """(B, L, H, Q, K) bool, True = may attend; axes may be 1."""
    meant: np.ndarray | None = None
    """(B, L, H, Q, K) bool, True = may attend; axes may be 1."""
    key_keep: np.ndarray | None = None
    """(B, K) bool, True = a real token."""
    query_keep: np.ndarray | None = None
    """(B, Q) bool, True = a real token."""
    transposed: bool = False
    """The weights came as (K, Q) by the shapes of the others, and were turned back."""

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, L, H, Q, K."""
        b, layers, heads, queries, keys = self.weights.shape
        return b, layers, heads, queries, keys


@np.errstate(all="ignore")
def arrange(raw: Mapping[str, np.ndarray], map_name: str = "") -> Arrays:
    """Bring the named arrays (:data:`NAMES`; others are left alone) into one form.

    Raises:
        DiagnosisError: for shapes that do not fit each other, wrong kinds of numbers, or nothing to judge.
    """
    found = {name: _numbers(name, np.asarray(raw[name])) for name in NAMES if raw.get(name) is not None}
    given = frozenset(found)
    weights = _lift(found["weights"]) if "weights" in found else _imagined(found)
    turned = _turned(weights, found)
    if turned:
        weights = np.swapaxes(weights, -1, -2)
    _check_weights(weights, "weights" in found)
    shape = weights.shape
    bias, mask = _mask(found.get("mask"), shape)
    return Arrays(
        weights=weights,
        given=given,
        map=map_name,
        scores=_whole("scores", found.get("scores"), shape),
        masked_scores=_whole("masked_scores", found.get("masked_scores"), shape),
        bias=bias,
        mask=mask,
        meant=_meant(found.get("meant"), shape),
        key_keep=_keep("key_keep", found.get("key_keep"), shape[0], shape[4]),
        query_keep=_keep("query_keep", found.get("query_keep"), shape[0], shape[3]),
        transposed=turned,
    )


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "biuf":
        raise DiagnosisError(f"{name} holds {array.dtype} values; it must hold numbers or booleans.")
    if array.size == 0:
        raise DiagnosisError(f"{name} is empty: its shape is {array.shape}.")
    if array.ndim > 5 or array.size > MAX_CELLS:
        raise DiagnosisError(f"{name} has the shape {array.shape}; at most five axes and {MAX_CELLS:,} cells are read.")
    return array


def _lift(array: np.ndarray) -> np.ndarray:
    """(Q, K) to (B, L, H, Q, K) by the number of axes: four of them are (B, H, Q, K)."""
    if array.ndim < 2:
        raise DiagnosisError(
            f"An attention map needs the axes (queries, keys), but this one has the shape {array.shape}."
        )
    array = array[:, None] if array.ndim == 4 else array
    return array.reshape((1,) * (5 - array.ndim) + array.shape)


def _imagined(found: Mapping[str, np.ndarray]) -> np.ndarray:
    """Weights for files that have none: the softmax of what is there, zero in a row that boolean masks leave empty."""
    if "masked_scores" in found:
        scores = _lift(found["masked_scores"]).astype(np.float32)
    elif "mask" in found:
        mask = _lift(found["mask"]) if found["mask"].ndim > 1 else found["mask"][None, None, None, None]
        added = mask if mask.dtype.kind == "f" else np.where(mask.astype(bool), 0.0, -np.inf)
        base = _lift(found["scores"]) if "scores" in found else np.zeros((1, 1))
        try:
            scores = base.astype(np.float32) + added.astype(np.float32)
        except ValueError as error:
            raise DiagnosisError(f"The mask {mask.shape} does not broadcast to the scores {base.shape}.") from error
    else:
        raise DiagnosisError("There is nothing to judge: give weights, masked_scores or a mask.")
    if scores.size > MAX_CELLS:
        raise DiagnosisError(f"The mask and the scores broadcast to {scores.size:,} cells; {MAX_CELLS:,} are read.")
    return softmax(scores, nan_rows="mask" not in found or found["mask"].dtype.kind == "f")


def softmax(scores: np.ndarray, nan_rows: bool = False) -> np.ndarray:
    """Softmax over the last axis; a row of nothing but -inf gives zeros, or NaN as torch does."""
    with np.errstate(invalid="ignore", over="ignore"):
        top = scores.max(-1, keepdims=True)
        lifted = np.exp(scores - np.where(np.isfinite(top), top, 0))
        total = lifted.sum(-1, keepdims=True)
        return np.where(
            total > 0, lifted / np.where(total > 0, total, 1), np.nan if nan_rows else np.where(total == 0, 0, np.nan)
        )


def _turned(weights: np.ndarray, found: Mapping[str, np.ndarray]) -> bool:
    """Whether the shapes of the other arrays say that the weights are (K, Q)."""
    queries, keys = weights.shape[-2:]
    if queries == keys or "weights" not in found:
        return False
    votes: list[tuple[bool, bool]] = []
    have: tuple[int, ...]
    want: tuple[int, ...]
    other: tuple[int, ...]
    for name, array in found.items():
        if name in ("key_keep", "query_keep"):
            have, want = array.shape[-1:], (keys,) if name == "key_keep" else (queries,)
            other = (queries,) if name == "key_keep" else (keys,)
        elif name != "weights" and array.ndim >= 2 and 1 not in array.shape[-2:]:
            have, want, other = array.shape[-2:], (queries, keys), (keys, queries)
        else:
            continue
        votes.append((have == want, have == other))
    return bool(votes) and all(swapped and not straight for straight, swapped in votes)


def _check_weights(weights: np.ndarray, given: bool) -> None:
    if weights.dtype.kind == "b":
        raise DiagnosisError("The weights are booleans. If this is a mask, name it mask.")
    if not given:
        return
    with np.errstate(invalid="ignore"):
        if np.isinf(weights).any():
            raise DiagnosisError("The weights hold infinite values. If these are scores, name them masked_scores.")
        if (weights < -1e-6).any():
            raise DiagnosisError("The weights hold negative values. If these are scores, name them scores.")
        if (weights > 100).any():
            raise DiagnosisError("The weights hold values far above 1, so they are not attention weights.")


def _fit(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Lift by the number of axes; three axes may also be (B, Q, K) or torch's batch-major (B*H, Q, K)."""
    b, _, heads, _, _ = shape
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim == 3 and array.shape[0] not in (1, heads):
        if array.shape[0] == b:
            array = array[:, None]
        elif array.shape[0] == b * heads:
            array = array.reshape(b, heads, *array.shape[1:])
    lifted = _lift(array)
    if any(have not in (1, want) for have, want in zip(lifted.shape, shape, strict=True)):
        raise DiagnosisError(
            f"{name} has the shape {array.shape}, which does not fit weights of {shape[0]} samples, {shape[1]} layers, "
            f"{shape[2]} heads, {shape[3]} queries and {shape[4]} keys."
        )
    return lifted


def _whole(name: str, array: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Scores, one for each weight."""
    if array is None:
        return None
    if array.dtype.kind == "b":
        raise DiagnosisError(f"{name} holds booleans; scores are numbers.")
    return np.broadcast_to(_fit(name, array, shape), shape)


def _mask(array: np.ndarray | None, shape: tuple[int, ...]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The mask as it is added (float masks only) and as True = may attend."""
    if array is None:
        return None, None
    fitted = _fit("mask", array, shape)
    if array.dtype.kind != "f":
        return None, _boolean("mask", fitted)
    if np.isnan(fitted).any():
        raise DiagnosisError("The mask holds NaN.")
    if np.isin(fitted, (0, 1)).all():
        return fitted, fitted > 0
    levels = np.unique(fitted)
    return fitted, fitted > (levels.min() if levels.size == 2 and levels.min() < -10 else BLOCKS)


def _meant(array: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    if array is None:
        return None
    fitted = _fit("meant", array, shape)
    if array.dtype.kind == "f" and not np.isin(fitted, (0, 1)).all():
        return fitted > -10
    return _boolean("meant", fitted)


def _keep(name: str, array: np.ndarray | None, samples: int, length: int) -> np.ndarray | None:
    """(B, length) bool."""
    if array is None:
        return None
    keep = _boolean(name, array)
    if keep.ndim == 4 and keep.shape[1:3] == (1, 1):
        keep = keep[:, 0, 0]
    keep = keep[None] if keep.ndim == 1 else keep
    if keep.ndim != 2 or keep.shape[1] != length or keep.shape[0] not in (1, samples):
        raise DiagnosisError(f"{name} has the shape {array.shape}; it must be ({length},) or ({samples}, {length}).")
    if not keep.any():
        raise DiagnosisError(f"{name} says that no token is real. True means a real token: give ids != pad_id.")
    return np.broadcast_to(keep, (samples, length))


def _boolean(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise DiagnosisError(f"{name} must hold booleans, or nothing but 0 and 1.")
    return array.astype(bool)
