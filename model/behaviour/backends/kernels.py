"""Kernels of attention: which of them a model calls, and the plain one in place of all."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ...pytorch.torch_internals import is_flex_attention


class PlainKernel(TorchFunctionMode):
    """F.scaled_dot_product_attention by its plain kernel: for one thread, where torch's own switch is for all."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func is not F.scaled_dot_product_attention:
            return func(*args, **given)
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given |= dict(zip(names, args, strict=False))
        query, key, value = (given.pop(name) for name in names[:3])
        mask = given.pop("attn_mask", None)
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=query.dtype, device=mask.device).masked_fill(~mask, -torch.inf)
        return torch.ops.aten._scaled_dot_product_attention_math(query, key, value, mask, **given)[0]


class KernelsSeen(TorchFunctionMode):
    """Which implementations of attention are called."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            self.seen.add("sdpa")
        elif is_flex_attention(func):
            self.seen.add("flex_attention")
        return func(*args, **(kwargs or {}))
