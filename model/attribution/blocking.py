"""Pieces taken away from a running model: the intervention by which every other method is judged.

A piece that is taken away is blocked as a key in every mask of every layer (after the masks that other interventions
edit), and its token embedding is zero; its position stays. The second part matters for the last input alone, whose own
residual stream the prediction is read from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ..interventions.apply import editing_masks
from ..network.autoregressive import AutoregressiveModel
from ..network.hooks import hook_outputs
from ..trace import Kind
from .target import Target

ROWS = 256  # of one forward pass at most


@torch.no_grad()
def values_without(model: AutoregressiveModel, target: Target, source_keep: Tensor, prefix_keep: Tensor) -> Tensor:
    """Return the target's value with pieces taken away, a row for each pattern.

    source_keep (B, S) and prefix_keep (B, P) bool, False = taken away -> (B,) float64.
    """
    device, pieces = next(model.parameters()).device, source_keep.shape[1]
    patterns, row_of = torch.unique(torch.cat([source_keep, prefix_keep], 1).to(device), dim=0, return_inverse=True)
    rows = model.rows_at_once(ROWS, len(target.input_ids))
    values = [_values(model, target, part[:, :pieces], part[:, pieces:]) for part in patterns.split(rows)]
    return torch.cat(values)[row_of].cpu()


@torch.no_grad()
def leave_one_out(model: AutoregressiveModel, target: Target) -> tuple[Tensor, Tensor, Tensor]:
    """Return how much the value falls without each piece: value (), source (S,), prefix (P,), float64."""
    source, prefix = len(target.source_ids), len(target.prefix_tokens)
    removed = torch.eye(source + prefix, dtype=torch.bool, device="cpu")
    keep = ~torch.cat([torch.zeros_like(removed[:1]), removed])
    values = values_without(model, target, keep[:, :source], keep[:, source:])
    falls = values[0] - values[1:]
    return values[0], falls[:source], falls[source:]


def _values(model: AutoregressiveModel, target: Target, source_keep: Tensor, prefix_keep: Tensor) -> Tensor:
    rows, device = len(source_keep), source_keep.device
    source, inputs = (torch.tensor([ids], device=device) for ids in (target.source_ids, target.input_ids))
    patterns, row_of = torch.unique(source_keep, dim=0, return_inverse=True)  # a sentence is encoded once
    with blocked(model, "encoder", patterns):
        memory = model.encode(source.expand(len(patterns), -1))[row_of]
    own = torch.ones(rows, len(target.input_ids) - prefix_keep.shape[1], dtype=torch.bool, device=device)
    input_keep = torch.cat([prefix_keep, own], 1)

    def zero(tokens: Tensor) -> Tensor:
        return tokens * input_keep[..., None]

    zeroed = hook_outputs({model.token_embedding("target"): zero})
    with blocked(model, "decoder", input_keep), blocked(model, "cross", source_keep), zeroed:
        states = model.decode(inputs.expand(rows, -1), memory, model.source_mask(source))
    return target.value(model.generator(states[:, target.position :]))


@contextmanager
def blocked(model: AutoregressiveModel, kind: Kind, keep: Tensor) -> Iterator[None]:
    """Block the keys where keep (B, K) is False in all layers of one kind of attention."""
    with editing_masks(model, kind, lambda mask, first: mask & keep[:, None, None, :]):
        yield
