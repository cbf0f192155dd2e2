"""Who may attend to whom. Boolean, True = may attend, broadcastable to (B, H, Q, K)."""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """Let every query see the real keys only: tokens (B, K) -> (B, 1, 1, K)."""
    return (tokens != pad_id)[:, None, None, :]


def causal_mask(queries: int, keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Let query i see the keys up to its own position: -> (1, 1, Q, K).

    With more keys than queries (a key/value cache) the queries are the *last* Q positions, so the triangle is aligned
    at the lower right and the newest query sees everything.
    """
    keys = queries if keys is None else keys
    if keys < queries:
        raise ValueError(
            f"A causal mask needs at least as many keys as queries; got {queries} queries and {keys} keys."
        )
    allowed = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
    return allowed[None, None]


def combine(*masks: Tensor | None) -> Tensor | None:
    """Allow what every given mask allows (broadcast); None stands for "no restriction"."""
    combined: Tensor | None = None
    for mask in masks:
        if mask is None:
            continue
        check_boolean(mask)
        combined = mask if combined is None else combined & mask
    return combined


def check_boolean(mask: Tensor) -> None:
    """Refuse the masks of other conventions: an additive or 0/1 mask would silently do something else."""
    if mask.dtype != torch.bool:
        raise TypeError(
            f"A mask here is boolean with True = may attend; this one is {mask.dtype}. "
            "Convert it first: an additive mask with `mask == 0`, a blocking mask with `~mask`."
        )
