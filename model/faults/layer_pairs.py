"""Faults beside the mask of one layer: patterns over layers, the axis of the batch, biases and positions.

As in :mod:`.mask_pairs`, functions come in pairs, broken and fixed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .attention import masked_softmax
from .batch import Batch
from .mask_pairs import WINDOW

LAYERS = 4
"""Layers of a small model, of which every other one is local."""


def age(x: Batch) -> Tensor:
    """How far each key lies before its query: (Q, K)."""
    return torch.arange(x.queries)[:, None] - torch.arange(x.keys)


def layer_masks(x: Batch, local: int) -> list[Tensor]:
    """A causal mask for each layer, with a window in every other one, from layer `local` on."""
    windowed = x.causal & (age(x) < WINDOW)
    return [windowed if layer % 2 == local else x.causal for layer in range(LAYERS)]


# wrong-layer-pattern: layers counted from 1 in the configuration and from 0 in the code
def layers_exchanged_broken(x: Batch) -> Tensor:
    return torch.stack([masked_softmax(x.scores, mask) for mask in layer_masks(x, local=1)], 1)


def layers_exchanged_fixed(x: Batch) -> Tensor:
    return torch.stack([masked_softmax(x.scores, mask) for mask in layer_masks(x, local=0)], 1)


def local_and_global(x: Batch) -> Tensor:
    """Return (1, L, 1, Q, K) bool: a window in the first layer and every other one."""
    return torch.stack(layer_masks(x, local=0))[None, :, None]


# wrong-layer-pattern: the first token should see all and be seen by all
def globals_lost_broken(x: Batch) -> Tensor:
    return masked_softmax(x.scores, age(x).abs() < WINDOW)


def globals_lost_fixed(x: Batch) -> Tensor:
    return masked_softmax(x.scores, window_and_globals(x))


def window_and_globals(x: Batch) -> Tensor:
    """Return (Q, K) bool: a window in both directions, and the first token for everyone."""
    first = torch.arange(x.keys) == 0
    return (age(x).abs() < WINDOW) | first | first[:, None]


def sequence_first(states: Tensor, keep: Tensor | None = None) -> dict[str, Tensor]:
    """Attention over the first axis of (T, B, D), as nn.MultiheadAttention takes it without batch_first."""
    states = states.transpose(0, 1)
    scores = states @ states.mT / states.shape[-1] ** 0.5
    keep = torch.ones(states.shape[:2], dtype=torch.bool) if keep is None else keep
    return {"weights": masked_softmax(scores, keep[:, None, :]), "scores": scores}


# batch-axis: (B, T, D) handed to a module that takes (T, B, D)
def batch_axis_broken(x: Batch) -> dict[str, Tensor]:
    states = x.scores[:, 0]
    return sequence_first(states)


def batch_axis_fixed(x: Batch) -> dict[str, Tensor]:
    states = x.scores[:, 0].transpose(0, 1)
    return sequence_first(states, x.key_keep)


def alibi(x: Batch) -> Tensor:
    """The penalty of ALiBi for the first of eight heads, with the causal mask: (H, Q, K)."""
    slopes = 2.0 ** -torch.arange(1, x.scores.shape[1] + 1)
    return (-slopes[:, None, None] * age(x)).masked_fill(~x.causal, -torch.inf)


# bias-wrong: a slope that grows where it should fall
def bias_sign_broken(x: Batch) -> dict[str, Tensor]:
    bias = (-alibi(x)).masked_fill(~x.causal, -torch.inf)
    return {"weights": (x.scores + bias).softmax(-1), "scores": x.scores, "mask": alibi(x)}


def bias_fixed(x: Batch) -> dict[str, Tensor]:
    return {"weights": (x.scores + alibi(x)).softmax(-1), "scores": x.scores, "mask": alibi(x)}


# bias-wrong: one path of the code takes the mask and not the bias
def bias_missing_broken(x: Batch) -> dict[str, Tensor]:
    return {"weights": masked_softmax(x.scores, x.causal), "scores": x.scores, "mask": alibi(x)}


# positions-wrong: positions by column, whatever is padding
def positions_broken(x: Batch) -> dict[str, Tensor]:
    positions = torch.arange(x.keys).expand(x.key_keep.shape)
    return {"weights": masked_softmax(x.scores, x.allowed), "position_ids": positions}


def positions_fixed(x: Batch) -> dict[str, Tensor]:
    positions = (x.key_keep.long().cumsum(-1) - 1).clamp(min=0)
    return {"weights": masked_softmax(x.scores, x.allowed), "position_ids": positions}
