"""Dropout whose masks are drawn as bytes: on a CPU, drawing one random number a cell was an eighth of a step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """Inverted dropout. On a CPU the probability is rounded to a multiple of 1/256, and the scale follows it."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self.threshold = round(probability * 256)

    def forward(self, x: Tensor) -> Tensor:
        """x (any shape) -> the same shape; the identity outside training."""
        if not self.training or not self.threshold:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.probability)
        return _ByteDropout.apply(x, self.threshold)

    def extra_repr(self) -> str:
        return f"p={self.probability}"


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        # Compared straight into x's dtype: multiplying by a boolean would convert it anew, forwards and backwards.
        keep = torch.ge(
            _random_bytes(x.shape), threshold, out=torch.empty_like(x, memory_format=torch.contiguous_format)
        )
        ctx.save_for_backward(keep)
        ctx.scale = 256 / (256 - threshold)
        return (x * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return (gradients[0] * keep).mul_(ctx.scale), None


def _random_bytes(shape: torch.Size) -> Tensor:
    """Uniform bytes, eight to one draw of the generator."""
    count = shape.numel()
    words = torch.empty(-(-count // 8), dtype=torch.int64, device="cpu").random_(-(2**63), None)
    return words.view(torch.uint8)[:count].view(shape)
