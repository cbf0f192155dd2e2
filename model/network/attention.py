"""Multi-head attention (section 3.2) with a hook point for every tensor, and its boolean masks.

The explicit path exists to be looked at; the fused kernel is taken where it is faster and nobody looks. On a CPU the
explicit path is the faster one (bench/README.md), so looking changes nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..fast_linear import Dropout, Linear
from .config import TransformerConfig
from .hooks import HookPoint, is_observed

AttentionPath = Literal["explicit", "fused"]
_forced_path: ContextVar[AttentionPath | None] = ContextVar("forced_path", default=None)


@contextmanager
def force_attention_path(path: AttentionPath) -> Iterator[None]:
    """Force one of the two paths in this thread, for parity tests, benchmarks and the observer check."""
    token = _forced_path.set(path)
    try:
        yield
    finally:
        _forced_path.reset(token)


def choose_attention_path(device: torch.device) -> AttentionPath:
    """Return the path that an attention takes now, in this thread, on this device."""
    if forced := _forced_path.get():
        return forced
    return "explicit" if device.type == "cpu" or is_observed() else "fused"


def compute_masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the keys. A row with no key allowed becomes all zero, with zero gradient, instead of NaN.

    scores (B, H, Q, K), already filled where blocked; mask broadcastable to it -> weights (B, H, Q, K).
    """
    if mask is None:
        return scores.softmax(-1)
    # -inf everywhere in a row is 0/0; the lowest finite number gives a uniform row that the mask then clears.
    return scores.clamp_min(torch.finfo(scores.dtype).min).softmax(-1) * mask


def compute_fused_context(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, dropout: float = 0.0
) -> Tensor:
    """Return the context by F.scaled_dot_product_attention: q (B,H,Q,d), k, v (B,H,K,d) -> context (B,H,Q,d)."""
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=scale)
    # Some kernels return NaN, or the mean of v, for a row with no key allowed: give it a key and clear it afterwards.
    empty = ~mask.any(-1, keepdim=True)
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask | empty, dropout_p=dropout, scale=scale)
    return context.masked_fill(empty, 0.0)


