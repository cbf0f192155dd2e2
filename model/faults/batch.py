"""A random batch of sentences to run broken and fixed attention on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Side = Literal["right", "left", "both"]


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
        """(Q, K) bool: aligned at the newest token."""
        return torch.ones(self.queries, self.keys, dtype=torch.bool).tril(self.keys - self.queries)


def lengths_to_keep(lengths: Tensor, size: int, side: Side = "right") -> Tensor:
    """(B,) lengths to (B, size) bool, True = a real token, padded at the right, the left, or both ends."""
    start = {"right": lengths * 0, "left": size - lengths, "both": (size - lengths) // 2}[side]
    position = torch.arange(size)[None, :]
    return (position >= start[:, None]) & (position < (start + lengths)[:, None])


def random_batch(
    generator: torch.Generator,
    *,
    cross: bool = False,
    samples: tuple[int, int] = (1, 4),
    heads: tuple[int, int] = (1, 4),
    sizes: tuple[int, int] = (3, 12),
    padded: bool = True,
    side: Side = "right",
    sharpness: float = 1.0,
) -> Batch:
    """Sentences of random lengths; with ``padded`` at least one sample has padding among its keys."""

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    b, h, queries = number(*samples), number(*heads), number(*sizes)
    keys = number(*sizes) if cross else queries
    key_keep = lengths_to_keep(_lengths(generator, b, keys, padded), keys, side)
    query_keep = lengths_to_keep(_lengths(generator, b, queries, padded), queries, side) if cross else key_keep
    q = torch.randn(b, h, queries, 16, generator=generator)
    k = torch.randn(b, h, keys, 16, generator=generator)
    return Batch(sharpness * q @ k.transpose(-2, -1) / 4, key_keep, query_keep)


def _lengths(generator: torch.Generator, samples: int, size: int, padded: bool) -> Tensor:
    if not padded:
        return torch.full((samples,), size)
    lengths = torch.randint(1, size + 1, (samples,), generator=generator)
    lengths[0] = torch.randint(1, size, (), generator=generator)
    return lengths
