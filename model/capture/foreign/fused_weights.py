"""The weights that a fused kernel does not give, computed beside it from the same arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ...masking.blocked import is_blocked
from ...network.torch_internals import materialize

HEADS = ("num_heads", "n_heads", "num_attention_heads", "nhead", "n_head", "heads", "h")
"""Attributes in which modules hold their number of heads."""


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention as it was computed. Every tensor is (B, H, Q, K), or (B, H, Q or K, d) for q, k and v."""

    weights: Tensor
    allowed: Tensor
    """Booleans, True = may attend; a view that may be broadcast."""
    tensors: dict[str, Tensor]
    """Those of q, k, v, scores and masked_scores that are known."""


@torch.no_grad()
def from_scores(masked_scores: Tensor, weights: Tensor, heads: int) -> Attention:
    """Return the attention of a softmax from its input and its output; the mask is read off the scores."""
    masked, weights = (four_axes(tensor.detach(), heads) for tensor in (masked_scores, weights))
    return Attention(weights, ~is_blocked(masked), {"masked_scores": masked})


@torch.no_grad()
def from_arguments(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    heads: int = 1,
) -> Attention:
    """Return the attention that ``F.scaled_dot_product_attention`` computes with these arguments, before dropout.

    As there, a query with no key allowed gets a row of zeros, a causal mask starts at the top left, and keys and values
    of fewer heads are repeated.
    """
    q, k, v = query.detach(), key.detach(), value.detach()
    if enable_gqa:
        k, v = (tensor.repeat_interleave(q.shape[-3] // tensor.shape[-3], -3) for tensor in (k, v))
    scores = q.float() @ k.float().transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    allowed, masked = _masked(scores, attn_mask, is_causal)
    weights = torch.nan_to_num(masked.softmax(-1), nan=0.0) if _has_empty_row(masked) else masked.softmax(-1)
    tensors = {"q": q, "k": k, "v": v, "scores": scores, "masked_scores": masked}
    lifted = {name: four_axes(tensor, heads) for name, tensor in tensors.items()}
    return Attention(four_axes(weights, heads), four_axes(allowed, heads), lifted)


def unfold_heads(attention: Attention, module: nn.Module) -> Attention:
    """Return the attention with one row a head, where a module decodes one query with the heads of a group as rows.

    Hugging Face does so with grouped queries: head h stands in row h % groups of the keys' head h // groups.
    """
    heads, groups = query_heads_of(module), getattr(module, "num_key_value_groups", 1)
    folded, rows = attention.weights.shape[1:3]
    if not (groups == rows > 1 and folded * groups == heads):
        return attention

    def apart(name: str, tensor: Tensor) -> Tensor:
        if name in ("k", "v"):
            return tensor.repeat_interleave(groups, 1)
        return tensor.reshape(tensor.shape[0], heads, 1, -1)

    tensors = {name: apart(name, tensor) for name, tensor in attention.tensors.items()}
    weights, allowed = apart("weights", attention.weights), apart("allowed", attention.allowed)
    return replace(attention, weights=weights, allowed=allowed, tensors=tensors)


def _masked(scores: Tensor, mask: Tensor | None, is_causal: bool) -> tuple[Tensor, Tensor]:
    """(allowed, masked scores), both of the shape of the scores."""
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is None:
        return torch.ones((), dtype=torch.bool, device=scores.device).broadcast_to(scores.shape), scores
    mask = materialize(mask, scores.device).detach()
    if mask.dtype == torch.bool:
        return mask.broadcast_to(scores.shape), scores.masked_fill(~mask, -math.inf)
    return (~is_blocked(mask)).broadcast_to(scores.shape), scores + mask.float()


def _has_empty_row(masked: Tensor) -> bool:
    return bool((masked == -math.inf).all(-1).any())


def four_axes(tensor: Tensor, heads: int) -> Tensor:
    """Return (Q, K), (B, Q, K), batch-major (B*H, Q, K) or (B, ..., Q, K) as (B, H, Q, K)."""
    if tensor.dim() == 4:
        return tensor
    if tensor.dim() == 2:
        return tensor[None, None]
    if tensor.dim() == 3:
        together = heads if tensor.shape[0] % heads == 0 else 1
        return tensor.unflatten(0, (-1, together))
    return tensor.flatten(1, -3)


def keys_last(tensor: Tensor, axis: int, heads: int) -> Tensor | None:
    """Return the input or output of a softmax over `axis` as (B, H, Q, K), (B, Q, K) or (Q, K) of one sample.

    None where it cannot be told which of the axes are samples, heads and queries.
    """
    axes = tensor.dim()
    axis %= axes
    if axes == 2:
        return tensor if axis == 1 and len(tensor) == 1 else None
    if axis == axes - 1:
        return tensor
    moved = tensor.movedim(axis, -1)
    if axes == 3:  # a square may be (Q, K, H) of one sample
        return moved if axis == 1 and heads == 1 and tensor.shape[0] != tensor.shape[1] else None
    if axes != 4 or axis == 0 or heads == 1 or [*moved.shape[1:3]].count(heads) != 1:
        return None
    return moved if moved.shape[1] == heads else moved.transpose(1, 2)


def heads_of(module: nn.Module) -> int:
    """Return how many heads a module says that it has; 1 where it does not say."""
    found = (getattr(module, name, None) for name in HEADS)
    return next((one for one in found if isinstance(one, int) and one > 0), 1)


def query_heads_of(module: nn.Module) -> int:
    """Return :func:`heads_of`, or the number in the module's configuration where only that says it."""
    said = getattr(getattr(module, "config", None), "num_attention_heads", None)
    return said if heads_of(module) == 1 and isinstance(said, int) else heads_of(module)
