"""Broken and fixed pairs beyond one mask: layers, batch axis, biases, positions, and published code."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .attention_bug_pairs import WINDOW, Batch, masked_softmax

# Faults met in published code that are more than one call of attention, or that look different. Functions that take
# states are small models: they take states (B, T, D), with what each query may attend to (B, T, T) or which tokens are
# real (B, T), and return states.


# an additive mask (0 keeps, -inf blocks) where mask == 0 means blocked
def additive_mask_as_bool_broken(x: Batch) -> Tensor:
    mask = torch.zeros(x.queries, x.keys).masked_fill(~x.causal, -torch.inf)
    return x.scores.masked_fill(mask == 0, -torch.inf).softmax(-1)


def additive_mask_as_bool_fixed(x: Batch) -> Tensor:
    mask = torch.zeros(x.queries, x.keys).masked_fill(~x.causal, -torch.inf)
    return (x.scores + mask).softmax(-1)


def attend_with_mask(scores: Tensor, mask: Tensor) -> Tensor:
    """mask: True where a query may attend."""
    return scores.masked_fill(mask, -1e9).softmax(-1)  # the code blocks where True


# the docstring says the opposite of what the code does
def misdocumented_mask_broken(x: Batch) -> Tensor:
    return attend_with_mask(x.scores, x.causal)


def misdocumented_mask_fixed(x: Batch) -> Tensor:
    return attend_with_mask(x.scores, ~x.causal)


# -1e10 in half precision: torch refuses the number
def half_precision_fill_broken(x: Batch) -> Tensor:
    return x.scores.half().masked_fill(~x.allowed, -1e10).softmax(-1)


def half_precision_fill_fixed(x: Batch) -> Tensor:
    scores = x.scores.half()
    return scores.masked_fill(~x.allowed, torch.finfo(scores.dtype).min).softmax(-1)


def compute_three_layer_weights(x: Batch, attend: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the weights of three layers, each on the outputs of the one before: (B, L, H, Q, K)."""
    states, weights = x.scores, []
    for _ in range(3):
        weights.append(attend(states @ states.mT / x.keys))
        states = weights[-1] @ states
    return torch.stack(weights, 1)


# two pads at the left: NaN in their rows, and 0 * NaN is NaN
def left_padding_nan_broken(x: Batch) -> Tensor:
    return compute_three_layer_weights(x, lambda scores: scores.masked_fill(~x.allowed, -torch.inf).softmax(-1))


def left_padding_nan_fixed(x: Batch) -> Tensor:
    return compute_three_layer_weights(x, lambda scores: masked_softmax(scores, x.allowed))


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


def run_toy_language_model(states: Tensor, real: Tensor, is_decoder: bool = False) -> Tensor:
    """A language model that is causal only with ``is_decoder``."""
    allowed = real.tril() if is_decoder else real
    return states + masked_softmax(states @ states.mT, allowed) @ states


# the causal mask depends on a flag that is off by default
def decoder_flag_broken(states: Tensor, real: Tensor) -> Tensor:
    return run_toy_language_model(states, real)


def decoder_flag_fixed(states: Tensor, real: Tensor) -> Tensor:
    return run_toy_language_model(states, real, is_decoder=True)


def run_two_layers(states: Tensor, blocked: Tensor, need_weights: bool) -> Tensor:
    """Apply nn.MultiheadAttention twice, with or without its weights."""
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(states.shape[-1], 1, batch_first=True)
    for _ in range(2):
        states = attention(states, states, states, attn_mask=blocked, need_weights=need_weights)[0]
    return states


# rows without any key: finite without need_weights, NaN with it
def need_weights_effect_broken(states: Tensor, allowed: Tensor, need_weights: bool = True) -> Tensor:
    return run_two_layers(states, ~allowed, need_weights)


def need_weights_effect_fixed(states: Tensor, allowed: Tensor, need_weights: bool = True) -> Tensor:
    empty = ~allowed.any(-1, keepdim=True)
    return run_two_layers(states, ~(allowed | empty), need_weights)


# batch-axis: (B, T, D) handed to a module that takes (T, B, D), as it does without batch_first
def batch_axis_model_broken(states: Tensor, keep: Tensor) -> Tensor:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(states.shape[-1], 1)  # key_padding_mask=~keep does not fit, and was left out
    return states + attention(states, states, states)[0]


def batch_axis_model_fixed(states: Tensor, keep: Tensor) -> Tensor:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(states.shape[-1], 1, batch_first=True)
    return states + attention(states, states, states, key_padding_mask=~keep)[0]


def attend_with_absolute_positions(states: Tensor, keep: Tensor, positions: Tensor) -> Tensor:
    """Attention with absolute positions, added to the states."""
    rates = 10.0 ** -torch.linspace(0, 2, states.shape[-1])
    states = states + torch.sin(positions[..., None] * rates)
    return states + masked_softmax(states @ states.mT, keep[:, None, :].expand(-1, keep.shape[1], -1).tril()) @ states


# positions-wrong: positions by column, whatever is padding
def left_pad_positions_model_broken(states: Tensor, keep: Tensor) -> Tensor:
    positions = torch.arange(keep.shape[1]).expand(keep.shape)
    return attend_with_absolute_positions(states, keep, positions)


