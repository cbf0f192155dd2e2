"""The weights that a fused kernel does not give, computed beside it from the same arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ....language.say import say
from ....masking.blocked import BLOCKED, is_blocked
from ....pytorch.torch_internals import materialize
from ....trace import TraceError
from .axes import Layout, query_heads_of


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention as it was computed. Every tensor is (B, H, Q, K), or (B, H, Q or K, d) for q, k and v."""

    weights: Tensor
    allowed: Tensor
    """Booleans, True = may attend; a view that may be broadcast."""
    tensors: dict[str, Tensor]
    """Those of q, k, v, scores and masked_scores that are known."""
    extra_keys: tuple[str, ...] = ()
    """Names of the last keys that are no tokens, such as a sink."""
    passed: Tensor | None = None
    """Booleans (B, H, Q, K), True = may attend: the mask that the call was given; None where none can be laid out."""
    padding: int = 0
    """How many of the last rows and keys a model with blocks added to what it was given."""

    @property
    def without_padding(self) -> Attention:
        """The attention of what was given; as it is where a row given attends to padding."""
        end = -self.padding or None
        if end is None or bool(self.weights[..., :end, end:].any()):
            return self
        cut = {name: tensor[..., :end, :end] for name, tensor in self.tensors.items()}
        passed = None if self.passed is None else self.passed[..., :end, :end]
        weights, allowed = self.weights[..., :end, :end], self.allowed[..., :end, :end]
        return replace(self, weights=weights, allowed=allowed, passed=passed, tensors=cut)


@torch.no_grad()
def from_scores(masked_scores: Tensor, weights: Tensor, layout: Layout) -> Attention:
    """Return the attention of a softmax from its input and its output; the mask is read off the scores."""
    masked, weights = (layout(tensor.detach()) for tensor in (masked_scores, weights))
    return Attention(weights, _allowed(masked), {"masked_scores": masked})


def _allowed(masked: Tensor) -> Tensor:
    """Where scores (B, H, Q, K) are not blocked. The lowest tells at once where none is, but not beside a NaN."""
    lowest = masked.amin() if masked.numel() else masked.new_zeros(())
    if bool(lowest > BLOCKED):
        return torch.ones((), dtype=torch.bool, device=masked.device).expand(masked.shape)
    return compact(~is_blocked(masked))


def compact(allowed: Tensor) -> Tensor:
    """Return a mask (B, H, Q, K) as a view that holds only one head, or one number, where that says all."""
    if bool(allowed.all()):
        return allowed.new_ones(()).expand(allowed.shape)
    if allowed.shape[1] > 1 and bool((allowed[:, 1:] == allowed[:, :1]).all()):
        return allowed[:, :1].clone().expand(allowed.shape)
    return allowed


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
    layout: Layout,
) -> Attention:
    """Return the attention that ``F.scaled_dot_product_attention`` computes with these arguments, before dropout.

    As there, a query with no key allowed gets a row of zeros, a causal mask starts at the top left, and keys and values
    of fewer heads are repeated.
    """
    q, k, v = query.detach(), key.detach(), value.detach()
    if enable_gqa:
        k, v = (tensor.repeat_interleave(q.shape[-3] // tensor.shape[-3], -3) for tensor in (k, v))
    with torch.autocast(q.device.type, enabled=False):  # which would round the scores again
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        scores = (q.float() @ k.float().transpose(-1, -2)).mul_(factor)
    allowed, masked = _masked(scores, attn_mask, is_causal)
    weights = masked.softmax(-1)
    if masked is not scores and _has_empty_row(masked):
        weights.nan_to_num_(nan=0.0)
    tensors = {"q": q, "k": k, "v": v, "scores": scores, "masked_scores": masked}
    return Attention(layout(weights), layout(allowed), {name: layout(tensor) for name, tensor in tensors.items()})


def attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return what ``F.scaled_dot_product_attention`` returns, and its weights, from which it was computed.

    Both are part of the graph of gradients. Raises TraceError for weights that are dropped at random.
    """
    if dropout_p:
        raise TraceError(
            say("Weights are dropped at random here: call model.eval() before their gradients are captured.")
        )
    if enable_gqa:
        key, value = (one.repeat_interleave(query.shape[-3] // one.shape[-3], -3) for one in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    _, masked = _masked((query.float() @ key.float().transpose(-1, -2)) * factor, attn_mask, is_causal)
    weights = masked.softmax(-1)
    if _has_empty_row(masked):
        weights = weights.nan_to_num(nan=0.0)
    return weights.to(value.dtype) @ value, weights


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
    mask = materialize(mask, scores.device)
    if mask.dtype == torch.bool:
        return mask.broadcast_to(scores.shape), scores.masked_fill(~mask, -math.inf)
    return (~is_blocked(mask)).broadcast_to(scores.shape), scores + mask.float()


def _has_empty_row(masked: Tensor) -> bool:
    return bool((masked.amax(-1) == -math.inf).any())
