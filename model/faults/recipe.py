"""One way to make a fault: broken and fixed code, the batches on which it shows, the arrays it takes to see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from . import mask_pairs as masks
from .batch import Batch

Attention = Callable[[Batch], Tensor | dict[str, Tensor]]
FORMATS = ("float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Recipe:
    """One way to make one fault."""

    code: str
    broken: Attention
    fixed: Attention
    meant: Callable[[Batch], Tensor]
    """The meant mask, able to broadcast to (B, 1, Q, K): True = may attend."""
    needs: tuple[str, ...] = ("weights", "meant")
    """Arrays without which the fault cannot be judged; others are given or left out at random."""
    batch: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``random_batch``."""
    formats: tuple[str, ...] = FORMATS
    """Number formats in which the weights may be stored."""


def causal_and_padding(x: Batch) -> Tensor:
    """Return (B, 1, Q, K) bool, True up to the query at real keys."""
    return x.allowed


def padding_only(x: Batch) -> Tensor:
    """Return (B, 1, Q, K) bool, True at real keys."""
    return x.keep.expand(-1, 1, x.queries, -1)


def window(x: Batch) -> Tensor:
    """Return (Q, K) bool, True at the last WINDOW keys up to the query."""
    age = torch.arange(x.queries)[:, None] - torch.arange(x.keys)
    return (age >= 0) & (age < masks.WINDOW)


def documents(x: Batch) -> Tensor:
    """Return (Q, K) bool, causal in two documents of half the keys each."""
    document = torch.arange(x.keys) >= x.keys // 2
    return x.causal & (document[:, None] == document)


def causal_only(x: Batch) -> Tensor:
    """Return (Q, K) bool, True up to the query."""
    return x.causal


CROSS, LEFT_PADDED, UNPADDED = {"cross": True}, {"side": "left", "sizes": (4, 12)}, {"padded": False}
WITH_PADDING = ("weights", "key_keep")
