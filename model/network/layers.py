"""Encoder and decoder layers: feed-forward, residual connections, norms and positional encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ..fast_linear import Dropout, Linear
from ..language import say
from .attention import KeyValueCache, MultiHeadAttention
from .config import TransformerConfig
from .hooks import HookPoint, hook_outputs


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


def make_layer_norm(config: TransformerConfig) -> nn.Module:
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
        self.norm = make_layer_norm(config)
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


DecoderShortcut = Callable[[Tensor, Tensor | None, Sequence[LayerCache]], Tensor]
"""The layers of a decoder for one token each that nobody observes: x (B, 1, D), the memory's mask, caches -> x."""


class DecoderCache:
    """Keys and values of a decoder that is fed one token at a time; belongs to one decoding, never to the model."""

    def __init__(self, layers: int, shortcut: DecoderShortcut | None = None) -> None:
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


# Positions: the sinusoidal table of section 3.5, the same with a zero row for PAD, or a learned table.


@dataclass(frozen=True, eq=False)
class AddedPositions:
    """What one side of a network, ours or anybody's, adds to its token embeddings: a row for every position."""

    module: nn.Module
    """Its output, (T, D) or (1 or B, T, D), is what is added."""
    rows: Tensor
    """(P, D) the rows of positions 0 to P - 1."""
    formula: Callable[[Tensor], Tensor] | None
    """Positions (N,) float64, whole or not -> their rows (N, D); None where the rows were learned."""
    replace_rows: Callable[[Tensor], AbstractContextManager[None]]
    """Opens a block in which this thread's runs add other rows (P, D) in place of these."""
    factor: float
    """What the output of the token embedding is multiplied by before the rows are added."""
    scale: float
    """That and what the token embedding itself multiplies by: sqrt(D) or 1 (section 3.4)."""
    normalised: bool = False
    """Whether a norm takes the sum before the first layer does."""


def make_sinusoidal_table(positions: int, d_model: int, base: float = 10000.0) -> Tensor:
    """PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i+1) = cos(the same angle): -> (positions, D) float64.

    An odd D leaves the last sine without its cosine. Computed in float64; the caller casts once at the end.
    """
    return compute_sinusoidal_rows(torch.arange(positions, dtype=torch.float64, device="cpu"), d_model, base)


def compute_sinusoidal_rows(positions: Tensor, d_model: int, base: float = 10000.0) -> Tensor:
    """Return sinusoidal rows of any positions (P,) float64, negative and fractional ones too: -> (P, D) float64."""
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device) / d_model
    angle = positions[:, None] / base**exponent
    table = positions.new_empty(len(positions), d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


class PositionalEncoding(nn.Module):
    """Rows of the table for a stretch of positions. A sinusoidal table is never stored in a checkpoint.

    Hook point ``rows``: the whole table before rows are looked up in it, so that a hook which replaces it serves a
    whole sentence and a cached step alike.
    """

    table: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.kind = config.positions
        self.max_length = config.max_length
        self.rows = HookPoint()
        if self.kind == "learned":
            self.table = nn.Parameter(torch.randn(config.max_length, config.d_model) * config.d_model**-0.5)
            return
        rows = make_sinusoidal_table(config.max_length, config.d_model)
        if self.kind == "sinusoidal_pad_row":
            rows = torch.cat([torch.zeros_like(rows[:1]), rows])
        self.register_buffer("table", rows.to(torch.get_default_dtype()), persistent=False)

    @property
    def first(self) -> int:
        """The row of the first real position: 1 where row 0 belongs to PAD."""
        return 1 if self.kind == "sinusoidal_pad_row" else 0

    def make_added_positions(self, module: nn.Module, scale: float) -> AddedPositions:
        """Return the table's rows, which `module` passes on, beside token embeddings multiplied by `scale` before."""
        rows = self.table.detach()[self.first :]
        width = rows.shape[1]
        formula = None if self.kind == "learned" else lambda positions: compute_sinusoidal_rows(positions, width)
        return AddedPositions(module, rows, formula, self._replace_table_rows, 1.0, scale)

    def _replace_table_rows(self, rows: Tensor) -> AbstractContextManager[None]:
        return hook_outputs({self.rows: lambda table: torch.cat([table[: self.first], rows])})

    def forward(self, keep: Tensor, offset: int = 0) -> Tensor:
        """keep (B, T) bool, True = a real token -> encodings (1 or B, T, D) of positions offset .. offset + T - 1."""
        length = keep.shape[1]
        if offset + length > self.max_length:
            raise ValueError(
                say(
                    "The text has {count} tokens, but this model has positions for {most} at most.",
                    count=offset + length,
                    most=self.max_length,
                )
            )
        if self.kind == "sinusoidal_pad_row":
            counted = torch.arange(offset + 1, offset + length + 1, device=keep.device)
            return self.rows(self.table)[counted * keep]
        return self.rows(self.table)[offset : offset + length][None]
