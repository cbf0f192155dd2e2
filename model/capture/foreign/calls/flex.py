"""flex_attention (Dong et al. 2024, "Flex Attention"): its weights, by evaluating score_mod and mask_mod beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ....masking.attention_call import Reading
from ....masking.blocked import is_blocked
from ....pytorch.torch_internals import FlexCall, over_cells
from .axes import Layout
from .fused_weights import Attention, compact

NO_BLOCKS = 2**20
"""From this size of its blocks on, a BlockMask stands for none."""


@torch.no_grad()
def flex_weights(call: FlexCall) -> Attention:
    """Return the attention that a call computes.

    As there, keys and values of fewer heads are repeated, and a query with no key allowed gets a row of zeros.
    """
    heads, query = call.query.shape[1], call.query.float()
    key, value = (one.repeat_interleave(heads // one.shape[1], 1) for one in (call.key, call.value))
    with torch.autocast(query.device.type, enabled=False):
        scores = query @ key.float().transpose(-1, -2) * call.scale
    sizes = scores.shape
    modified = over_cells(call.score_mod, sizes, scores.device, scores, others=call.score_others)
    kept = over_cells(call.mask_mod, sizes, scores.device, others=call.mask_others).expand(sizes)
    masked = modified.masked_fill(~kept, -math.inf)
    weights = masked.softmax(-1)
    if bool((masked.amax(-1) == -math.inf).any()):
        weights = weights.nan_to_num(nan=0.0)
    open_scores = ~is_blocked(modified)
    allowed, passed = kept & open_scores, _opened(call, kept) & open_scores
    tensors = {"q": call.query, "k": key, "v": value, "scores": scores, "masked_scores": masked}
    arrived = None if bool(passed.all()) else compact(passed)
    return Attention(weights, compact(allowed), tensors, passed=arrived)


def laid_out(attention: Attention, layout: Layout) -> Attention:
    """Return an attention with every tensor in a layout."""
    passed = None if attention.passed is None else layout(attention.passed)
    tensors = {name: layout(tensor) for name, tensor in attention.tensors.items()}
    return Attention(layout(attention.weights), layout(attention.allowed), tensors, passed=passed)


def flex_arguments(call: FlexCall) -> dict[str, str]:
    """Return what masked a call, by the names of its arguments, in words."""
    size = call.block_size
    blocks = "None" if max(size) >= NO_BLOCKS else f"BlockMask in blocks of {size[0]} x {size[1]}"
    name = getattr(call.score_mod, "__name__", type(call.score_mod).__name__)
    return {"block_mask": blocks, "score_mod": "None" if name == "_identity" else name}


def flex_passed(arguments: dict[str, str], attention: Attention) -> tuple[Reading, ...]:
    """Return which arguments arrived and how they are read; empty where they hide no cell."""
    if attention.passed is None:
        return ()
    name, *others = [name for name, value in arguments.items() if value != "None"]
    return (("both-evaluated", {"name": name, "other": others[0]}) if others else ("evaluated", {"name": name}),)


def _opened(call: FlexCall, kept: Tensor) -> Tensor:
    """The block mask as cells: what mask_mod keeps in the blocks that it lists, and all of its full blocks."""
    if max(call.block_size) >= NO_BLOCKS:
        return kept
    partial, full = (_listed(*one, call.block_size, kept) for one in (call.blocks, call.full_blocks))
    return (partial & kept) | full


def _listed(counts: Tensor | None, indices: Tensor | None, size: Sequence[int], cells: Tensor) -> Tensor:
    """(B, H, Q, K) bool: the cells of the blocks of keys that are listed for each block of queries."""
    if counts is None or indices is None:
        return torch.zeros_like(cells)
    columns = indices.shape[-1]
    used = torch.arange(columns, device=indices.device) < counts[..., None]
    dense = torch.zeros(*indices.shape[:-1], columns + 1, dtype=torch.bool, device=indices.device)
    dense.scatter_(-1, torch.where(used, indices, columns).long(), True)
    whole = dense[..., :columns].repeat_interleave(size[0], -2).repeat_interleave(size[1], -1)
    return whole[..., : cells.shape[-2], : cells.shape[-1]].expand(cells.shape)
