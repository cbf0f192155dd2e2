"""A linear layer with weights reordered for inference, and dropout that draws its masks as bytes."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .torch_internals import is_function_mode_active, multiply_reordered_weight, reorder_weight

KERNEL_ROW_COUNTS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Rows of a product of laid out weights. oneDNN keeps a kernel of half a megabyte for each number that it has seen."""
MIN_KERNEL_ROWS, MAX_KERNEL_ROWS = KERNEL_ROW_COUNTS[0], KERNEL_ROW_COUNTS[-1]


@cache
def is_onednn_faster() -> bool:
    """Whether this is a processor of AMD, of which torch's math library uses half; on one of Intel it is the faster."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:  # Windows, macOS
        told = platform.processor()
    return "AuthenticAMD" in told


@dataclass(frozen=True, eq=False)
class ReorderedWeight:
    """Weights as oneDNN reads them, and those that they were made of.

    A tensor in a layout of oneDNN can neither be copied nor be pickled, so a copy of a model is not laid out.
    """

    laid_out: Tensor
    weight: Tensor
    version: int

    def is_current_for(self, weight: Tensor) -> bool:
        """Whether the weights are still those that were laid out."""
        return weight is self.weight and weight._version == self.version

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x (..., D) -> (..., D')"""
        rows = x.reshape(-1, x.shape[-1])
        parts = [self._multiply_few_rows(part, bias) for part in rows.split(MAX_KERNEL_ROWS)]
        found = parts[0] if len(parts) == 1 else torch.cat(parts)
        return found.view(*x.shape[:-1], found.shape[-1])

    def _multiply_few_rows(self, rows: Tensor, bias: Tensor | None) -> Tensor:
        given = len(rows)
        size = next(size for size in KERNEL_ROW_COUNTS if size >= given)
        if size == given:
            return multiply_reordered_weight(rows, self.laid_out, bias)
        return multiply_reordered_weight(F.pad(rows, (0, 0, 0, size - given)), self.laid_out, bias)[:given]

    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


class Linear(nn.Linear):
    """y = x A^T + b. :func:`reorder_linear_weights` lays its weights out for the processor: other last digits."""

    _laid_out: ReorderedWeight | None = None

    def reorder_inference_weight(self) -> None:
        """Lay the weights out for products without gradients in float32 on a CPU.

        A column lies in one piece then, which is what a product with few rows reads. On a processor of AMD they are
        kept as oneDNN reads them besides, for more than a row. Weights that are changed later are used as they are
        then, as if they had not been laid out.
        """
        weight = self.weight
        self._laid_out = None
        if weight.device.type == "cpu" and weight.dtype is torch.float32 and not weight.is_inference():
            weight.data = weight.data.t().contiguous().t()
            if is_onednn_faster() and (laid_out := reorder_weight(weight.detach())) is not None:
                self._laid_out = ReorderedWeight(laid_out, weight, weight._version)

    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        self._laid_out = None  # to another device, or kind of number, and perhaps back
        return super()._apply(*args, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., D) -> (..., D')"""
        laid_out = self._laid_out
        if laid_out is None or x.numel() < MIN_KERNEL_ROWS * self.in_features or torch.is_grad_enabled():
            return F.linear(x, self.weight, self.bias)
        # Who watches the functions of torch is to see the product with the weights.
        if x.dtype is not torch.float32 or is_function_mode_active() or not laid_out.is_current_for(self.weight):
            return F.linear(x, self.weight, self.bias)
        return laid_out.product(x, self.bias)


def reorder_linear_weights(model: nn.Module) -> None:
    """Lay out the weights of all linear layers of a model that is used for inference from now on."""
    for module in model.modules():
        if isinstance(module, Linear):
            module.reorder_inference_weight()


# Dropout whose masks are drawn as bytes: on a CPU, drawing one random number a cell was an eighth of a step.


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
            _draw_random_bytes(x.shape), threshold, out=torch.empty_like(x, memory_format=torch.contiguous_format)
        )
        ctx.save_for_backward(keep)
        ctx.scale = 256 / (256 - threshold)
        return (x * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return (gradients[0] * keep).mul_(ctx.scale), None


def _draw_random_bytes(shape: torch.Size) -> Tensor:
    """Uniform bytes, eight to one draw of the generator."""
    count = shape.numel()
    words = torch.empty(-(-count // 8), dtype=torch.int64, device="cpu").random_(-(2**63), None)
    return words.view(torch.uint8)[:count].view(shape)
