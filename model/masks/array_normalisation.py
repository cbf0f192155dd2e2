"""Normalises arrays of any accepted shape and axis order to one form: (B, L, H, Q, K)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..language import say
from .arrays import ARRAY_NAMES, MAX_CELLS, Arrays, DiagnosisError, MaskWriting, check_numeric_array
from .softmax import is_blocked, softmax

# The weights become (B, L, H, Q, K), and the others broadcast to them. Shapes are right-aligned:
# (Q, K), (H, Q, K), (B, H, Q, K), (B, L, H, Q, K). ``key_keep`` and ``position_ids`` are (K,) or (B, K), ``query_keep``
# (Q,) or (B, Q). A boolean mask is True where a query may attend, a float mask is added to the scores.


_LARGE_MAP = 2**24
"""Cells of a mask from which the weights it implies, equal within a row, are kept in half precision."""
WEAKEST_FILL = -10
"""A float mask of two values, the lower one below this, is meant to block with it, however weak it is."""


@np.errstate(all="ignore")
def normalise_arrays(
    raw: Mapping[str, np.ndarray], map_name: str = "", blocks: bool = False, extra_keys: int = 0
) -> Arrays:
    """Return the named arrays (:data:`ARRAY_NAMES`; others are left alone) in one form.

    ``blocks`` says that the mask, here True = may attend, is written the other way around where it comes from: then
    so are the fixes. ``extra_keys`` of the last keys are no tokens, such as a sink.

    Raises:
        DiagnosisError: for shapes that do not fit each other, wrong kinds of numbers, or nothing to judge.
    """
    named = {
        name: check_numeric_array(name, np.asarray(raw[name])) for name in ARRAY_NAMES if raw.get(name) is not None
    }
    over_batch = is_attention_over_batch(named)
    named = {"weights": named["weights"]} if over_batch else reorder_axes(named, extra_keys)
    has_even_rows = False
    if "weights" in named:
        weights = expand_to_five_axes(named["weights"])
    else:
        weights, has_even_rows = _compute_implied_weights(named)
    transposed = _is_transposed(weights, named)
    if transposed:
        weights = np.swapaxes(weights, -1, -2)
    if "weights" in named:
        if _is_filled_after_softmax(weights):
            weights = np.where(np.isneginf(weights), 0, weights)
        _check_weights(weights)
    shape, positions = weights.shape, named.get("position_ids")
    bias, mask = _normalise_mask(named.get("mask"), shape)
    return Arrays(
        weights=weights,
        given=frozenset(named),
        map=map_name,
        scores=_normalise_scores("scores", named.get("scores"), shape),
        masked_scores=_normalise_scores("masked_scores", named.get("masked_scores"), shape),
        bias=bias,
        mask=mask,
        meant=_normalise_meant(named.get("meant"), shape),
        key_keep=_normalise_padding("key_keep", named.get("key_keep"), shape[0], shape[4]),
        query_keep=_normalise_padding("query_keep", named.get("query_keep"), shape[0], shape[3]),
        position_ids=None if positions is None else normalise_positions(positions, shape[0], shape[4]),
        writing=_detect_mask_convention(bias, blocks),
        transposed=transposed,
        extra_keys=extra_keys,
        has_even_rows=has_even_rows,
        over_batch=over_batch,
    )


def _detect_mask_convention(bias: np.ndarray | None, blocks: bool) -> MaskWriting:
    added = bias is not None and not is_zeros_and_ones(bias)
    return "added" if added else "blocks" if blocks else "keeps"


def expand_to_five_axes(array: np.ndarray) -> np.ndarray:
    """Return (Q, K), (H, Q, K), (B, H, Q, K) or (B, L, H, Q, K) as the last of these. Raises DiagnosisError."""
    if array.ndim < 2:
        raise DiagnosisError(
            say(
                "An attention map needs the axes (queries, keys), but this one has the shape {shape}.",
                shape=array.shape,
            )
        )
    return array.reshape([size or 1 for size in find_axis_sizes(array.shape)])


def find_axis_sizes(shape: Sequence[int], samples: int = 0, heads: int = 0) -> list[int | None]:
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
    return not mask.min() < 0 and bool(((mask == 0) | (mask == 1)).all() and mask.any())


def _compute_implied_weights(named: Mapping[str, np.ndarray]) -> tuple[np.ndarray, bool]:
    """Return the softmax of scores or mask, for files without weights, and whether all values of a row are one or zero.

    Rows that boolean masks leave empty are zero.
    """
    if "masked_scores" in named:
        scores = expand_to_five_axes(named["masked_scores"]).astype(np.float32)
    elif "mask" in named:
        mask = expand_to_five_axes(np.atleast_2d(named["mask"]))
        compared = mask.dtype.kind != "f" or (is_zeros_and_ones(mask) and "scores" not in named)
        if "scores" not in named and (compared or ((mask == 0) | is_blocked(mask)).all()):
            allowed = mask.astype(bool, copy=False) if compared else mask == 0
            weights = _build_uniform_weights(allowed)
            if mask.dtype.kind != "f":
                return weights, True
            empty = ~allowed.any(-1)
            fills = softmax(mask[empty].astype(np.float32), nan_rows=True)
            weights[empty] = fills
            return weights, bool(((fills == 0) | ~(fills != fills.max(-1, keepdims=True))).all())
        base = expand_to_five_axes(named["scores"]) if "scores" in named else np.zeros((1, 1))
        _check_broadcast_size(base, mask)
        added = np.where(mask.astype(bool), 0.0, -np.inf) if compared else mask
        scores = base.astype(np.float32) + added.astype(np.float32)
    else:
        raise DiagnosisError(say("There is nothing to judge: give weights, masked_scores or a mask."))
    return softmax(scores, nan_rows="mask" not in named or named["mask"].dtype.kind == "f"), False


def _check_broadcast_size(scores: np.ndarray, mask: np.ndarray) -> None:
    """Raise DiagnosisError where the two do not broadcast, or to more cells than are read."""
    try:
        cells = math.prod(np.broadcast_shapes(scores.shape, mask.shape))
    except ValueError as error:
        raise DiagnosisError(
            say("The mask {mask} does not broadcast to the scores {scores}.", mask=mask.shape, scores=scores.shape)
        ) from error
    if cells > MAX_CELLS:
        raise DiagnosisError(
            say("The mask and the scores broadcast to {cells:,} cells; {most:,} are read.", cells=cells, most=MAX_CELLS)
        )


def _build_uniform_weights(allowed: np.ndarray) -> np.ndarray:
    """Return the softmax of equal scores over the ``allowed`` cells (..., K); rows without any are zero."""
    share = 1 / np.maximum(allowed.sum(-1, keepdims=True, dtype=np.float32), 1)
    kind = np.float32 if allowed.size < _LARGE_MAP else np.float16
    return np.where(allowed, share.astype(kind), kind(0))


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


def _is_filled_after_softmax(weights: np.ndarray) -> bool:
    """Whether weights, not scores, were filled with -inf: all others are shares that sum to no more than 1."""
    filled = np.isneginf(weights)
    if weights.dtype.kind != "f" or not filled.any():
        return False
    shares = np.where(filled, 0, weights)
    total = shares.sum(-1, dtype=np.float64)
    return bool((shares >= 0).all() and (total < 1 + _SUM_TOLERANCE).all() and (total > 0).any())


def _check_weights(weights: np.ndarray) -> None:
    if weights.dtype.kind == "b":
        raise DiagnosisError(say("The weights are booleans. If this is a mask, name it mask."))
    with np.errstate(invalid="ignore"):
        if np.isinf(weights).any():
            raise DiagnosisError(say("The weights hold infinite values. If these are scores, name them masked_scores."))
        if (weights < -1e-6).any():
            raise DiagnosisError(_explain_negative_weights(weights))
        if np.isin(weights, (0, 1)).all() and (weights.sum(-1) > 1).any():
            raise DiagnosisError(say("The weights hold nothing but 0 and 1. If this is a mask, name it mask."))
        if (weights > 100).any():
            raise DiagnosisError(say("The weights hold values far above 1, so they are not attention weights."))


def _explain_negative_weights(weights: np.ndarray) -> str:
    """Return a sentence about weights of which some are negative: scores, or a difference of two softmaxes."""
    total = weights.sum(-1, dtype=np.float64)
    if np.ptp(total) > _SUM_TOLERANCE or not 0 < total.max() < 1 + _SUM_TOLERANCE:
        return say("The weights hold negative values. If these are scores, name them scores.")
    return say(
        "The weights hold negative values, and every row sums to {total:.2f}: the difference of two softmaxes, as in "
        "differential attention. Give each of the two by itself.",
        total=float(total.mean()),
    )


def _fit_to_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array with five axes, each 1 or that of ``shape``. Raises DiagnosisError."""
    if not array.ndim:
        raise DiagnosisError(say("{name} is a single value; it needs the axes (queries, keys).", name=name))
    fitted = array.reshape([size or 1 for size in find_axis_sizes(array.shape, shape[0], shape[2])])
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


