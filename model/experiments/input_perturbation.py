"""A model under another mask: which outputs move with which input, and what the behaviour tests say."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..behaviour.checks import examine
from ..behaviour.network_parts import Padded, part_of
from ..behaviour.outcomes import Outcome
from ..live.live_model import LiveModel
from ..network.attention import attention_path
from ..network.autoregressive import Side, shift_right
from ..network.hooks import hook_outputs
from ..trace import Kind
from .mask_trial import MaskTrial, TrialResult, use_mask

BATCH = 32
"""Inputs changed at a time."""


@dataclass(frozen=True, eq=False)
class Perturbation:
    """How far the T outputs, next-token distributions, move when one input at a time is another token."""

    change: np.ndarray
    """(T, S + F) total variation distance of the distributions, 0 where not even a logit moved; of source and fed
    target tokens: F is T, or T - 1 of a decoder alone, whose prompt stands in place of a start."""
    allowed: np.ndarray
    """(T, S + F) bool, True = this output may depend on this input."""


@torch.inference_mode()
def perturb(model: LiveModel, result: TrialResult, trial: MaskTrial | None) -> Perturbation:
    """Change every token of the sentence (padding too) and of what is fed behind it, one at a time, under a mask.

    It is the embedding that is exchanged, so that padding stays padding to the mask. The same batch is run unchanged
    beside it: rows of equal batches are equal to the last bit, so that what does not depend does not move at all.
    """
    network, source, ids = model.model, result.source, result.own.ids
    fed = shift_right(torch.tensor([ids], device=source.device), network.start_id)
    outputs, sources = len(ids), source.shape[1]
    inputs = torch.arange(sources + len(result.fed), device=source.device)
    first = sources if model.can("translate") else 0  # the input that stands first in what the decoder embeds
    found = []
    for places in inputs.split(BATCH):
        many, decoded = source.expand(len(places), -1), fed.expand(len(places), -1)
        with attention_path("explicit"), use_mask(model, trial, result.real):
            before = network(many, decoded)
            with _exchanged(model, "source", places, 0):
                memory = network.encode(many)
            with _exchanged(model, "target", places, first):
                after = network.generator(network.decode(decoded, memory, network.source_mask(many)))
        moved = (before != after).any(-1)
        distance = (before.softmax(-1) - after.softmax(-1)).abs().sum(-1) / 2
        found.append(torch.where(moved, distance.clamp_min(1e-9), 0.0))
    if first:
        of_source = np.arange(sources)[None].repeat(outputs, 0) < result.real
        allowed = np.concatenate([of_source, np.tri(outputs, dtype=bool)], 1)
    else:
        allowed = np.tri(outputs, len(inputs), sources - 1, dtype=bool)
    return Perturbation(torch.cat(found).T.cpu().numpy(), allowed)


def _exchanged(model: LiveModel, side: Side, places: Tensor, first: int) -> AbstractContextManager[None]:
    """Row b of the batch gets another token at places[b], counted from `first`, if this side has that place."""

    def exchange(embedded: Tensor) -> Tensor:
        mine = (places >= first) & (places < first + embedded.shape[1])
        rows, at = torch.arange(len(places), device=places.device)[mine], (places - first)[mine]
        changed, own = embedded.clone(), embedded[rows, at]
        changed[rows, at] = own.roll(1, -1).masked_fill((own == 0).all(-1, keepdim=True), 1.0)  # a start can be zero
        return changed

    return hook_outputs({model.model.token_embedding(side): exchange})


def run_checks(model: LiveModel, result: TrialResult, kind: Kind, trial: MaskTrial | None) -> tuple[Outcome, ...]:
    """Return the outcomes of the behaviour tests on the part of the model in which `kind` stands.

    They run on a batch of the sentence and, padded, its first half.
    """
    network = model.model
    source = result.source[0, : result.real]
    target = shift_right(torch.tensor(result.own.ids, device=source.device), network.start_id)
    if not model.can("translate"):  # its first token stands for the source, and the rest is fed behind it
        source, target = source[:1], torch.cat([source, target[1:]])
    lengths = (len(source), max(1, len(source) // 2))

    def under() -> AbstractContextManager[None]:
        return use_mask(model, trial, *lengths)

    padded = _with_half(network.pad_id, source), _with_half(network.pad_id, target)
    return examine(part_of(network, kind, *padded, under))


def _with_half(pad: int | None, ids: Tensor) -> Padded:
    """(T,) -> two samples: the same, and its first half padded."""
    keep = torch.ones(2, len(ids), dtype=torch.bool, device=ids.device)
    keep[1, max(1, len(ids) // 2) :] = False
    return Padded(torch.where(keep, ids, 0 if pad is None else pad), keep)
