"""Masks that allow the wrong cells, broken beside fixed.

Each function takes a :class:`~.batch.Batch` and returns the weights (B, H, Q, K), or the arrays by name where the fault
is not in the weights alone. Functions come in pairs, ``x_broken`` and ``x_fixed``, of a few lines as they stand in real
models.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .attention import fused_weights, masked_softmax
from .batch import Batch


# inverted: a keep-mask handed to an API in which True blocks
def inverted_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(x.allowed, -1e9).softmax(-1)


def inverted_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


def inverted_padding_broken(x: Batch) -> Tensor:
    return fused_weights(x.scores, ~x.keep)  # this API keeps where True


def inverted_padding_fixed(x: Batch) -> Tensor:
    return fused_weights(x.scores, x.keep)


# future-visible: trg_mask = trg != 0 alone
def future_visible_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


def future_visible_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & x.causal)


# diagonal-blocked: triu with offset 0
def diagonal_blocked_broken(x: Batch) -> Tensor:
    blocked = torch.ones(x.queries, x.keys).triu(0).bool()
    return x.scores.masked_fill(blocked | ~x.keep, -torch.inf).softmax(-1)


def diagonal_blocked_fixed(x: Batch) -> Tensor:
    blocked = torch.ones(x.queries, x.keys).triu(1).bool()
    return x.scores.masked_fill(blocked | ~x.keep, -torch.inf).softmax(-1)


# causal-on-cross: the decoder's flag used for cross-attention as well
def causal_on_cross_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, torch.ones(x.queries, x.keys, dtype=torch.bool).tril() & x.keep)


def causal_on_cross_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# padding-visible: memory_key_padding_mask forgotten
def padding_visible_broken(x: Batch) -> Tensor:
    return x.scores.softmax(-1)


def padding_visible_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# padding-swapped: the target's lengths for the source's columns
def padding_swapped_broken(x: Batch) -> Tensor:
    lengths = x.query_keep.sum(-1)
    return masked_softmax(x.scores, (torch.arange(x.keys) < lengths[:, None])[:, None, None, :])


def padding_swapped_fixed(x: Batch) -> Tensor:
    lengths = x.key_keep.sum(-1)
    return masked_softmax(x.scores, (torch.arange(x.keys) < lengths[:, None])[:, None, None, :])


# wrong-axis: (N, S) read as (L, S), silent when N = L
def wrong_axis_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.key_keep)


def wrong_axis_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.key_keep[:, None, None, :])


def wrong_axis_rows_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.key_keep[:, None, :, None].expand(x.scores.shape))


# head-order: repeat for repeat_interleave
def head_order_broken(x: Batch) -> Tensor:
    heads = x.scores.shape[1]
    mask = x.keep[:, 0].repeat(heads, 1, 1)
    return masked_softmax(x.scores.flatten(0, 1), mask.expand(-1, x.queries, -1)).view_as(x.scores)


def head_order_fixed(x: Batch) -> Tensor:
    heads = x.scores.shape[1]
    mask = x.keep[:, 0].repeat_interleave(heads, 0)
    return masked_softmax(x.scores.flatten(0, 1), mask.expand(-1, x.queries, -1)).view_as(x.scores)


# top-left-causal: fewer queries than keys, as with a cache
def top_left_causal_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, torch.ones(x.queries, x.keys, dtype=torch.bool).tril())


def top_left_causal_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, torch.ones(x.queries, x.keys, dtype=torch.bool).tril(x.keys - x.queries))


WINDOW = 3


# window-off-by-one: an inclusive end taken for an exclusive one
def window_off_by_one_broken(x: Batch) -> Tensor:
    age = torch.arange(x.queries)[:, None] - torch.arange(x.keys)
    return masked_softmax(x.scores, (age >= 0) & (age <= WINDOW))


def window_off_by_one_fixed(x: Batch) -> Tensor:
    age = torch.arange(x.queries)[:, None] - torch.arange(x.keys)
    return masked_softmax(x.scores, (age >= 0) & (age < WINDOW))


# document-leak: two documents in one row, positions start again and the mask does not
def document_leak_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)


def document_leak_fixed(x: Batch) -> Tensor:
    document = torch.arange(x.keys) >= x.keys // 2
    return masked_softmax(x.scores, x.causal & (document[:, None] == document))


# hole-inside: a real token has the padding id
def hole_inside_broken(x: Batch) -> Tensor:
    ids = torch.where(x.key_keep, 5, 0)
    ids[:, 1] = 0  # a real token whose id is that of padding
    return masked_softmax(x.scores, (ids != 0)[:, None, None, :])


def hole_inside_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# leak: one cell open by accident
def leak_broken(x: Batch) -> Tensor:
    allowed = x.allowed.clone()
    allowed[0, ..., 0, 2] = True
    return masked_softmax(x.scores, allowed)


def leak_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


# over-blocked: a causal mask on an encoder
def over_blocked_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & x.causal)


def over_blocked_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# window-missing: a sliding window that one path of the code forgets
def window_missing_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)


# mask-shifted: the lengths count a token that the ids do not have
def mask_shifted_broken(x: Batch) -> Tensor:
    lengths = x.key_keep.sum(-1) + 1
    return masked_softmax(x.scores, (torch.arange(x.keys) < lengths[:, None])[:, None, None, :])


# sample-order: the batch is sorted by length, the mask is not
def sample_order_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep.roll(1, 0))


# stale-cache: a static cache, the last slots of which are not filled yet
def filled_slots(x: Batch) -> Tensor:
    """Return (Q, K) bool, causal up to the newest of the filled slots, three in four."""
    filled = x.keys - x.keys // 4
    position = torch.arange(x.queries)[:, None] + filled - x.queries
    return torch.arange(x.keys) <= position


def stale_cache_broken(x: Batch) -> Tensor:
    unfilled = torch.arange(x.keys) >= x.keys - x.keys // 4
    return masked_softmax(x.scores, filled_slots(x) | unfilled)


def stale_cache_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, filled_slots(x))
