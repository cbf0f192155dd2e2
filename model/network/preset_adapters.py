"""The interfaces of the presets from notes: layouts, argument names, masks and outputs around one Transformer.

A preset (:data:`.config.PRESETS`) fixes the numbers that a model computes; its interface only converts what goes in and
what comes out. Inside there is one convention: batch first, boolean masks, True = may attend.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..masks.softmax import is_blocked
from .attention import MultiHeadAttention, combine_masks, make_causal_mask, make_padding_mask
from .config import PAD_ID
from .hooks import hook_outputs
from .transformer import Transformer


def convert_blocking_mask(mask: Tensor) -> Tensor:
    """Boolean, True blocks -> True = may attend. Refuses masks of another dtype (TypeError)."""
    if mask.dtype != torch.bool:
        raise TypeError(f"A blocking mask is boolean with True = may not attend; this one is {mask.dtype}.")
    return ~mask


def convert_zero_one_mask(mask: Tensor) -> Tensor:
    """0 or False blocks, whatever the dtype -> True = may attend."""
    return mask != 0


def convert_additive_mask(mask: Tensor) -> Tensor:
    """Added to the scores, 0 keeps and -inf blocks -> True = may attend.

    ValueError for values in between, which would tint the weights instead of blocking.
    """
    keep, block = mask == 0, is_blocked(mask)
    if not (keep | block).all():
        raise ValueError(
            "An additive mask holds 0 where a query may attend and -inf where not; this one holds other values, "
            "so it would shift the scores instead of blocking."
        )
    return keep


@dataclass(frozen=True, eq=False)
class PadRowInterface:
    """``pad_row``: lengths (B, 1) in place of padding ids, masks (B, Q, K) in which True blocks."""

    model: Transformer

    @staticmethod
    def positions(lengths: Tensor, longest: int) -> Tensor:
        """lengths (B, 1) -> (B, longest): 1 .. length, then 0, the row of PAD."""
        counted = torch.arange(1, longest + 1, device=lengths.device)
        return counted * (counted <= lengths)

    @classmethod
    def make_blocked_mask(cls, query_length: int, key_lengths: Tensor, longest_key: int) -> Tensor:
        """key_lengths (B, 1) -> (B, Q, K), True at the keys after the end."""
        return (cls.positions(key_lengths, longest_key) == 0)[:, None].expand(-1, query_length, -1)

    @staticmethod
    def attend(
        attention: MultiHeadAttention, query: Tensor, memory: Tensor, blocked: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """query (B, Q, D), memory (B, K, D), blocked (B, Q, K) -> context (B, Q, D), weights (B, H, Q, K)."""
        seen: list[Tensor] = []
        with hook_outputs({attention.weights: seen.append}):
            context = attention(query, memory, None if blocked is None else convert_blocking_mask(blocked)[:, None])
        return context, seen[0]

    def __call__(self, source: Tensor, source_lengths: Tensor, target: Tensor, target_lengths: Tensor) -> Tensor:
        """source (B, S), target (B, T) ids, lengths (B, 1) each -> logits (B, T, V)."""
        after_source = self.positions(source_lengths, source.shape[1]) == 0
        after_target = self.positions(target_lengths, target.shape[1]) == 0
        return self.model(source.masked_fill(after_source, PAD_ID), target.masked_fill(after_target, PAD_ID))


@dataclass(frozen=True, eq=False)
class TorchLikeInterface:
    """``torch_like``: sequence first, and the argument names of nn.Transformer."""

    model: Transformer

    def embed_source(self, ids: Tensor) -> Tensor:
        """(S, N) -> (S, N, E)"""
        return self.model.source_embedding(ids.T).transpose(0, 1)

    def embed_target(self, ids: Tensor) -> Tensor:
        """(T, N) -> (T, N, E)"""
        return self.model.target_embedding(ids.T).transpose(0, 1)

    def __call__(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """src (S, N, E), tgt (T, N, E) -> (T, N, E).

        Attention masks are (L, S) or (N * H, L, S), boolean with True blocking or additive; padding masks (N, S)
        boolean, True blocks.
        """
        source_mask = self._mask(src_mask, src_key_padding_mask)
        memory = self.model.encoder(src.transpose(0, 1), source_mask)
        target_mask = self._mask(tgt_mask, tgt_key_padding_mask)
        cross_mask = self._mask(memory_mask, memory_key_padding_mask)
        return self.model.decoder(tgt.transpose(0, 1), memory, target_mask, cross_mask, None).transpose(0, 1)

    def generator(self, states: Tensor) -> Tensor:
        """(T, N, E) -> log-probabilities (T, N, V)"""
        return self.model.generator(states).log_softmax(-1)

    def _mask(self, attention: Tensor | None, padding: Tensor | None) -> Tensor | None:
        if attention is not None:
            attention = (
                convert_blocking_mask(attention) if attention.dtype == torch.bool else convert_additive_mask(attention)
            )
            if attention.dim() == 3:
                attention = attention.unflatten(0, (-1, self.model.config.heads))
        return combine_masks(attention, None if padding is None else convert_blocking_mask(padding)[:, None, None])


def make_subsequent_mask(size: int) -> Tensor:
    """(1, T, T), 1 on and below the diagonal, 0 blocks."""
    return make_causal_mask(size)[0].to(torch.uint8)


@dataclass(frozen=True, eq=False)
class AnnotatedInterface:
    """``annotated``: encode, decode and generator apart; masks (B, 1, S) and (B, T, T) in which 0 blocks."""

    model: Transformer

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """(B, S) ids -> memory (B, S, D)"""
        return self.model.encode(src, convert_zero_one_mask(src_mask)[:, None])

    def decode(self, memory: Tensor, src_mask: Tensor, tgt: Tensor, tgt_mask: Tensor) -> Tensor:
        """(B, T) ids -> states (B, T, D)"""
        return self.model.decode(
            tgt, memory, convert_zero_one_mask(src_mask)[:, None], convert_zero_one_mask(tgt_mask)[:, None]
        )

    def generator(self, states: Tensor) -> Tensor:
        """(..., D) -> log-probabilities (..., V)"""
        return self.model.generator(states).log_softmax(-1)

    def __call__(self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor) -> Tensor:
        return self.decode(self.encode(src, src_mask), src_mask, tgt, tgt_mask)


@dataclass(frozen=True, eq=False)
class OriginalInterface:
    """``original``: one flat row of log-probabilities a target token, ready for nn.NLLLoss."""

    model: Transformer

    def __call__(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) ids -> log-probabilities (B * T, V)"""
        return self.model(source, target).log_softmax(-1).flatten(0, 1)


