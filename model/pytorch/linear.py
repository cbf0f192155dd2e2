"""The linear layer of the model: torch's own, and for inference a product with weights laid out beforehand."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .torch_internals import functions_are_watched, laid_out_product, laid_out_weight

ROWS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Rows of a product of laid out weights. oneDNN keeps a kernel of half a megabyte for each number that it has seen."""
FEWEST, MOST = ROWS[0], ROWS[-1]


@cache
def onednn_is_faster() -> bool:
    """Whether this is a processor of AMD, of which torch's math library uses half; on one of Intel it is the faster."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:  # Windows, macOS
        told = platform.processor()
    return "AuthenticAMD" in told


@dataclass(frozen=True, eq=False)
class LaidOut:
    """Weights as oneDNN reads them, and those that they were made of.

    A tensor in a layout of oneDNN can neither be copied nor be pickled, so a copy of a model is not laid out.
    """

    laid_out: Tensor
    weight: Tensor
    version: int

    def is_of(self, weight: Tensor) -> bool:
        """Whether the weights are still those that were laid out."""
        return weight is self.weight and weight._version == self.version

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x (..., D) -> (..., D')"""
        rows = x.reshape(-1, x.shape[-1])
        parts = [self._of_few(part, bias) for part in rows.split(MOST)]
        found = parts[0] if len(parts) == 1 else torch.cat(parts)
        return found.view(*x.shape[:-1], found.shape[-1])

    def _of_few(self, rows: Tensor, bias: Tensor | None) -> Tensor:
        given = len(rows)
        size = next(size for size in ROWS if size >= given)
        if size == given:
            return laid_out_product(rows, self.laid_out, bias)
        return laid_out_product(F.pad(rows, (0, 0, 0, size - given)), self.laid_out, bias)[:given]

    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


class Linear(nn.Linear):
    """y = x A^T + b. Its weights can be laid out for the processor (:meth:`lay_out`), which changes the last digits."""

    _laid_out: LaidOut | None = None

    def lay_out(self) -> None:
        """Lay the weights out for products without gradients in float32 on a CPU.

        A column lies in one piece then, which is what a product with few rows reads. On a processor of AMD they are
        kept as oneDNN reads them besides, for more than a row. Weights that are changed later are used as they are
        then, as if they had not been laid out.
        """
        weight = self.weight
        self._laid_out = None
        if weight.device.type == "cpu" and weight.dtype is torch.float32 and not weight.is_inference():
            weight.data = weight.data.t().contiguous().t()
            if onednn_is_faster() and (laid_out := laid_out_weight(weight.detach())) is not None:
                self._laid_out = LaidOut(laid_out, weight, weight._version)

    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        self._laid_out = None  # to another device, or kind of number, and perhaps back
        return super()._apply(*args, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., D) -> (..., D')"""
        laid_out = self._laid_out
        if laid_out is None or x.numel() < FEWEST * self.in_features or torch.is_grad_enabled():
            return F.linear(x, self.weight, self.bias)
        # Who watches the functions of torch is to see the product with the weights.
        if x.dtype is not torch.float32 or functions_are_watched() or not laid_out.is_of(self.weight):
            return F.linear(x, self.weight, self.bias)
        return laid_out.product(x, self.bias)


def lay_out(model: nn.Module) -> None:
    """Lay out the weights of all linear layers of a model that is used for inference from now on."""
    for module in model.modules():
        if isinstance(module, Linear):
            module.lay_out()
