"""Attention over blocks and windows of keys, laid out as queries x keys: of the modules whose layout is known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

import torch
from torch import Tensor, nn

from ....masking.blocked import is_blocked
from .axes import evidence_of
from .call_site import CallSite
from .fused_weights import Attention

Rows = tuple[Callable[[Tensor], Tensor], Tensor, int]
"""How scores become (B, H, Q, columns), which key each column is (broadcast; outside of 0 .. K-1: none), and K."""
_NO_KEY = -1


@torch.no_grad()
def block_attention(site: CallSite, scores: Tensor, weights: Tensor, before: Attention | None) -> Attention | None:
    """Return the attention of a softmax in a module of a known block layout; None in any other.

    `before` is what the same call of the module has computed so far: some compute a few rows at a time.
    """
    layout = _LAYOUTS.get(type(site.module).__name__)
    return None if layout is None else layout(site, scores.detach(), weights.detach(), before)


def _longformer(site: CallSite, scores: Tensor, weights: Tensor, before: Attention | None) -> Attention | None:
    """A band (B, L, H, global keys + 2 w + 1), then whole rows (B * H, global queries, L) of the global queries."""
    masked, is_global = (_local_variable(site.module, name) for name in ("is_index_masked", "is_index_global_attn"))
    width = getattr(site.module, "one_sided_attn_window_size", 0)
    if masked is None or is_global is None or not width:
        return None
    batch, length = masked.shape
    if scores.dim() == 3 and before is not None:
        return _global_rows(before, scores.unflatten(0, (batch, -1)), weights.unflatten(0, (batch, -1)), is_global)
    globals_ = scores.shape[-1] - 2 * width - 1
    if scores.dim() != 4 or scores.shape[:2] != masked.shape or globals_ < 0:
        return None
    positions = torch.arange(length, device=scores.device)
    band = positions[:, None] + torch.arange(-width, width + 1, device=scores.device)
    first = torch.full((batch, 1, length, globals_), _NO_KEY, device=scores.device)
    for sample in range(batch):
        keys = is_global[sample].nonzero()[:, 0]
        first[sample, :, :, : len(keys)] = keys
    keys = torch.cat([first, band.expand(batch, 1, -1, -1)], -1)
    found = _dense((lambda tensor: tensor.transpose(1, 2), keys, length), scores, weights)
    found.weights.masked_fill_(masked[:, None, :, None], 0.0)  # as the module does with the rows of padding
    return replace(found, padding=_padding(site, batch, length))


def _global_rows(before: Attention, scores: Tensor, weights: Tensor, is_global: Tensor) -> Attention:
    """Replace the rows of global queries, which the band holds as fillers."""
    rows = _with_mask(weights.to(before.weights.dtype), scores.float())
    for sample, row in enumerate(is_global):
        places = row.nonzero()[:, 0]
        for whole, part in _pairs(before, rows):
            whole[sample, :, places] = part[sample, :, : len(places)]
    return before


def _longt5(site: CallSite, scores: Tensor, weights: Tensor, before: Attention | None) -> Attention | None:
    """(B, blocks, H, block, 3 blocks), and keys that are summaries of `global_block_size` tokens each."""
    block = getattr(site.module, "block_len", 0)
    states = next(iter(site.calls[0].inputs), None)
    if scores.dim() != 5 or scores.shape[3] != block or states is None or states.dim() != 3:
        return None
    blocks, length, summaries = scores.shape[1], states.shape[1], scores.shape[-1] - 3 * block
    keys = _neighbours(blocks, block, 1, 1, scores.device)
    keys = torch.where((keys < 0) | (keys >= length), _NO_KEY, keys)
    last = torch.arange(length, length + summaries, device=scores.device).expand(len(keys), -1)
    keys = torch.cat([keys, last], -1)[None, None]
    found = _dense(
        (lambda tensor: tensor.transpose(1, 2).flatten(2, 3), keys, length + summaries), scores, weights, length
    )
    return replace(found, extra_keys=tuple(f"summary {number + 1}" for number in range(summaries)))


def _local_windows(site: CallSite, scores: Tensor, weights: Tensor, before: Attention | None) -> Attention | None:
    """(B * H, windows, window, neighbouring windows) of the package local-attention."""
    module, query = site.module, next(iter(site.calls[0].inputs), None)
    names = ("look_backward", "look_forward")
    backward, forward = (getattr(module, name, -1) for name in names)
    if scores.dim() != 4 or query is None or min(backward, forward) < 0:
        return None
    merged, windows, size, columns = scores.shape
    length = query.shape[-2]
    if columns != size * (1 + backward + forward) or not 0 <= windows * size - length < size:
        return None
    batch = query.shape[0] if query.dim() == 4 else merged // (evidence_of(site).heads or 1)
    if batch == 0 or merged % batch or query.shape[:-2].numel() != merged:
        return None
    keys = _neighbours(windows, size, backward, forward, scores.device)
    keys = torch.where(keys >= length, _NO_KEY, keys)[None, None]
    return _dense(
        (lambda tensor: tensor.flatten(1, 2).unflatten(0, (batch, -1)), keys, length), scores, weights, length
    )


def _big_bird(site: CallSite, scores: Tensor, weights: Tensor, before: Attention | None) -> Attention | None:
    """Rows in five parts: the ends of the text over all keys, others over neighbours, both ends and random blocks."""
    random = _local_variable(site.module, "rand_attn")
    if random is None or not 4 <= scores.dim() <= 5:
        return None
    block, count = scores.shape[-2], random.shape[2] + 2
    first = 0 if before is None else before.weights.shape[2] // block
    step = scores.shape[2] if scores.dim() == 5 else 1
    parts = [_big_bird_blocks(number, count, random) for number in range(first, first + step)]
    within = torch.arange(block, device=scores.device)
    keys = torch.stack([(part[..., None] * block + within).flatten(-2) for part in parts], 2)
    if keys.shape[-1] != scores.shape[-1]:
        return None
    keys = keys.repeat_interleave(block, 2)
    found = _dense((lambda tensor: tensor.flatten(2, -2), keys, count * block), scores, weights)
    if before is None:
        return replace(found, padding=_padding(site, len(weights), count * block))
    weights, allowed, *masked = (torch.cat(pair, 2) for pair in _pairs(before, found))
    return replace(before, weights=weights, allowed=allowed, tensors={"masked_scores": masked[0]} if masked else {})


def _big_bird_blocks(number: int, count: int, random: Tensor) -> Tensor:
    """(B, H, blocks): the blocks of keys that block `number` of the queries attends to, in the module's order."""
    if number in (0, count - 1):
        return torch.arange(count, device=random.device).expand(*random.shape[:2], -1)
    chosen = random[:, :, number - 1]

    def blocks(*numbers: int) -> Tensor:
        return torch.tensor(numbers, device=random.device).expand(*random.shape[:2], -1)

    if number == 1:
        return torch.cat([blocks(0, 1, 2, count - 1), chosen], -1)
    if number == count - 2:
        return torch.cat([blocks(0, count - 3, count - 2, count - 1), chosen], -1)
    return torch.cat([blocks(0, number - 1, number, number + 1), chosen, blocks(count - 1)], -1)