def left_pad_positions_model_fixed(states: Tensor, keep: Tensor) -> Tensor:
    positions = (keep.long().cumsum(-1) - 1).clamp(min=0)
    return attend_with_absolute_positions(states, keep, positions)


# Faults beside the mask of one layer: patterns over layers, the axis of the batch, biases and positions.


LAYERS = 4
"""Layers of a small model, of which every other one is local."""


def key_distances(x: Batch) -> Tensor:
    """How far each key lies before its query: (Q, K)."""
    return torch.arange(x.queries)[:, None] - torch.arange(x.keys)


def alternating_layer_masks(x: Batch, local: int) -> list[Tensor]:
    """A causal mask for each layer, with a window in every other one, from layer `local` on."""
    windowed = x.causal & (key_distances(x) < WINDOW)
    return [windowed if layer % 2 == local else x.causal for layer in range(LAYERS)]


# wrong-layer-pattern: layers counted from 1 in the configuration and from 0 in the code
def local_global_layers_swapped_broken(x: Batch) -> Tensor:
    return torch.stack([masked_softmax(x.scores, mask) for mask in alternating_layer_masks(x, local=1)], 1)


def local_global_layers_swapped_fixed(x: Batch) -> Tensor:
    return torch.stack([masked_softmax(x.scores, mask) for mask in alternating_layer_masks(x, local=0)], 1)


def alternating_window_layer_masks(x: Batch) -> Tensor:
    """Return (1, L, 1, Q, K) bool: a window in the first layer and every other one."""
    return torch.stack(alternating_layer_masks(x, local=0))[None, :, None]


# wrong-layer-pattern: the first token should see all and be seen by all
def global_token_lost_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, key_distances(x).abs() < WINDOW)


def global_token_lost_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, window_and_global_mask(x))


def window_and_global_mask(x: Batch) -> Tensor:
    """Return (Q, K) bool: a window in both directions, and the first token for everyone."""
    first = torch.arange(x.keys) == 0
    return (key_distances(x).abs() < WINDOW) | first | first[:, None]


def attend_sequence_first(states: Tensor, keep: Tensor | None = None) -> dict[str, Tensor]:
    """Attention over the first axis of (T, B, D), as nn.MultiheadAttention takes it without batch_first."""
    states = states.transpose(0, 1)
    scores = states @ states.mT / states.shape[-1] ** 0.5
    keep = torch.ones(states.shape[:2], dtype=torch.bool) if keep is None else keep
    return {"weights": masked_softmax(scores, keep[:, None, :]), "scores": scores}


# batch-axis: (B, T, D) handed to a module that takes (T, B, D)
def batch_axis_broken(x: Batch) -> dict[str, Tensor]:
    states = x.scores[:, 0]
    return attend_sequence_first(states)


def batch_axis_fixed(x: Batch) -> dict[str, Tensor]:
    states = x.scores[:, 0].transpose(0, 1)
    return attend_sequence_first(states, x.key_keep)


def causal_alibi_bias(x: Batch) -> Tensor:
    """The penalty of ALiBi for the first of eight heads, with the causal mask: (H, Q, K)."""
    slopes = 2.0 ** -torch.arange(1, x.scores.shape[1] + 1)
    return (-slopes[:, None, None] * key_distances(x)).masked_fill(~x.causal, -torch.inf)


# bias-wrong: a slope that grows where it should fall
def alibi_bias_sign_broken(x: Batch) -> dict[str, Tensor]:
    bias = (-causal_alibi_bias(x)).masked_fill(~x.causal, -torch.inf)
    return {"weights": (x.scores + bias).softmax(-1), "scores": x.scores, "mask": causal_alibi_bias(x)}


def alibi_bias_fixed(x: Batch) -> dict[str, Tensor]:
    return {"weights": (x.scores + causal_alibi_bias(x)).softmax(-1), "scores": x.scores, "mask": causal_alibi_bias(x)}


# bias-wrong: one path of the code takes the mask and not the bias
def alibi_bias_missing_broken(x: Batch) -> dict[str, Tensor]:
    return {"weights": masked_softmax(x.scores, x.causal), "scores": x.scores, "mask": causal_alibi_bias(x)}


# positions-wrong: positions by column, whatever is padding
def left_pad_positions_broken(x: Batch) -> dict[str, Tensor]:
    positions = torch.arange(x.keys).expand(x.key_keep.shape)
    return {"weights": masked_softmax(x.scores, x.allowed), "position_ids": positions}


def left_pad_positions_fixed(x: Batch) -> dict[str, Tensor]:
    positions = (x.key_keep.long().cumsum(-1) - 1).clamp(min=0)
    return {"weights": masked_softmax(x.scores, x.allowed), "position_ids": positions}


# scores-mismatch: scores that are scaled already, scaled once more in the call
def scaled_twice_broken(x: Batch) -> dict[str, Tensor]:
    width = 16
    return {"weights": masked_softmax(x.scores / width**0.5, x.allowed), "scores": x.scores}


def scaled_twice_fixed(x: Batch) -> dict[str, Tensor]:
    return {"weights": masked_softmax(x.scores, x.allowed), "scores": x.scores}
