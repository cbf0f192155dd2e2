"""A step of decoding that nobody observes: the layers' own sums, in their order, without a call of each module.

A step through the modules makes a hundred calls and passes eighty hook points, which for a single row takes longer than
what is computed. The numbers are the same to the last digit; a test compares both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from ..pytorch.torch_internals import functions_are_watched, has_hooks
from .attention import KeyValueCache, MultiHeadAttention, beams_apart, beams_together, chosen_path, masked_softmax
from .hooks import is_observed
from .layers import DecoderLayer, LayerCache, Residual, Shortcut

Sublayer = Callable[[Tensor], Tensor]


def nobody_looks(device: torch.device) -> bool:
    """Whether this thread computes on the explicit path now, unobserved and without gradients."""
    looked_at = torch.is_grad_enabled() or is_observed() or functions_are_watched()
    return not looked_at and chosen_path(device) == "explicit"


def shortcut_through(layers: Iterable[nn.Module]) -> Shortcut | None:
    """Return a way through decoder layers for one decoding; None where one is in training or has a hook of anybody."""
    parts = []
    for layer in layers:
        if not isinstance(layer, DecoderLayer) or layer.training or any(map(has_hooks, layer.modules())):
            return None
        parts.append(_Layer(layer))

    def through(x: Tensor, memory_mask: Tensor | None, caches: Sequence[LayerCache]) -> Tensor:
        for part, cache in zip(parts, caches, strict=True):
            x = part(x, memory_mask, cache.self_attention, cache.cross_attention)
        return x

    return through


class _Layer:
    def __init__(self, layer: DecoderLayer) -> None:
        self.own, self.other = _Attention(layer.self_attention), _Attention(layer.cross_attention)
        self.inner, self.outer = layer.feed_forward.inner.forward, layer.feed_forward.outer.forward
        self.around_own, self.around_other = _around(layer.after_self_attention), _around(layer.after_cross_attention)
        self.around_feed_forward = _around(layer.after_feed_forward)

    def __call__(self, x: Tensor, memory_mask: Tensor | None, own: KeyValueCache, other: KeyValueCache) -> Tensor:
        x = self.around_own(x, lambda y: self.own(y, *own.append(*self.own.keys_values(y)), None))
        x = self.around_other(x, lambda y: self.other(y, *other.held(), memory_mask))
        return self.around_feed_forward(x, lambda y: self.outer(self.inner(y).relu()))


class _Attention:
    def __init__(self, attention: MultiHeadAttention) -> None:
        projections = attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj
        self.q, self.k, self.v, self.out = (one.forward for one in projections)
        self.heads, self.scale = attention.heads, attention.scale

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, 1, D) -> (B, H, 1, d) each"""
        size = x.shape[0], self.heads, 1, -1
        return self.k(x).view(size), self.v(x).view(size)

    def __call__(self, x: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, 1, D), k and v (B, H, K, d) or of fewer sentences, whose hypotheses share them -> (B, 1, D)"""
        rows, memories = x.shape[0], k.shape[0]
        q = self.q(x) * self.scale
        if memories == rows and mask is None:  # one token has one row of each head, which lie as they are multiplied
            weights = torch.bmm(q.view(rows * self.heads, 1, -1), k.flatten(0, 1).mT).softmax(-1)
            return self.out(torch.bmm(weights, v.flatten(0, 1)).view(x.shape))
        q = q.view(rows, self.heads, 1, -1)
        scores = (beams_together(q, memories) if memories < rows else q) @ k.mT
        weights = masked_softmax(scores if mask is None else scores.masked_fill(~mask, -math.inf), mask)
        context = beams_apart(weights @ v) if memories < rows else weights @ v
        return self.out(context.reshape(x.shape))


def _around(residual: Residual) -> Callable[[Tensor, Sublayer], Tensor]:
    norm = residual.norm.forward
    if residual.pre:
        return lambda x, sublayer: x + sublayer(norm(x))
    return lambda x, sublayer: norm(x + sublayer(x))