def _pairs(first: Attention, second: Attention) -> list[tuple[Tensor, Tensor]]:
    """The weights, masks and scores of two parts of an attention; the scores where both hold them."""
    pairs = [(first.weights, second.weights), (first.allowed, second.allowed)]
    return pairs + [(tensor, second.tensors[name]) for name, tensor in first.tensors.items()]


def _neighbours(windows: int, size: int, backward: int, forward: int, device: torch.device) -> Tensor:
    """(windows * size, columns): the keys of every query, those of its window and of those beside it."""
    first = (torch.arange(windows, device=device) - backward) * size
    columns = torch.arange(size * (1 + backward + forward), device=device)
    return (first[:, None] + columns).repeat_interleave(size, 0)


def _dense(rows: Rows, scores: Tensor, weights: Tensor, queries: int | None = None) -> Attention:
    """Scatter columns to their keys; where a query has no column for a key, its weight is 0 and its score -inf."""
    lay, keys, count = rows
    laid = [lay(tensor)[:, :, :queries] for tensor in (weights, scores.float())]
    place = torch.where((keys < 0) | (keys >= count), count, keys)[:, :, :queries].expand(laid[0].shape)
    empty = laid[0].new_zeros(*laid[0].shape[:3], count + 1)
    dense = empty.scatter_add(-1, place, laid[0])[..., :count]
    masked = torch.full_like(empty, -torch.inf, dtype=torch.float32).scatter_reduce(-1, place, laid[1], "amax")
    return _with_mask(dense, masked[..., :count])


def _padding(site: CallSite, batch: int, length: int) -> int:
    """How many positions a model has added, for whole blocks, to what its outermost call was given."""
    given = [tensor.shape[1] for tensor in site.calls[-1].inputs if tensor.dim() > 1 and len(tensor) == batch]
    return length - max((size for size in given if size <= length), default=length)


def _local_variable(module: nn.Module, name: str) -> Tensor | None:
    """The variable of this name in a method of the module that is running; None where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        own = code.co_argcount and frame.f_locals.get(code.co_varnames[0]) is module
        if own and isinstance(found := frame.f_locals.get(name), Tensor):
            return found
        frame = frame.f_back
    return None


def _with_mask(weights: Tensor, masked_scores: Tensor) -> Attention:
    return Attention(weights, ~is_blocked(masked_scores), {"masked_scores": masked_scores})


_LAYOUTS: dict[str, Callable[[CallSite, Tensor, Tensor, Attention | None], Attention | None]] = {
    "LongformerSelfAttention": _longformer,
    "LEDEncoderSelfAttention": _longformer,
    "LongT5LocalAttention": _longt5,
    "LongT5TransientGlobalAttention": _longt5,
    "LocalAttention": _local_windows,
    "BigBirdBlockSparseAttention": _big_bird,
}
"""By the class, in transformers and local-attention; each looks whether the shapes are those that it knows."""