@dataclass
class KeyValueCache:
    """Keys and values of one attention, (B, H, K, d) each, in a buffer that doubles when it is full."""

    keys: Tensor | None = None
    values: Tensor | None = None
    length: int = 0
    _spare: tuple[Tensor, Tensor] | None = field(default=None, repr=False)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add k, v (B, H, new, d) and return all that is held."""
        end = self.length + k.shape[2]
        self.keys, self.values = self._grow_buffer(self.keys, k, end), self._grow_buffer(self.values, v, end)
        self.keys.narrow(2, self.length, k.shape[2]).copy_(k)
        self.values.narrow(2, self.length, k.shape[2]).copy_(v)
        self.length = end
        return self.stored_keys_values()

    def stored_keys_values(self) -> tuple[Tensor, Tensor]:
        """Return all keys and values. Raises ValueError where there are none."""
        if self.keys is None or self.values is None:
            raise ValueError("Attention needs a memory to attend to, or a cache that already holds its keys.")
        return self.keys.narrow(2, 0, self.length), self.values.narrow(2, 0, self.length)

    def _grow_buffer(self, buffer: Tensor | None, like: Tensor, needed: int) -> Tensor:
        if buffer is not None and buffer.shape[2] >= needed:
            return buffer
        grown = like.new_empty(like.shape[0], like.shape[1], max(32, 2 * needed), like.shape[3])
        if buffer is not None:
            grown[:, :, : self.length] = buffer[:, :, : self.length]
        return grown

    def reorder(self, rows: Tensor) -> None:
        """Keep the given rows of the batch (B',), in their order: a beam search drops and doubles hypotheses.

        For decoding, without gradients: the rows are copied into the buffers of the time before, since memory asked for
        anew at every step costs more than the copy.
        """
        if self.keys is None or self.values is None:
            return
        before = self.keys, self.values
        spare = self._spare or (None, None)
        self.keys, self.values = (self._select_rows(*pair, rows) for pair in zip(before, spare, strict=True))
        self._spare = before

    def _select_rows(self, buffer: Tensor, spare: Tensor | None, rows: Tensor) -> Tensor:
        if spare is None or len(spare) < len(rows) or spare.shape[1:] != buffer.shape[1:]:
            spare = buffer.new_empty(len(rows), *buffer.shape[1:])
        kept = spare[: len(rows)]
        torch.index_select(buffer[:, :, : self.length], 0, rows, out=kept[:, :, : self.length])
        return kept


def merge_beams_into_queries(q: Tensor, sentences: int) -> Tensor:
    """The queries of a sentence's W hypotheses as if they were W queries: (B, H, 1, d) -> (B / W, H, W, d)"""
    return q[:, :, 0].unflatten(0, (sentences, -1)).transpose(1, 2)


def split_beams_from_queries(context: Tensor) -> Tensor:
    """(B / W, H, W, d) -> (B, H, 1, d)"""
    return context.transpose(1, 2).flatten(0, 1)[:, :, None]


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) of section 3.2.2.

    Hook points, each a HookPoint whose forward hook may read or replace the tensor: ``q`` (B,H,Q,d), ``k`` and
    ``v`` (B,H,K,d), ``mask`` (bool, broadcastable to the scores), ``scores`` (B,H,Q,K) scaled and before the mask,
    ``masked_scores``, ``weights`` after the softmax and before dropout, ``context`` (B,H,Q,d) before the heads join.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width = config.d_model
        self.heads = config.heads
        self.scale = 1 / math.sqrt(config.d_head) if config.scale_scores else 1.0
        self.q_proj = Linear(width, width, bias=config.qkv_bias)
        self.k_proj = Linear(width, width, bias=config.qkv_bias)
        self.v_proj = Linear(width, width, bias=config.qkv_bias)
        self.out_proj = Linear(width, width, bias=config.output_bias)
        self.dropout = Dropout(config.dropout_at("attention"))
        self.q, self.k, self.v = HookPoint(), HookPoint(), HookPoint()
        self.mask, self.scores, self.masked_scores = HookPoint(), HookPoint(), HookPoint()
        self.weights, self.context = HookPoint(), HookPoint()

    def forward(
        self, query: Tensor, memory: Tensor | None, mask: Tensor | None = None, cache: KeyValueCache | None = None
    ) -> Tensor:
        """query (B, Q, D), memory (B, K, D), mask broadcastable to (B, H, Q, K) -> (B, Q, D).

        With a cache, the keys and values of `memory` are appended to it and all of them attended to; with `memory`
        None, those already in the cache are used as they are (cross-attention after its first step). A memory of
        fewer rows, B / W, is shared by each W rows of `query` on end, hypotheses of one sentence with one token each;
        so is `mask`.
        """
        q = self.q(self._split_into_heads(self.q_proj(query)))
        k, v = self._keys_values(memory, cache)
        if mask is not None:
            check_boolean_mask(mask)
            mask = self.mask(mask)
        elif is_observed():  # a mask that forbids nothing is still there to be edited; unedited, it need not be applied
            everything = torch.ones(1, 1, q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
            edited = self.mask(everything)
            mask = None if edited is everything else edited
        if len(k) < len(q):
            context = split_beams_from_queries(self._attend(merge_beams_into_queries(q, len(k)), k, v, mask))
        else:
            context = self._attend(q, k, v, mask)
        return self.out_proj(self.context(context).transpose(1, 2).flatten(2))

    def _keys_values(self, memory: Tensor | None, cache: KeyValueCache | None) -> tuple[Tensor, Tensor]:
        if memory is None:
            return (cache or KeyValueCache()).stored_keys_values()
        k, v = self.k(self._split_into_heads(self.k_proj(memory))), self.v(self._split_into_heads(self.v_proj(memory)))
        return cache.append(k, v) if cache else (k, v)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Eq. (1) for every head: -> context (B, H, Q, d)."""
        if choose_attention_path(q.device) == "fused":
            return compute_fused_context(q, k, v, mask, self.scale, self.dropout.probability if self.training else 0.0)
        scores = self.scores((q * self.scale) @ k.transpose(-2, -1))
        masked = self.masked_scores(scores if mask is None else scores.masked_fill(~mask, -math.inf))
        weights = self.weights(compute_masked_softmax(masked, mask))
        return self.dropout(weights) @ v

    def _split_into_heads(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, d)"""
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


# Who may attend to whom. Boolean, True = may attend, broadcastable to (B, H, Q, K).


def make_padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """Let every query see the real keys only: tokens (B, K) -> (B, 1, 1, K)."""
    return (tokens != pad_id)[:, None, None, :]


def make_causal_mask(queries: int, keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Let query i see the keys up to its own position: -> (1, 1, Q, K).

    With more keys than queries (a key/value cache) the queries are the *last* Q positions, so the triangle is aligned
    at the lower right and the newest query sees everything.
    """
    keys = queries if keys is None else keys
    if keys < queries:
        raise ValueError(
            f"A causal mask needs at least as many keys as queries; got {queries} queries and {keys} keys."
        )
    allowed = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
    return allowed[None, None]


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """Allow what every given mask allows (broadcast); None stands for "no restriction"."""
    combined: Tensor | None = None
    for mask in masks:
        if mask is None:
            continue
        check_boolean_mask(mask)
        combined = mask if combined is None else combined & mask
    return combined


def check_boolean_mask(mask: Tensor) -> None:
    """Refuse the masks of other conventions: an additive or 0/1 mask would silently do something else."""
    if mask.dtype != torch.bool:
        raise TypeError(
            f"A mask here is boolean with True = may attend; this one is {mask.dtype}. "
            "Convert it first: an additive mask with `mask == 0`, a blocking mask with `~mask`."
        )
