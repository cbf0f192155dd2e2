"""Attention that a recurrent decoder calls once a time step: the calls of one module as the rows of one map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from .calls.call import Call
from .calls.fused_weights import Attention


def is_step(call: Call) -> bool:
    """Whether this may be one time step of a recurrent decoder: one query, over keys that are not its own."""
    queries, keys = call.shape
    return queries == 1 and keys > 1 and "self" not in call.path


def as_rows(calls: Sequence[Call]) -> list[Call]:
    """Return the calls, with those of time steps joined: of a module that was only ever called with one query.

    A module that is called with several, or once more in another forward, is shared by layers, which stay apart.
    """
    others = {call.path for call in calls if not is_step(call)}
    steps: dict[tuple[str, int], list[Call]] = {}
    for call in calls:
        if call.path not in others:
            steps.setdefault((call.path, call.run), []).append(call)
    joined: list[Call] = []
    for call in calls:
        found = steps.get((call.path, call.run), [])
        if len({one.attention.weights.shape for one in found}) != 1 or len(found) == 1:
            joined.append(call)
        elif call is found[0]:
            joined.append(_below_each_other(found))
    return joined


def _below_each_other(steps: list[Call]) -> Call:
    parts = [call.attention for call in steps]
    tensors = {}
    for name in set.intersection(*(set(part.tensors) for part in parts)):
        found = [part.tensors[name] for part in parts]
        if name not in ("k", "v"):
            tensors[name] = torch.cat(found, 2)
        elif all(torch.equal(found[0], one) for one in found):
            tensors[name] = found[0]
    weights, allowed = (torch.cat([getattr(part, name) for part in parts], 2) for name in ("weights", "allowed"))
    masks = [part.passed for part in parts if part.passed is not None]
    passed = torch.cat(masks, 2) if len(masks) == len(parts) else None
    return replace(steps[0], attention=Attention(weights, allowed, tensors, passed=passed), is_cross=True)
