"""Kernels of packed sequences of any length: what they attend to, read off their arguments, by name.

Every operator of torch with cumulative lengths is known by its signature, such as ``torch.nn.attention.varlen`` and the
operators of FlashAttention. All sequences of a call are one map with a block for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ....pytorch.torch_internals import operator_arguments
from .fused_weights import Attention

_LENGTHS = re.compile(r"cum?_seq\w*_([qk])")
_READ = re.compile(
    r"(q|k|v|query|key|value|max_?(seq_?len)?_?\w*|(is_)?causal|(softmax_)?scale|window_size(_left|_right)?|enable_gqa|"
    r"num_splits|return_\w+|out|deterministic|zero_tensors|gen_?|cum?_seq\w*_[qk])"
)
"""Arguments that change no weight, or that are read here."""
_PLAIN = (None, False, 0, 0.0)
"""Values with which any other argument does nothing."""


class UnknownArgumentError(ValueError):
    """A call whose weights are not known, and the argument that changes them."""

    def __init__(self, reason: str, **values: str) -> None:
        """`reason`: one of :data:`~..observed.REASONS`, whose field `kernel` is left to fill."""
        super().__init__(reason, values)
        self.reason, self.values = reason, values


def varlen_arguments(function: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by name of an operator that takes cumulative lengths; nothing of any other function."""
    names = operator_arguments(function)
    if sum(bool(_LENGTHS.fullmatch(name)) for name in names) < 2:
        return {}
    return dict(zip(names, args, strict=False)) | dict(given)


@torch.no_grad()
def varlen_weights(arguments: Mapping[str, Any]) -> Attention:
    """Return the attention of all sequences as one sample, (1, H, T, T'), with a block for each.

    As in FlashAttention from 2.1 on, a causal mask and a window are aligned at the last query and the last key of each
    sequence, and a window includes both ends. Raises UnknownArgumentError.
    """
    odd = [
        name
        for name, value in arguments.items()
        if not _READ.fullmatch(name) and (isinstance(value, Tensor) or value not in _PLAIN)
    ]
    ends_q, ends_k = (_lengths(arguments, side) for side in "qk")
    query, key, value = (_of(arguments, *names) for names in (("query", "q"), ("key", "k"), ("value", "v")))
    shaped = all(isinstance(one, Tensor) and one.dim() == 3 for one in (query, key, value))
    if odd or not shaped or ends_q is None or ends_k is None:
        raise UnknownArgumentError("argument", arguments=", ".join(odd)) if odd else UnknownArgumentError("lengths")
    q, k, v = (one.transpose(0, 1)[None] for one in (query, key, value))
    k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], 1) for one in (k, v))
    scale = _of(arguments, "scale", "softmax_scale")
    scores = q.float() @ k.float().mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    grid = _allowed(ends_q, ends_k, len(query), len(key), *_window(arguments))
    allowed = grid.to(scores.device)[None, None].expand(scores.shape)
    masked = scores.masked_fill(~allowed, -math.inf)
    weights = masked.softmax(-1).nan_to_num(nan=0.0)
    tensors = {"q": q, "k": k, "v": v, "scores": scores, "masked_scores": masked}
    return Attention(weights, allowed, tensors, passed=allowed)


def varlen_in_words(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return what masked a call, by the names of its arguments."""
    lengths = {name: str(value.tolist()) for name, value in arguments.items() if _LENGTHS.fullmatch(name)}
    left, right = _window(arguments)
    return {name: text if len(text) < 60 else f"{text[:57]}..." for name, text in lengths.items()} | {
        "causal": str(right == 0),
        "window": "None" if left is None else str(left + 1 + (right or 0)),
    }


def _of(arguments: Mapping[str, Any], *names: str) -> Any:
    return next((arguments[name] for name in names if arguments.get(name) is not None), None)


def _lengths(arguments: Mapping[str, Any], side: str) -> Tensor | None:
    """(N + 1,) where the sequences of one side begin, and the end of the last."""
    found = [value for name, value in arguments.items() if (match := _LENGTHS.fullmatch(name)) and match[1] == side]
    return found[0].cpu().long() if found and isinstance(found[0], Tensor) else None


def _window(arguments: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """How many keys before and after its own place a query sees; None for all."""
    sizes = _of(arguments, "window_size")
    left, right = sizes if sizes is not None else (arguments.get(f"window_size_{end}") for end in ("left", "right"))
    causal = bool(_of(arguments, "is_causal", "causal"))
    ends = [None if end is None or end < 0 else int(end) for end in (left, right)]
    return ends[0], 0 if causal else ends[1]


def _allowed(
    starts_q: Tensor, starts_k: Tensor, queries: int, keys: int, left: int | None, right: int | None
) -> Tensor:
    """(T, T') bool, True = may attend."""
    device = starts_q.device
    grid = torch.zeros(queries, keys, dtype=torch.bool, device=device)
    for first, end, key_first, key_end in zip(starts_q, starts_q[1:], starts_k, starts_k[1:], strict=False):
        rows, columns = (torch.arange(int(size), device=device) for size in (end - first, key_end - key_first))
        offset = columns - rows[:, None] - (len(columns) - len(rows))
        near = torch.ones_like(offset, dtype=torch.bool) if left is None else offset >= -left
        grid[first:end, key_first:key_end] = near if right is None else near & (offset <= right)
    return grid
