"""Attention weights from scores and a mask, the right way: what pairs of broken and fixed code share."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Fill with -inf, take the softmax over the keys, give zeros where no key is allowed."""
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    return weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)


def fused_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the weights of F.scaled_dot_product_attention: with values = identity its output is its weights."""
    batch, heads, queries, keys = scores.shape
    identity = torch.eye(keys).expand(batch, heads, keys, keys)
    pick = torch.eye(queries).expand(batch, heads, queries, queries)  # query i times "keys" gives scores[i]
    return F.scaled_dot_product_attention(pick, scores.transpose(-2, -1), identity, attn_mask=mask, scale=1.0)
