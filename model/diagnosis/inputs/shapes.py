"""From arrays of any accepted shape to one form: (B, L, H, Q, K) weights, and the others able to broadcast to them.

Shapes are right-aligned: (Q, K), (H, Q, K), (B, H, Q, K), (B, L, H, Q, K). ``key_keep`` and ``position_ids`` are
(K,) or (B, K), ``query_keep`` (Q,) or (B, Q). A boolean mask is True where a query may attend, a float mask is added
to the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...language.say import say
from ...masking.blocked import is_blocked
from ...masking.softmax import softmax
from .arrays import MAX_CELLS, NAMES, Arrays, DiagnosisError, Writing
from .axis_order import in_order, is_over_batch

WEAKEST_FILL = -10
"""A float mask of two values, the lower one below this, is meant to block with it, however weak it is."""


@np.errstate(all="ignore")
def arrange(raw: Mapping[str, np.ndarray], map_name: str = "", blocks: bool = False, extra_keys: int = 0) -> Arrays:
    """Return the named arrays (:data:`NAMES`; others are left alone) in one form.

    ``blocks`` says that the mask, here True = may attend, is written the other way around where it comes from: then
    so are the fixes. ``extra_keys`` of the last keys are no tokens, such as a sink.

    Raises:
        DiagnosisError: for shapes that do not fit each other, wrong kinds of numbers, or nothing to judge.
    """
    named = {name: _check_numbers(name, np.asarray(raw[name])) for name in NAMES if raw.get(name) is not None}
    over_batch = is_over_batch(named)
    named = {"weights": named["weights"]} if over_batch else in_order(named, extra_keys)
    weights = five_axes(named["weights"]) if "weights" in named else _implied_weights(named)
    transposed = _is_transposed(weights, named)
    if transposed:
        weights = np.swapaxes(weights, -1, -2)
    if "weights" in named:
        _check_weights(weights)
    shape = weights.shape
    bias, mask = _mask(named.get("mask"), shape)
    return Arrays(
        weights=weights,
        given=frozenset(named),
        map=map_name,
        scores=_scores("scores", named.get("scores"), shape),
        masked_scores=_scores("masked_scores", named.get("masked_scores"), shape),
        bias=bias,
        mask=mask,
        meant=_meant(named.get("meant"), shape),
        key_keep=_keep("key_keep", named.get("key_keep"), shape[0], shape[4]),
        query_keep=_keep("query_keep", named.get("query_keep"), shape[0], shape[3]),
        position_ids=_positions(named.get("position_ids"), shape[0], shape[4]),
        writing=_writing(bias, blocks),
        transposed=transposed,
        extra_keys=extra_keys,
        over_batch=over_batch,
    )


def _writing(bias: np.ndarray | None, blocks: bool) -> Writing:
    added = bias is not None and not is_zeros_and_ones(bias)
    return "added" if added else "blocks" if blocks else "keeps"


def five_axes(array: np.ndarray) -> np.ndarray:
    """Return (Q, K), (H, Q, K), (B, H, Q, K) or (B, L, H, Q, K) as the last of these. Raises DiagnosisError."""
    if array.ndim < 2:
        raise DiagnosisError(
            say(
                "An attention map needs the axes (queries, keys), but this one has the shape {shape}.",
                shape=array.shape,
            )
        )
    return array.reshape([size or 1 for size in own_axes(array.shape)])


def own_axes(shape: Sequence[int], samples: int = 0, heads: int = 0) -> list[int | None]:
    """Return the sizes B, L, H, Q, K that an array of ``shape`` has of its own; None for an axis it lacks.

    With the numbers of ``samples`` and ``heads`` of the map, three axes may also be (B, Q, K) or the batch-major
    (B*H, Q, K) of torch.
    """
    if len(shape) == 4:
        return [shape[0], None, *shape[1:]]
    if len(shape) == 3 and shape[0] not in (1, heads):
        if shape[0] == samples:
            return [samples, None, None, *shape[1:]]
        if shape[0] == samples * heads:
            return [samples, None, heads, *shape[1:]]
    return [None] * (5 - len(shape)) + list(shape)


def is_zeros_and_ones(mask: np.ndarray) -> bool:
    """Whether a float mask holds zeros and ones; zeros alone are added, and block nothing."""
    return bool(np.isin(mask, (0, 1)).all() and mask.any())


def _check_numbers(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "biuf":
        raise DiagnosisError(
            say("{name} holds {kind} values; it must hold numbers or booleans.", name=name, kind=array.dtype)
        )
    if array.size == 0:
        raise DiagnosisError(say("{name} is empty: its shape is {shape}.", name=name, shape=array.shape))
    if array.ndim > 5 or array.size > MAX_CELLS:
        raise DiagnosisError(
            say(
                "{name} has the shape {shape}; at most five axes and {most:,} cells are read.",
                name=name,
                shape=array.shape,
                most=MAX_CELLS,
            )
        )
    return array


def _implied_weights(named: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the softmax of scores or mask, for files without weights; rows that boolean masks leave empty are zero."""
    if "masked_scores" in named:
        scores = five_axes(named["masked_scores"]).astype(np.float32)
    elif "mask" in named:
        mask = five_axes(np.atleast_2d(named["mask"]))
        compared = mask.dtype.kind != "f" or (is_zeros_and_ones(mask) and "scores" not in named)
        added = np.where(mask.astype(bool), 0.0, -np.inf) if compared else mask
        base = five_axes(named["scores"]) if "scores" in named else np.zeros((1, 1))
        try:
            scores = base.astype(np.float32) + added.astype(np.float32)
        except ValueError as error:
            raise DiagnosisError(
                say("The mask {mask} does not broadcast to the scores {scores}.", mask=mask.shape, scores=base.shape)
            ) from error
    else:
        raise DiagnosisError(say("There is nothing to judge: give weights, masked_scores or a mask."))
    if scores.size > MAX_CELLS:
        raise DiagnosisError(
            say(
                "The mask and the scores broadcast to {cells:,} cells; {most:,} are read.",
                cells=scores.size,
                most=MAX_CELLS,
            )
        )
    return softmax(scores, nan_rows="mask" not in named or named["mask"].dtype.kind == "f")


