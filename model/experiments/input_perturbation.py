"""A model under another mask: which outputs move with which input, and what the behaviour tests say."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..behaviour.checks import examine
from ..behaviour.outcomes import Outcome
from ..behaviour.own_model import from_own_model
from ..network.autoregressive import shift_right
from ..network.config import PAD_ID
from ..network.hooks import hook_outputs
from ..trace import Kind
from ..translate import Translator
from .mask_trial import MaskTrial, TrialResult, use_mask

BATCH = 32
"""Inputs changed at a time."""


@dataclass(frozen=True, eq=False)
class Perturbation:
    """How far the T outputs, next-token distributions, move when one input at a time is another token."""

    change: np.ndarray
    """(T, S + T) total variation distance of the distributions, 0 where not even a logit moved; of source and fed
    target tokens."""
    allowed: np.ndarray
    """(T, S + T) bool, True = this output may depend on this input."""


@torch.inference_mode()
def perturb(translator: Translator, result: TrialResult, trial: MaskTrial | None) -> Perturbation:
    """Change every token of the sentence (padding too) and of its translation, one at a time, under a mask.

    It is the embedding that is exchanged, so that padding stays padding to the mask. The same batch is run unchanged
    beside it: rows of equal batches are equal to the last bit, so that what does not depend does not move at all.
    """
    model, source, ids = translator.model, result.source, result.own.ids
    fed = shift_right(torch.tensor([ids], device=source.device))
    inputs = torch.arange(source.shape[1] + fed.shape[1], device=source.device)
    found = []
    for places in inputs.split(BATCH):
        many = source.expand(len(places), -1), fed.expand(len(places), -1)
        with use_mask(translator, trial, result.real):
            before = model(*many)
            with _exchanged(translator, places, source.shape[1]):
                after = model(*many)
        moved = (before != after).any(-1)
        distance = (before.softmax(-1) - after.softmax(-1)).abs().sum(-1) / 2
        found.append(torch.where(moved, distance.clamp_min(1e-9), 0.0))
    outputs, sources = fed.shape[1], source.shape[1]
    of_source = np.arange(sources)[None].repeat(outputs, 0) < result.real
    return Perturbation(torch.cat(found).T.cpu().numpy(), np.concatenate([of_source, np.tri(outputs, dtype=bool)], 1))


def _exchanged(translator: Translator, places: Tensor, sources: int) -> AbstractContextManager[None]:
    """Row b of the batch gets another token at places[b]: of the source, or from `sources` on of the target."""
    model = translator.model

    def exchange(embedded: Tensor, mine: Tensor, at: Tensor) -> Tensor:
        changed = embedded.clone()
        rows = torch.arange(len(places), device=places.device)[mine]
        changed[rows, at[mine]] = embedded[rows, at[mine]].roll(1, -1)
        return changed

    def in_source(embedded: Tensor) -> Tensor:
        return exchange(embedded, places < sources, places)

    def in_target(embedded: Tensor) -> Tensor:
        return exchange(embedded, places >= sources, places - sources)

    return hook_outputs({model.source_embedding.tokens: in_source, model.target_embedding.tokens: in_target})


def run_checks(translator: Translator, result: TrialResult, kind: Kind, trial: MaskTrial | None) -> tuple[Outcome, ...]:
    """Return the outcomes of the behaviour tests on the part of the model in which `kind` stands.

    They run on a batch of the sentence and, padded, its first half.
    """
    real, ids = result.source[0, : result.real], result.own.ids
    fed = shift_right(torch.tensor(ids, device=real.device))
    lengths = (len(real), max(1, len(real) // 2))

    def under() -> AbstractContextManager[None]:
        return use_mask(translator, trial, *lengths)

    subject = from_own_model(translator.model, _with_half(real), _with_half(fed), under, (kind,))[kind]
    return examine(subject)


def _with_half(ids: Tensor) -> Tensor:
    """(T,) -> (2, T): the same, and its first half padded."""
    half = ids.clone()
    half[max(1, len(ids) // 2) :] = PAD_ID
    return torch.stack([ids, half])
