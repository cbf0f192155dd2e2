"""Broken attention beside fixed: for every fault two functions of a few lines, as they stand in real models.

Each takes a :class:`~.batch.Batch` (and where it matters a random generator) and returns the weights (B, H, Q, K), or
the arrays by name where the fault is not in the weights alone. Functions come in pairs: ``x_broken`` and ``x_fixed``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .batch import Batch

NEVER = float("-inf")


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """The right way: fill with -inf, softmax over the keys, zeros where no key is allowed."""
    weights = scores.masked_fill(~allowed, NEVER).softmax(-1)
    return weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)


def fused_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """The weights of F.scaled_dot_product_attention: with values = identity its output is its weights."""
    batch, heads, queries, keys = scores.shape
    identity = torch.eye(keys).expand(batch, heads, keys, keys)
    pick = torch.eye(queries).expand(batch, heads, queries, queries)  # query i times "keys" gives scores[i]
    return F.scaled_dot_product_attention(pick, scores.transpose(-2, -1), identity, attn_mask=mask, scale=1.0)


def both(x: Batch) -> Tensor:
    return x.causal & x.keep


# inverted: a keep-mask handed to an API in which True blocks
def inverted_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(both(x), -1e9).softmax(-1)


def inverted_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, both(x))


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
    return x.scores.masked_fill(blocked | ~x.keep, NEVER).softmax(-1)


def diagonal_blocked_fixed(x: Batch) -> Tensor:
    blocked = torch.ones(x.queries, x.keys).triu(1).bool()
    return x.scores.masked_fill(blocked | ~x.keep, NEVER).softmax(-1)


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


# soft-mask: zeros and ones added to the scores
def soft_mask_broken(x: Batch) -> Tensor:
    return fused_weights(x.scores, (x.keep & x.causal).float().expand(x.scores.shape))


def soft_mask_fixed(x: Batch) -> Tensor:
    return fused_weights(x.scores, (x.keep & x.causal).expand(x.scores.shape))


# weak-fill: a finite fill that extreme scores reach
def weak_fill_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~both(x), -100.0).softmax(-1)


def weak_fill_fixed(x: Batch) -> Tensor:
    return x.scores.masked_fill(~both(x), NEVER).softmax(-1)


# fill-overflow: -1e9 cast to float16
def fill_overflow_broken(x: Batch) -> dict[str, Tensor]:
    bias = torch.zeros(both(x).shape).masked_fill(~both(x), -1e9)
    masked = x.scores.half() + bias.half()
    return {"weights": masked.softmax(-1), "scores": x.scores.half(), "masked_scores": masked, "mask": bias}


def fill_overflow_fixed(x: Batch) -> dict[str, Tensor]:
    bias = torch.zeros(both(x).shape).masked_fill(~both(x), torch.finfo(torch.float16).min)
    masked = x.scores.half() + bias.half()
    weights = masked.softmax(-1).masked_fill(~both(x).any(-1, keepdim=True), 0)
    return {"weights": weights, "scores": x.scores.half(), "masked_scores": masked, "mask": bias}


# double-fill: the padding is filled, then the causal mask is added
def double_fill_broken(x: Batch) -> dict[str, Tensor]:
    future = torch.full((x.queries, x.keys), -1e9).triu(1)
    masked = x.scores.masked_fill(~x.keep, -1e9) + future
    return {"weights": masked.softmax(-1), "masked_scores": masked}


def double_fill_fixed(x: Batch) -> dict[str, Tensor]:
    return {"weights": masked_softmax(x.scores, both(x)), "masked_scores": x.scores.masked_fill(~both(x), NEVER)}


# empty-row: left padding and causal together
def empty_row_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~both(x), NEVER).softmax(-1)  # NaN


def empty_row_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, both(x))


def empty_row_uniform_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~both(x), -1e9).softmax(-1)  # uniform


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


# softmax-axis: softmax(dim=2) on four dimensions
def softmax_axis_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~both(x), -1e9).softmax(2)


def softmax_axis_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, both(x))


# transposed: the picture has its axes exchanged
def transposed_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, both(x)).transpose(-2, -1)


def transposed_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, both(x))


# dropout-on: weights kept after dropout, in training mode
def dropout_on_broken(x: Batch) -> Tensor:
    return F.dropout(masked_softmax(x.scores, both(x)), 0.2, training=True)


def dropout_on_fixed(x: Batch) -> Tensor:
    return F.dropout(masked_softmax(x.scores, both(x)), 0.2, training=False)


# mask-ignored: accepted as an argument, never used
def mask_ignored_broken(x: Batch) -> dict[str, Tensor]:
    return {"weights": x.scores.softmax(-1), "scores": x.scores, "mask": both(x)}


def mask_ignored_fixed(x: Batch) -> dict[str, Tensor]:
    return {"weights": masked_softmax(x.scores, both(x)), "scores": x.scores, "mask": both(x)}


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
    allowed = both(x).clone()
    allowed[0, ..., 0, 2] = True
    return masked_softmax(x.scores, allowed)


def leak_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, both(x))


# over-blocked: a causal mask on an encoder
def over_blocked_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep & x.causal)


def over_blocked_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)