def _is_transposed(weights: np.ndarray, named: Mapping[str, np.ndarray]) -> bool:
    """Whether the shapes of the other arrays say that the weights are (K, Q)."""
    queries, keys = weights.shape[-2:]
    if queries == keys or "weights" not in named:
        return False
    votes: list[tuple[bool, bool]] = []
    have: tuple[int, ...]
    want: tuple[int, ...]
    other: tuple[int, ...]
    for name, array in named.items():
        if name in ("key_keep", "query_keep"):
            have, want = array.shape[-1:], (keys,) if name == "key_keep" else (queries,)
            other = (queries,) if name == "key_keep" else (keys,)
        elif name not in ("weights", "position_ids") and array.ndim >= 2 and 1 not in array.shape[-2:]:
            have, want, other = array.shape[-2:], (queries, keys), (keys, queries)
        else:
            continue
        votes.append((have == want, have == other))
    return bool(votes) and all(swapped and not straight for straight, swapped in votes)


def _check_weights(weights: np.ndarray) -> None:
    if weights.dtype.kind == "b":
        raise DiagnosisError(say("The weights are booleans. If this is a mask, name it mask."))
    with np.errstate(invalid="ignore"):
        if np.isinf(weights).any():
            raise DiagnosisError(say("The weights hold infinite values. If these are scores, name them masked_scores."))
        if (weights < -1e-6).any():
            raise DiagnosisError(say("The weights hold negative values. If these are scores, name them scores."))
        if np.isin(weights, (0, 1)).all() and (weights.sum(-1) > 1).any():
            raise DiagnosisError(say("The weights hold nothing but 0 and 1. If this is a mask, name it mask."))
        if (weights > 100).any():
            raise DiagnosisError(say("The weights hold values far above 1, so they are not attention weights."))