def list_state_dict_shapes(model: nn.Module) -> list[tuple[str, tuple[int, ...]]]:
    """Name and shape of every tensor of the state dict, in its order."""
    return [(name, tuple(tensor.shape)) for name, tensor in model.state_dict().items()]


def count_trainable_parameters(model: nn.Module) -> int:
    """How many numbers training may change; tied and shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


@dataclass(frozen=True, eq=False)
class SharedBpeInterface:
    """``shared_bpe``: raw logits; masks (B, 1, 1, S) and (B, 1, T, T) in which 0 blocks."""

    model: Transformer

    @staticmethod
    def source_mask(source: Tensor) -> Tensor:
        """(B, S) ids -> (B, 1, 1, S), 0 at padding."""
        return make_padding_mask(source, PAD_ID).long()

    @staticmethod
    def target_mask(target: Tensor) -> Tensor:
        """(B, T) ids -> (B, 1, T, T), 0 at padding and at later positions."""
        return (make_padding_mask(target, PAD_ID) & make_causal_mask(target.shape[1], device=target.device)).long()

    def __call__(self, source: Tensor, target: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
        """ids (B, S) and (B, T) -> logits (B, T, V)"""
        allowed = convert_zero_one_mask(source_mask)
        return self.model(source, target, allowed, convert_zero_one_mask(target_mask), allowed)
