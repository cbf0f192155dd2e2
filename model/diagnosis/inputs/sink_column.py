"""A sink that was recorded as a key: one more column at the end, to which every query attends, as in gpt-oss."""

from __future__ import annotations

import dataclasses

import numpy as np

from .arrays import Arrays


def has_sink_column(arrays: Arrays) -> bool:
    """Whether the last of Q + 1 keys is a sink: the others are causal from the top left, and every query attends to it.

    A cache of one token would let the first query see two keys.
    """
    _, _, _, queries, keys = arrays.sizes
    if keys != queries + 1 or queries < 3 or arrays.map in ("encoder", "cross") or arrays.meant is not None:
        return False
    if "weights" not in arrays.given or np.isnan(arrays.weights).any():
        return False
    nonzero = arrays.weights > 0
    later = np.triu(np.ones((queries, queries), bool), 1)
    own = nonzero[..., :-1]
    diagonal = own[..., np.eye(queries, dtype=bool)]
    return bool(nonzero[..., -1].all() and not (own & later).any() and diagonal.mean() > 0.5)


def without_last_keys(arrays: Arrays, count: int) -> Arrays:
    """Return the arrays without their last keys."""
    names = ("weights", "scores", "masked_scores", "bias", "mask", "meant", "key_keep")
    changed = {
        name: array[..., :-count]
        for name in names
        if (array := getattr(arrays, name)) is not None and array.shape[-1] == arrays.sizes[4]
    }
    return dataclasses.replace(arrays, **changed)
