"""Gradients of a number with respect to captured weights, in the place of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...language.say import say, to_say
from ...trace import TraceError
from .calls.call import Call

NO_GRAPH = to_say(
    "These weights are no part of a graph of gradients: capture with detach=False, without torch.no_grad(), and give a "
    "number that was computed inside the block."
)


def gradients_of(target: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """Return d target / d weights for each tensor, zeros where there is no way from one to the other.

    Raises TraceError without a graph.
    """
    if target.numel() != 1 or not target.requires_grad or not all(one.requires_grad for one in weights) or not weights:
        raise TraceError(say(NO_GRAPH))
    found = torch.autograd.grad(target, list(weights), retain_graph=True, allow_unused=True)
    pairs = zip(weights, found, strict=True)
    return [torch.zeros_like(one) if gradient is None else gradient for one, gradient in pairs]


def with_gradients(calls: Sequence[Call], target: Tensor) -> list[Call]:
    """Return the calls with gradients for weights. Raises TraceError for a call whose gradients are not known."""
    kept = [call.graph for call in calls if call.graph is not None]
    if len(kept) < len(calls) and kept:
        path = next(call.path for call in calls if call.graph is None)
        raise TraceError(
            say(
                "The weights of {path} are made of blocks or beside a kernel: their gradients are not known.", path=path
            )
        )
    changed = []
    for call, gradient, (_, layout) in zip(calls, gradients_of(target, [one for one, _ in kept]), kept, strict=True):
        weights = layout(gradient).float()
        if weights.shape != call.attention.weights.shape:
            raise TraceError(
                say("The heads of {path} are put together from several: their gradients are not known.", path=call.path)
            )
        changed.append(replace(call, attention=replace(call.attention, weights=weights, tensors={})))
    return changed