def _normalise_scores(name: str, array: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return scores, one for each weight."""
    if array is None:
        return None
    if array.dtype.kind == "b":
        raise DiagnosisError(say("{name} holds booleans; scores are numbers.", name=name))
    return np.broadcast_to(_fit_to_shape(name, array, shape), shape)


def _normalise_mask(array: np.ndarray | None, shape: tuple[int, ...]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the mask as it is added (float masks only), and as booleans, True = may attend."""
    if array is None:
        return None, None
    fitted = _fit_to_shape("mask", array, shape)
    if array.dtype.kind != "f":
        return None, _convert_to_boolean("mask", fitted)
    if np.isnan(fitted).any():
        raise DiagnosisError(say("The mask holds NaN."))
    if is_zeros_and_ones(fitted):
        return fitted, fitted > 0
    low, high = fitted.min(), fitted.max()
    if low < high and low < WEAKEST_FILL and ((fitted == low) | (fitted == high)).all():
        return fitted, fitted > low
    return fitted, ~is_blocked(fitted)


def _normalise_meant(array: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    if array is None:
        return None
    fitted = _fit_to_shape("meant", array, shape)
    if array.dtype.kind == "f" and not np.isin(fitted, (0, 1)).all():
        return fitted > WEAKEST_FILL
    return _convert_to_boolean("meant", fitted)


def _normalise_padding(name: str, array: np.ndarray | None, samples: int, length: int) -> np.ndarray | None:
    """Return (B, length) bool, True = a real token."""
    if array is None:
        return None
    keep = _convert_to_boolean(name, array)
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


def normalise_positions(array: np.ndarray, samples: int, keys: int) -> np.ndarray:
    """Return (B, K) whole numbers. Raises DiagnosisError for others."""
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


def _convert_to_boolean(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise DiagnosisError(say("{name} must hold booleans, or nothing but 0 and 1.", name=name))
    return array.astype(bool, copy=False)


# Arrays whose axes are ordered, or whose numbers are scaled, in other ways than a diagnosis takes them.


_SUM_TOLERANCE = 0.02
"""How far a sum may be from 1 to count as 1; for percent, how far from 100 as a part of 100."""


def reorder_axes(named: Mapping[str, np.ndarray], extra_keys: int = 0) -> dict[str, np.ndarray]:
    """Return the named arrays with the axes of samples, layers and heads where they belong, and shares of 1.

    Averaged weights of torch (N, L, S) and stacked layers (L, N, H, Q, K) are known by the samples of the padding;
    percent by their sums; a mask beside padding (N, S) may be (L, S) or (N*H, L, S). Padding and meant masks that leave
    out the ``extra_keys`` last keys, which are no tokens, get them.

    Raises:
        DiagnosisError: for weights whose last axis seems to be that of the heads: that is a question to a person; and
            for a mask and padding of more cells than are read.
    """
    arrays = dict(named)
    keep = arrays.get("key_keep")
    if "weights" in arrays:
        samples = keep.shape[0] if keep is not None and keep.ndim == 2 else 0
        for name in {"key_keep", "meant"} & arrays.keys():
            arrays[name] = _append_extra_keys(arrays[name], arrays["weights"].shape[-1:], extra_keys)
        if keep is not None and "query_keep" not in arrays:
            arrays["key_keep"] = _append_sink_key(arrays["key_keep"], arrays["weights"].shape)
        arrays["weights"] = _convert_percent(_add_sample_axes(arrays["weights"], samples))
        _refuse_trailing_heads(arrays["weights"])
    elif "mask" in arrays and "masked_scores" not in arrays and keep is not None:
        arrays["mask"] = _split_mask_samples(arrays["mask"], keep)
    return arrays


def is_attention_over_batch(named: Mapping[str, np.ndarray]) -> bool:
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


def _add_sample_axes(weights: np.ndarray, samples: int) -> np.ndarray:
    """Return averaged or stacked weights as (N, 1, L, S) or (N, L, H, Q, K), where ``samples`` tells them apart."""
    shape = weights.shape
    if samples > 1 and len(shape) == 3 and shape[0] == samples:
        return weights[:, None]
    if samples > 1 and len(shape) == 5 and shape[1] == samples != shape[0]:
        return weights.swapaxes(0, 1)
    return weights


def _append_extra_keys(array: np.ndarray, keys: tuple[int, ...], extra: int) -> np.ndarray:
    """Return (..., K) with the ``extra`` last of the ``keys`` (K,) appended, open to all, where they are missing."""
    if not extra or array.shape[-1:] != (keys[0] - extra,):
        return array
    return np.concatenate([array, np.ones((*array.shape[:-1], extra), array.dtype)], -1)


def _append_sink_key(keep: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return (B, K) padding with one more key, where weights of Q = K queries have a sink as their last column."""
    queries, keys = shape[-2:] if len(shape) > 1 else (0, 0)
    if keep.ndim and keep.shape[-1] == queries == keys - 1:
        return np.concatenate([keep, np.ones_like(keep[..., :1])], -1)
    return keep


def _convert_percent(weights: np.ndarray) -> np.ndarray:
    """Return percent as shares of 1: where all rows that are not zero sum to 100."""
    if weights.dtype.kind not in "iuf" or weights.ndim < 2:
        return weights
    total = weights.sum(-1, dtype=np.float64)
    rows = total[(total != 0) & np.isfinite(total)]
    if not rows.size or not (np.abs(rows - 100) <= 100 * _SUM_TOLERANCE).all():
        return weights
    return weights / np.float32(100)


def _refuse_trailing_heads(weights: np.ndarray) -> None:
    """Raise DiagnosisError for (Q, K, H) and (B, Q, K, H)."""
    if weights.ndim not in (3, 4) or weights.dtype.kind != "f":
        return
    queries, keys, heads = weights.shape[-3:]
    if heads in (queries, keys) or queries != keys or not _has_unit_sums(weights, -2) or _has_unit_sums(weights, -1):
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


def _has_unit_sums(weights: np.ndarray, axis: int) -> bool:
    total = weights.sum(axis, dtype=np.float64)
    rows = total[(total != 0) & np.isfinite(total)]
    return bool(rows.size and (np.abs(rows - 1) <= _SUM_TOLERANCE).all())


def _split_mask_samples(mask: np.ndarray, key_keep: np.ndarray) -> np.ndarray:
    """Return a mask without weights beside padding (N, S), as torch takes the two: (L, S) and (N*H, L, S).

    Both become (N, 1 or H, L, S). The first has no place for padding, so the two are joined, as torch does; unless
    nothing but padding would be left to a real query: then the mask is left to be judged as it is.

    Raises:
        DiagnosisError: where the two together have more cells than are read.
    """
    samples = key_keep.shape[0] if key_keep.ndim == 2 else 0
    if not samples or mask.ndim not in (2, 3) or mask.shape[-1] != key_keep.shape[-1]:
        return mask
    if mask.ndim == 3:
        batched = samples > 1 and mask.shape[0] % samples == 0
        return mask.reshape(samples, -1, *mask.shape[1:]) if batched else mask
    if len(mask) == 1:
        return mask
    if samples * mask.size > MAX_CELLS:
        raise DiagnosisError(
            say(
                "The mask and the padding broadcast to {cells:,} cells; {most:,} are read.",
                cells=samples * mask.size,
                most=MAX_CELLS,
            )
        )
    keep = key_keep.astype(bool)[:, None, None, :]
    whole = np.broadcast_to(mask, (samples, 1, *mask.shape))
    added = mask.dtype.kind == "f" and bool((mask < 0).any())
    allowed = ~is_blocked(whole) if added else whole.astype(bool)
    real = key_keep.astype(bool) if mask.shape[0] == mask.shape[1] else np.ones((samples, len(mask)), bool)
    emptied = allowed.any(-1) & ~(allowed & keep).any(-1) & real[:, None] & keep.any(-1)
    if emptied.any():
        return whole
    return np.where(keep, whole, np.asarray(-np.inf if added else 0)).astype(mask.dtype)
