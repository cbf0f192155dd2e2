"""One layer of the encoder and of the decoder: attention, feed-forward network, residual connections and norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ..pytorch.dropout import Dropout
from ..pytorch.linear import Linear
from .attention import KeyValueCache, MultiHeadAttention
from .config import TransformerConfig
from .hooks import HookPoint


class StdLayerNorm(nn.Module):
    """gain * (x - mean) / (std + eps) + bias, with the sample standard deviation (The Annotated Transformer)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        """x (..., D) -> (..., D)"""
        # The variance is kept above zero before the root, whose slope there is infinite: a constant row (a zero
        # embedding, say) would turn every gradient into NaN.
        std = x.var(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny).sqrt()
        return self.weight * (x - x.mean(-1, keepdim=True)) / (std + self.eps) + self.bias


def layer_norm(config: TransformerConfig) -> nn.Module:
    """Return a layer norm of the form and the epsilon that the config names."""
    if config.norm_form == "std_eps":
        return StdLayerNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2, eq. (2)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inner = Linear(config.d_model, config.feed_forward, bias=config.feed_forward_bias)
        self.outer = Linear(config.feed_forward, config.d_model, bias=config.feed_forward_bias)
        self.dropout = Dropout(config.dropout_at("feed_forward"))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, D) -> (B, T, D)"""
        return self.outer(self.dropout(self.inner(x).relu()))


class Residual(nn.Module):
    """Wraps one sublayer: norm(x + dropout(f(x))) in post-norm, x + dropout(f(norm(x))) in pre-norm.

    Hook point ``stream`` (B, T, D): the residual stream after this sublayer.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre = config.norm_order == "pre"
        self.norm = layer_norm(config)
        self.dropout = Dropout(config.dropout_at("sublayer"))
        self.stream = HookPoint()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x (B, T, D) -> (B, T, D)"""
        if self.pre:
            return self.stream(x + self.dropout(sublayer(self.norm(x))))
        return self.stream(self.norm(x + self.dropout(sublayer(x))))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, section 3.1."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.after_self_attention, self.after_feed_forward = Residual(config), Residual(config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, S, D), mask broadcastable to (B, H, S, S) -> (B, S, D)"""
        x = self.after_self_attention(x, lambda y: self.self_attention(y, y, mask))
        return self.after_feed_forward(x, self.feed_forward)


@dataclass
class LayerCache:
    """The keys and values that one decoder layer need not compute again at the next step."""

    self_attention: KeyValueCache = field(default_factory=KeyValueCache)
    cross_attention: KeyValueCache = field(default_factory=KeyValueCache)


Shortcut = Callable[[Tensor, Tensor | None, Sequence[LayerCache]], Tensor]
"""The layers of a decoder for one token each that nobody observes: x (B, 1, D), the memory's mask, caches -> x."""


class DecoderCache:
    """Keys and values of a decoder that is fed one token at a time; belongs to one decoding, never to the model."""

    def __init__(self, layers: int, shortcut: Shortcut | None = None) -> None:
        self.layers = [LayerCache() for _ in range(layers)]
        self.shortcut = shortcut

    @property
    def length(self) -> int:
        """Target positions already decoded."""
        return self.layers[0].self_attention.length

    def reorder(self, rows: Tensor, cross: Tensor | None = None) -> None:
        """Keep the given rows (B',) of the batch, in cross-attention the rows `cross`; None for all of them."""
        for layer in self.layers:
            layer.self_attention.reorder(rows)
            if cross is not None:
                layer.cross_attention.reorder(cross)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, then the feed-forward network, section 3.1."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention, self.cross_attention = MultiHeadAttention(config), MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.after_self_attention, self.after_cross_attention = Residual(config), Residual(config)
        self.after_feed_forward = Residual(config)

    def forward(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, memory_mask: Tensor | None, cache: LayerCache | None
    ) -> Tensor:
        """x (B, T, D), memory (B, S, D), masks broadcastable to (B, H, T, T) and (B, H, T, S) -> (B, T, D)"""
        own = cache.self_attention if cache else None
        other = cache.cross_attention if cache else None
        seen = None if other is not None and other.length else memory
        x = self.after_self_attention(x, lambda y: self.self_attention(y, y, mask, own))
        x = self.after_cross_attention(x, lambda y: self.cross_attention(y, seen, memory_mask, other))
        return self.after_feed_forward(x, self.feed_forward)
