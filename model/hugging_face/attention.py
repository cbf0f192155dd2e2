"""The attention that a loaded folder runs with: transformers' own eager attention, passed through our hook points.

It is registered under a name of its own by transformers' public interface (`AttentionInterface`), which hands over
queries, keys, values and the mask of every attention of a model. Nothing in transformers is replaced.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from ..capture.points import AttentionPoints
from ..language.say import say
from ..masking.blocked import is_blocked
from ..network.attention import chosen_path
from ..network.hooks import is_observed

NAME = "attenscope"
POINTS = "attention_points"
"""The name of the hook points in an attention module."""
_finding: ContextVar[Counter[nn.Module] | None] = ContextVar("finding", default=None)


class UnknownAttentionError(NotImplementedError):
    """An attention with a part that is not known here; the message names it."""


def register() -> None:
    """Make the attention known to transformers; once or more often is the same."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


@contextmanager
def finding_modules() -> Iterator[Counter[nn.Module]]:
    """Give hook points to every attention module that runs in this block, and count the calls of each, in order."""
    found: Counter[nn.Module] = Counter()
    token = _finding.set(found)
    try:
        yield found
    finally:
        _finding.reset(token)


def _points(module: nn.Module, heads: int) -> AttentionPoints:
    finding = _finding.get()
    if finding is not None:
        finding[module] += 1
        if POINTS not in dict(module.named_children()):
            module.add_module(POINTS, AttentionPoints("decoder", 0, heads))
    points = module.get_submodule(POINTS)
    assert isinstance(points, AttentionPoints)
    return points


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor | None]:
    """query (B, H, Q, d), key and value (B, H / G, K, d), additive mask -> (B, Q, H, d) and weights (B, H, Q, K).

    G queries' heads share one head of keys and values (grouped-query attention). The arguments are those that
    transformers hands over. No weights where nobody looks on a GPU: then the fused kernel runs.
    """
    if s_aux is not None:
        raise UnknownAttentionError(say("its attention has a learned sink beside its keys"))
    points = _points(module, query.shape[1])
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if chosen_path(query.device) == "fused" and softcap is None:
        dropout = dropout if module.training else 0.0
        context = _fused(points, query, key, value, attention_mask, scale, position_bias, dropout)
        return context.transpose(1, 2).contiguous(), None
    weights, context = _explicit(points, query, key, value, attention_mask, scale, position_bias, softcap)
    return context.transpose(1, 2).contiguous(), weights


def _fused(
    points: AttentionPoints,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    position_bias: Tensor | None,
    dropout: float,
) -> Tensor:
    if not is_observed():
        bias = _sum(mask, position_bias)
        return F.scaled_dot_product_attention(query, key, value, bias, dropout, scale=scale)
    query = points.q(query)  # an edited mask is told its queries here
    added, allowed = _edited(points, query, key, mask)
    empty = ~allowed.any(-1, keepdim=True)
    bias = _sum(added, position_bias, torch.zeros_like(allowed, dtype=query.dtype))
    assert bias is not None
    bias = bias.masked_fill(~(allowed | empty), -math.inf)
    context = F.scaled_dot_product_attention(query, key, value, bias, dropout, scale=scale)
    return context.masked_fill(empty, 0.0)


def _explicit(
    points: AttentionPoints,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    position_bias: Tensor | None,
    softcap: float | None,
) -> tuple[Tensor, Tensor]:
    query, key, value = points.q(query), points.k(key), points.v(value)
    scores = query @ key.transpose(-2, -1) * scale
    if position_bias is not None:
        scores = scores + position_bias
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores = points.scores(scores)
    masked = points.masked_scores(_masked(points, scores, mask))
    # A row with no key allowed would be NaN: the lowest finite number gives a uniform row, which is cleared.
    empty = (masked == -math.inf).all(-1, keepdim=True) if is_observed() else None
    weights = masked.clamp_min(torch.finfo(masked.dtype).min).softmax(-1)
    weights = points.weights(weights if empty is None else weights.masked_fill(empty, 0.0))
    return weights, points.context(weights @ value)


def _masked(points: AttentionPoints, scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores (B, H, Q, K) under an additive mask, or the boolean one that an intervention has made of it."""
    if mask is None and not is_observed():
        return scores
    added, allowed = _edited(points, scores, scores.mT, mask)
    return (scores if added is None else scores + added).masked_fill(~allowed, -math.inf)


def _edited(points: AttentionPoints, query: Tensor, key: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor]:
    """What a mask adds where it blocks nothing, and what may be attended to, (1 or B, 1 or H, Q, K) bool, as edited."""
    if mask is None:
        allowed = torch.ones(1, 1, query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        return None, points.mask(allowed)
    mask = mask[..., : key.shape[-2]]
    allowed = ~is_blocked(mask)
    return mask.masked_fill(~allowed, 0.0), points.mask(allowed)


def _sum(*biases: Tensor | None) -> Tensor | None:
    found = [bias for bias in biases if bias is not None]
    return sum(found[1:], found[0]) if found else None
