"""Arrays whose axes are ordered, or whose numbers are scaled, in other ways than a diagnosis takes them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...language.say import say
from ...masking.blocked import is_blocked
from .arrays import DiagnosisError

_CLOSE = 0.02
"""How far a sum may be from 1, or from 100 in hundredths of that, to be taken for it."""


def in_order(named: Mapping[str, np.ndarray], extra_keys: int = 0) -> dict[str, np.ndarray]:
    """Return the named arrays with the axes of samples, layers and heads where they belong, and shares of 1.

    Averaged weights of torch (N, L, S) and stacked layers (L, N, H, Q, K) are known by the samples of the padding;
    percent by their sums; a mask beside padding (N, S) may be (L, S) or (N*H, L, S). Padding and meant masks that leave
    out the ``extra_keys`` last keys, which are no tokens, get them.

    Raises:
        DiagnosisError: for weights whose last axis seems to be that of the heads: that is a question to a person.
    """
    arrays = dict(named)
    keep = arrays.get("key_keep")
    if "weights" in arrays:
        samples = keep.shape[0] if keep is not None and keep.ndim == 2 else 0
        for name in {"key_keep", "meant"} & arrays.keys():
            arrays[name] = _with_extra(arrays[name], arrays["weights"].shape[-1:], extra_keys)
        if keep is not None and "query_keep" not in arrays:
            arrays["key_keep"] = _with_sink(arrays["key_keep"], arrays["weights"].shape)
        arrays["weights"] = _in_shares(_with_axes(arrays["weights"], samples))
        _ask_for_heads(arrays["weights"])
    elif "mask" in arrays and "masked_scores" not in arrays and keep is not None:
        arrays["mask"] = _with_samples(arrays["mask"], keep)
    return arrays


def is_over_batch(named: Mapping[str, np.ndarray]) -> bool:
    """Whether weights (T, H, B, B) or (T, B, B) lie beside padding (B, T), or beside a mask of T keys, B not being T.

    That is attention over the samples in place of the tokens: (B, T, D) handed to a module that takes (T, B, D).
    """
    shape = named["weights"].shape if "weights" in named else ()
    if len(shape) not in (3, 4) or shape[-1] != shape[-2] or shape[0] == shape[-1]:
        return False
    tokens, samples = shape[0], shape[-1]
    keep = named.get("key_keep")
    if keep is not None:
        return keep.shape == (samples, tokens)
    grids = [named[name].shape[-2:] for name in ("meant", "mask") if name in named]
    return len(shape) == 4 and bool(grids) and all(grid == (tokens, tokens) for grid in grids)


def _with_axes(weights: np.ndarray, samples: int) -> np.ndarray:
    """Return averaged or stacked weights as (N, 1, L, S) or (N, L, H, Q, K), where ``samples`` tells them apart."""
    shape = weights.shape
    if samples > 1 and len(shape) == 3 and shape[0] == samples:
        return weights[:, None]
    if samples > 1 and len(shape) == 5 and shape[1] == samples != shape[0]:
        return weights.swapaxes(0, 1)
    return weights


def _with_extra(array: np.ndarray, keys: tuple[int, ...], extra: int) -> np.ndarray:
    """Return (..., K) of what is kept with the extra of the ``keys`` (K,), open to all, where it lacks them."""
    if not extra or array.shape[-1:] != (keys[0] - extra,):
        return array
    return np.concatenate([array, np.ones((*array.shape[:-1], extra), array.dtype)], -1)


def _with_sink(keep: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return (B, K) padding with one more key, where weights of Q = K queries have a sink as their last column."""
    queries, keys = shape[-2:] if len(shape) > 1 else (0, 0)
    if keep.ndim and keep.shape[-1] == queries == keys - 1:
        return np.concatenate([keep, np.ones_like(keep[..., :1])], -1)
    return keep


def _in_shares(weights: np.ndarray) -> np.ndarray:
    """Return percent as shares of 1: where all rows that are not zero sum to 100."""
    if weights.dtype.kind not in "iuf" or weights.ndim < 2:
        return weights
    total = weights.sum(-1, dtype=np.float64)
    rows = total[(total != 0) & np.isfinite(total)]
    if not rows.size or not (np.abs(rows - 100) <= 100 * _CLOSE).all():
        return weights
    return weights / np.float32(100)


def _ask_for_heads(weights: np.ndarray) -> None:
    """Raise DiagnosisError for (Q, K, H) and (B, Q, K, H)."""
    if weights.ndim not in (3, 4) or weights.dtype.kind != "f":
        return
    queries, keys, heads = weights.shape[-3:]
    if heads in (queries, keys) or queries != keys or not _sums_to_one(weights, -2) or _sums_to_one(weights, -1):
        return
    whole = weights.ndim == 4
    raise DiagnosisError(
        say(
            "The weights {shape} sum to 1 along the axis before the last. Are the axes {axes}? Then give "
            "weights.transpose({order}). If they are queries last, give weights.swapaxes(-1, -2).",
            shape=weights.shape,
            axes=say("(samples, queries, keys, heads)") if whole else say("(queries, keys, heads)"),
            order="0, 3, 1, 2" if whole else "2, 0, 1",
        )
    )


def _sums_to_one(weights: np.ndarray, axis: int) -> bool:
    total = weights.sum(axis, dtype=np.float64)
    rows = total[(total != 0) & np.isfinite(total)]
    return bool(rows.size and (np.abs(rows - 1) <= _CLOSE).all())


def _with_samples(mask: np.ndarray, key_keep: np.ndarray) -> np.ndarray:
    """Return a mask without weights beside padding (N, S), as torch takes the two: (L, S) and (N*H, L, S).

    Both become (N, 1 or H, L, S). The first has no place for padding, so the two are joined, as torch does; unless
    nothing but padding would be left to a real query: then the mask is left to be judged as it is.
    """
    samples = key_keep.shape[0] if key_keep.ndim == 2 else 0
    if not samples or mask.ndim not in (2, 3) or mask.shape[-1] != key_keep.shape[-1]:
        return mask
    if mask.ndim == 3:
        batched = samples > 1 and mask.shape[0] % samples == 0
        return mask.reshape(samples, -1, *mask.shape[1:]) if batched else mask
    if len(mask) == 1:
        return mask
    keep = key_keep.astype(bool)[:, None, None, :]
    whole = np.broadcast_to(mask, (samples, 1, *mask.shape))
    added = mask.dtype.kind == "f" and bool((mask < 0).any())
    allowed = ~is_blocked(whole) if added else whole.astype(bool)
    real = key_keep.astype(bool) if mask.shape[0] == mask.shape[1] else np.ones((samples, len(mask)), bool)
    emptied = allowed.any(-1) & ~(allowed & keep).any(-1) & real[:, None] & keep.any(-1)
    if emptied.any():
        return whole
    return np.where(keep, whole, np.asarray(-np.inf if added else 0)).astype(mask.dtype)
