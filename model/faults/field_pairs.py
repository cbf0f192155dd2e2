"""Faults met in published code that are more than one call of attention, or that look different: broken beside fixed.

As in :mod:`.mask_pairs`, functions come in pairs. Those of the second half are small models: they take states (B, T, D)
and what each query may attend to (B, T, T), and return states.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .attention import masked_softmax
from .batch import Batch


# an additive mask (0 keeps, -inf blocks) where mask == 0 means blocked
def additive_read_as_keep_broken(x: Batch) -> Tensor:
    mask = torch.zeros(x.queries, x.keys).masked_fill(~x.causal, -torch.inf)
    return x.scores.masked_fill(mask == 0, -torch.inf).softmax(-1)


def additive_read_as_keep_fixed(x: Batch) -> Tensor:
    mask = torch.zeros(x.queries, x.keys).masked_fill(~x.causal, -torch.inf)
    return (x.scores + mask).softmax(-1)


def documented(scores: Tensor, mask: Tensor) -> Tensor:
    """mask: True where a query may attend."""
    return scores.masked_fill(mask, -1e9).softmax(-1)  # the code blocks where True


# the docstring says the opposite of what the code does
def docstring_broken(x: Batch) -> Tensor:
    return documented(x.scores, x.causal)


def docstring_fixed(x: Batch) -> Tensor:
    return documented(x.scores, ~x.causal)


# -1e10 in half precision: torch refuses the number
def half_precision_broken(x: Batch) -> Tensor:
    return x.scores.half().masked_fill(~x.allowed, -1e10).softmax(-1)


def half_precision_fixed(x: Batch) -> Tensor:
    scores = x.scores.half()
    return scores.masked_fill(~x.allowed, torch.finfo(scores.dtype).min).softmax(-1)


def three_layers(x: Batch, attend: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the weights of three layers, each on the outputs of the one before: (B, L, H, Q, K)."""
    states, weights = x.scores, []
    for _ in range(3):
        weights.append(attend(states @ states.mT / x.keys))
        states = weights[-1] @ states
    return torch.stack(weights, 1)


# two pads at the left: NaN in their rows, and 0 * NaN is NaN
def left_pads_broken(x: Batch) -> Tensor:
    return three_layers(x, lambda scores: scores.masked_fill(~x.allowed, -torch.inf).softmax(-1))


def left_pads_fixed(x: Batch) -> Tensor:
    return three_layers(x, lambda scores: masked_softmax(scores, x.allowed))


# a step of indentation too much: the loop ends in its first round
def return_in_loop_broken(states: Tensor, allowed: Tensor) -> Tensor:
    for _ in range(6):
        states = states + masked_softmax(states @ states.mT, allowed) @ states / 4
        return states  # noqa: RET504
    return states


def return_in_loop_fixed(states: Tensor, allowed: Tensor) -> Tensor:
    for _ in range(6):
        states = states + masked_softmax(states @ states.mT, allowed) @ states / 4
    return states


def causal_lm(states: Tensor, real: Tensor, is_decoder: bool = False) -> Tensor:
    """A language model that is causal only with ``is_decoder``."""
    allowed = real.tril() if is_decoder else real
    return states + masked_softmax(states @ states.mT, allowed) @ states


# the causal mask depends on a flag that is off by default
def is_decoder_broken(states: Tensor, real: Tensor) -> Tensor:
    return causal_lm(states, real)


def is_decoder_fixed(states: Tensor, real: Tensor) -> Tensor:
    return causal_lm(states, real, is_decoder=True)


def two_layers(states: Tensor, blocked: Tensor, need_weights: bool) -> Tensor:
    """Apply nn.MultiheadAttention twice, with or without its weights."""
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(states.shape[-1], 1, batch_first=True)
    for _ in range(2):
        states = attention(states, states, states, attn_mask=blocked, need_weights=need_weights)[0]
    return states


# rows without any key: finite without need_weights, NaN with it
def observer_broken(states: Tensor, allowed: Tensor, need_weights: bool = True) -> Tensor:
    return two_layers(states, ~allowed, need_weights)


def observer_fixed(states: Tensor, allowed: Tensor, need_weights: bool = True) -> Tensor:
    empty = ~allowed.any(-1, keepdim=True)
    return two_layers(states, ~(allowed | empty), need_weights)


# batch-axis: (B, T, D) handed to a module that takes (T, B, D), as it does without batch_first
def batch_axis_broken(states: Tensor, keep: Tensor) -> Tensor:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(states.shape[-1], 1)  # key_padding_mask=~keep does not fit, and was left out
    return states + attention(states, states, states)[0]


def batch_axis_fixed(states: Tensor, keep: Tensor) -> Tensor:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(states.shape[-1], 1, batch_first=True)
    return states + attention(states, states, states, key_padding_mask=~keep)[0]


def at_positions(states: Tensor, keep: Tensor, positions: Tensor) -> Tensor:
    """Attention with absolute positions, added to the states."""
    rates = 10.0 ** -torch.linspace(0, 2, states.shape[-1])
    states = states + torch.sin(positions[..., None] * rates)
    return states + masked_softmax(states @ states.mT, keep[:, None, :].expand(-1, keep.shape[1], -1).tril()) @ states


# positions-wrong: positions by column, whatever is padding
def positions_broken(states: Tensor, keep: Tensor) -> Tensor:
    positions = torch.arange(keep.shape[1]).expand(keep.shape)
    return at_positions(states, keep, positions)


def positions_fixed(states: Tensor, keep: Tensor) -> Tensor:
    positions = (keep.long().cumsum(-1) - 1).clamp(min=0)
    return at_positions(states, keep, positions)