def _fit(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array with five axes, each 1 or that of ``shape``. Raises DiagnosisError."""
    if not array.ndim:
        raise DiagnosisError(say("{name} is a single value; it needs the axes (queries, keys).", name=name))
    fitted = array.reshape([size or 1 for size in own_axes(array.shape, shape[0], shape[2])])
    if any(have not in (1, want) for have, want in zip(fitted.shape, shape, strict=True)):
        raise DiagnosisError(
            say(
                "{name} has the shape {shape}, which does not fit weights of {samples} samples, {layers} layers, "
                "{heads} heads, {queries} queries and {keys} keys.",
                name=name,
                shape=array.shape,
                **dict(zip(("samples", "layers", "heads", "queries", "keys"), shape, strict=True)),
            )
        )
    return fitted


def _scores(name: str, array: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return scores, one for each weight."""
    if array is None:
        return None
    if array.dtype.kind == "b":
        raise DiagnosisError(say("{name} holds booleans; scores are numbers.", name=name))
    return np.broadcast_to(_fit(name, array, shape), shape)


def _mask(array: np.ndarray | None, shape: tuple[int, ...]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the mask as it is added (float masks only), and as booleans, True = may attend."""
    if array is None:
        return None, None
    fitted = _fit("mask", array, shape)
    if array.dtype.kind != "f":
        return None, _boolean("mask", fitted)
    if np.isnan(fitted).any():
        raise DiagnosisError(say("The mask holds NaN."))
    if is_zeros_and_ones(fitted):
        return fitted, fitted > 0
    levels = np.unique(fitted)
    if levels.size == 2 and levels.min() < WEAKEST_FILL:
        return fitted, fitted > levels.min()
    return fitted, ~is_blocked(fitted)


def _meant(array: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    if array is None:
        return None
    fitted = _fit("meant", array, shape)
    if array.dtype.kind == "f" and not np.isin(fitted, (0, 1)).all():
        return fitted > WEAKEST_FILL
    return _boolean("meant", fitted)


def _keep(name: str, array: np.ndarray | None, samples: int, length: int) -> np.ndarray | None:
    """Return (B, length) bool, True = a real token."""
    if array is None:
        return None
    keep = _boolean(name, array)
    if keep.ndim == 4 and keep.shape[1:3] == (1, 1):
        keep = keep[:, 0, 0]
    keep = keep[None] if keep.ndim == 1 else keep
    if keep.ndim != 2 or keep.shape[1] != length or keep.shape[0] not in (1, samples):
        raise DiagnosisError(
            say(
                "{name} has the shape {shape}; it must be ({length},) or ({samples}, {length}).",
                name=name,
                shape=array.shape,
                length=length,
                samples=samples,
            )
        )
    if not keep.any():
        raise DiagnosisError(
            say("{name} says that no token is real. True means a real token: give ids != pad_id.", name=name)
        )
    return np.broadcast_to(keep, (samples, length))


def _positions(array: np.ndarray | None, samples: int, keys: int) -> np.ndarray | None:
    """Return (B, K) whole numbers."""
    if array is None:
        return None
    rows = np.atleast_2d(array)
    if array.dtype.kind not in "iu" or rows.ndim != 2 or rows.shape[1] != keys or rows.shape[0] not in (1, samples):
        raise DiagnosisError(
            say(
                "position_ids are {kind} {shape}; they must be whole numbers of the shape ({keys},) or ({samples}, "
                "{keys}), a position for each key.",
                kind=array.dtype,
                shape=array.shape,
                keys=keys,
                samples=samples,
            )
        )
    return np.broadcast_to(rows, (samples, keys)).astype(np.int64)


def _boolean(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise DiagnosisError(say("{name} must hold booleans, or nothing but 0 and 1.", name=name))
    return array.astype(bool)
