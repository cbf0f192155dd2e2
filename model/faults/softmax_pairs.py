"""Masks applied in the wrong way, and faults of the softmax and after it, broken beside fixed.

Each function takes a :class:`~.batch.Batch` and returns the weights (B, H, Q, K), or the arrays by name where the fault
is not in the weights alone. Functions come in pairs, ``x_broken`` and ``x_fixed``, of a few lines as they stand in real
models.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import fused_weights, masked_softmax
from .batch import Batch


# soft-mask: zeros and ones added to the scores
def soft_mask_broken(x: Batch) -> Tensor:
    return fused_weights(x.scores, x.allowed.float().expand(x.scores.shape))


def soft_mask_fixed(x: Batch) -> Tensor:
    return fused_weights(x.scores, x.allowed.expand(x.scores.shape))


# weak-fill: a finite fill that extreme scores reach
def weak_fill_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -100.0).softmax(-1)


def weak_fill_fixed(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -torch.inf).softmax(-1)


# fill-overflow: -1e9 cast to float16
def fill_overflow_broken(x: Batch) -> dict[str, Tensor]:
    bias = torch.zeros(x.allowed.shape).masked_fill(~x.allowed, -1e9)
    masked = x.scores.half() + bias.half()
    return {"weights": masked.softmax(-1), "scores": x.scores.half(), "masked_scores": masked, "mask": bias}


def fill_overflow_fixed(x: Batch) -> dict[str, Tensor]:
    bias = torch.zeros(x.allowed.shape).masked_fill(~x.allowed, torch.finfo(torch.float16).min)
    masked = x.scores.half() + bias.half()
    weights = masked.softmax(-1).masked_fill(~x.allowed.any(-1, keepdim=True), 0)
    return {"weights": weights, "scores": x.scores.half(), "masked_scores": masked, "mask": bias}


# double-fill: the padding is filled, then the causal mask is added
def double_fill_broken(x: Batch) -> dict[str, Tensor]:
    future = torch.full((x.queries, x.keys), -1e9).triu(1)
    masked = x.scores.masked_fill(~x.keep, -1e9) + future
    return {"weights": masked.softmax(-1), "masked_scores": masked}


def double_fill_fixed(x: Batch) -> dict[str, Tensor]:
    return {
        "weights": masked_softmax(x.scores, x.allowed),
        "masked_scores": x.scores.masked_fill(~x.allowed, -torch.inf),
    }


# empty-row: left padding and causal together
def empty_row_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -torch.inf).softmax(-1)  # NaN


def empty_row_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


# empty-row: a source sentence without any token, and a finite fill
def empty_row_uniform_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.keep, -1e9).softmax(-1)  # uniform over the padding


def empty_row_uniform_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.keep)


# softmax-axis: softmax(dim=2) on four dimensions
def softmax_axis_broken(x: Batch) -> Tensor:
    return x.scores.masked_fill(~x.allowed, -1e9).softmax(2)


def softmax_axis_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


# transposed: the picture has its axes exchanged
def transposed_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed).transpose(-2, -1)


def transposed_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.allowed)


# dropout-on: weights kept after dropout, in training mode
def dropout_on_broken(x: Batch) -> Tensor:
    return F.dropout(masked_softmax(x.scores, x.allowed), 0.2, training=True)


def dropout_on_fixed(x: Batch) -> Tensor:
    return F.dropout(masked_softmax(x.scores, x.allowed), 0.2, training=False)


# applied-late: multiplied into the weights
def applied_late_broken(x: Batch) -> Tensor:
    return x.scores.softmax(-1) * x.causal


def applied_late_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, x.causal)


# extra-mass: a learned logit in the denominator that belongs to no key
def extra_mass(x: Batch) -> Tensor:
    scores = x.scores.masked_fill(~x.causal, -torch.inf)
    return torch.cat([scores, torch.zeros_like(scores[..., :1])], -1).softmax(-1)[..., :-1]


# mask-ignored: accepted as an argument, never used
def mask_ignored_broken(x: Batch) -> dict[str, Tensor]:
    return {"weights": x.scores.softmax(-1), "scores": x.scores, "mask": x.allowed}


def mask_ignored_fixed(x: Batch) -> dict[str, Tensor]:
    return {"weights": masked_softmax(x.scores, x.allowed), "scores": x.scores, "mask": x.allowed}
