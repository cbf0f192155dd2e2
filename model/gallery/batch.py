"""Random batches of attention scores, and the correct masked softmax that the pairs of functions share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..masks.softmax import PaddingSide, lengths_to_keep


@dataclass(frozen=True, eq=False)
class Batch:
    """Scores and padding of one attention call, as a model would have them just before its mask."""

    scores: Tensor
    """(B, H, Q, K), scaled, before any mask."""
    key_keep: Tensor
    """(B, K) bool, True = a real token."""
    query_keep: Tensor
    """(B, Q) bool, True = a real token."""

    @property
    def queries(self) -> int:
        return self.scores.shape[-2]

    @property
    def keys(self) -> int:
        return self.scores.shape[-1]

    @property
    def keep(self) -> Tensor:
        """(B, 1, 1, K) bool: the padding mask."""
        return self.key_keep[:, None, None, :]

    @property
    def causal(self) -> Tensor:
        """(Q, K) bool: the causal mask, aligned at the newest token."""
        return torch.ones(self.queries, self.keys, dtype=torch.bool).tril(self.keys - self.queries)

    @property
    def allowed(self) -> Tensor:
        """(B, 1, Q, K) bool: the causal mask and the padding mask."""
        return self.causal & self.keep


def keep_mask(lengths: Tensor, size: int, side: PaddingSide = "right") -> Tensor:
    """Return (B, size) bool, True = a real token, from (B,) lengths."""
    return torch.from_numpy(lengths_to_keep(lengths.numpy(), size, side))


def random_batch(
    generator: torch.Generator,
    *,
    cross: bool = False,
    samples: tuple[int, int] = (1, 4),
    heads: tuple[int, int] = (1, 4),
    sizes: tuple[int, int] = (3, 12),
    padded: bool = True,
    side: PaddingSide = "right",
    sharpness: float = 1.0,
    empty: bool = False,
) -> Batch:
    """Return sentences of random lengths; with ``padded`` at least one sample has padding among its keys.

    ``samples``, ``heads`` and ``sizes`` (of queries, and for ``cross`` of keys) are the smallest and largest number;
    with ``empty`` the last sample has no key at all.
    """

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    b, h, queries = number(*samples), number(*heads), number(*sizes)
    keys = number(*sizes) if cross else queries
    lengths = _random_lengths(generator, b, keys, padded)
    if empty:
        lengths[-1] = 0
    key_keep = keep_mask(lengths, keys, side)
    query_keep = keep_mask(_random_lengths(generator, b, queries, padded), queries, side) if cross else key_keep
    q = torch.randn(b, h, queries, 16, generator=generator)
    k = torch.randn(b, h, keys, 16, generator=generator)
    return Batch(sharpness * q @ k.transpose(-2, -1) / 4, key_keep, query_keep)


def _random_lengths(generator: torch.Generator, samples: int, size: int, padded: bool) -> Tensor:
    if not padded:
        return torch.full((samples,), size)
    lengths = torch.randint(1, size + 1, (samples,), generator=generator)
    lengths[0] = torch.randint(1, size, (), generator=generator)
    return lengths


# Correct attention weights from scores and a mask.


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill with -inf, take the softmax over the keys, give zeros where no key is allowed."""
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    return weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)


def fused_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the weights of F.scaled_dot_product_attention: with values = identity its output is its weights."""
    batch, heads, queries, keys = scores.shape
    identity = torch.eye(keys).expand(batch, heads, keys, keys)
    pick = torch.eye(queries).expand(batch, heads, queries, queries)  # query i times "keys" gives scores[i]
    return F.scaled_dot_product_attention(pick, scores.transpose(-2, -1), identity, attn_mask=mask, scale=1.0)
