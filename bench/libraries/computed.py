"""The softmaxes that a model computes, seen below Python: what a capture is held against, without anything of it.

A capture watches calls of torch in Python and reads axes off modules. Here the operators are watched that torch
dispatches to, and what each softmax gave is noted, without a module and without a meaning. Fused attention is computed
anew from its queries and keys, by the formula in torch's documentation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

_FUSED, _NAME = F.scaled_dot_product_attention, "scaled_dot_product_attention"
_ATEN = torch.ops.aten
_SOFTMAX = {_ATEN._softmax.default, _ATEN._safe_softmax.default, _ATEN.softmax.int}


class _Softmaxes(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        if func in _SOFTMAX and output.dim() > 1:
            self.found.append(output.detach().float().clone().movedim(args[1], -1))
        return output


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return what F.scaled_dot_product_attention does, as its documentation defines it."""
    scale_factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    bias = torch.zeros(query.size(-2), key.size(-2), dtype=query.dtype)
    if is_causal:
        bias = bias.masked_fill(torch.ones(bias.shape, dtype=torch.bool).tril().logical_not(), -math.inf)
    if attn_mask is not None:
        given = torch.as_tensor(attn_mask)
        blocked = torch.zeros(given.shape).masked_fill(given.logical_not(), -math.inf)
        bias = bias + (blocked if given.dtype == torch.bool else given)
    if enable_gqa:
        key, value = (one.repeat_interleave(query.size(-3) // one.size(-3), -3) for one in (key, value))
    weights = torch.softmax(query @ key.transpose(-2, -1) * scale_factor + bias, dim=-1)
    return weights.nan_to_num(0.0).to(value.dtype) @ value


@contextmanager
def _step_by_step() -> Iterator[None]:
    """Every attention of torch by that formula, and no fused encoder layer."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with ExitStack() as stack:
            for module in [one for one in sys.modules.values() if _NAME in vars(one) and vars(one)[_NAME] is _FUSED]:
                stack.enter_context(patch.object(module, _NAME, attention))
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def softmaxes(run: Callable[[], object]) -> list[Tensor]:
    """Return what every softmax of a run gave, in order, with the axis that it is over moved to the end."""
    with torch.no_grad(), _step_by_step(), _Softmaxes() as mode:
        run()
    return [one.nan_to_num(0.0) for one in mode.found]
