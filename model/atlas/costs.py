"""What switching off each head costs, for a batch: every head of a layer is so many rows of one forward pass."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..capture.sites import AttentionSite
from ..network.autoregressive import AutoregressiveModel
from ..network.config import PAD_ID
from ..network.hooks import OutputHook, hook_outputs
from ..network.masks import padding_mask
from ..network.transformer import Transformer
from ..trace import KINDS, Kind
from .forward import MEMORY, Batch, Run, decoder_mask, target_log_probs

TOKENS_A_PASS = 2400
"""Source and target tokens of all rows of one forward pass; more makes no row faster."""


@torch.inference_mode()
def log_prob_changes(model: AutoregressiveModel, found: Run) -> dict[Kind, Tensor]:
    """Return how each target token's log-probability changes with one head off: (B, L, H, T) for each map, in nats.

    The batched form of :func:`model.experiments.head_effects.head_effects`. A pass begins at the layer of its heads:
    what stands before is as it was; of a model that is not of this project, at the encoder or at the decoder.
    """
    return {kind: torch.stack([_of_site(model, found, site) for site in found.of_kind(kind)], 1) for kind in KINDS}


def _of_site(model: AutoregressiveModel, found: Run, site: AttentionSite) -> Tensor:
    """(B, H, T)"""
    heads = site.module.heads
    assert isinstance(heads, int)
    parts = []
    for rows in _slices(found.batch, heads):
        batch = found.batch.of(rows)
        with hook_outputs({site.module.get_submodule("context"): _silence(heads)}):
            if isinstance(model, Transformer):
                states = _states(model, found, site, rows, batch, heads)
            else:
                states = _whole_states(model, found, site, rows, batch, heads)
        real = batch.real("decoder")[0].repeat(heads, 1)
        log_probs = target_log_probs(model, states, batch.target_out.repeat(heads, 1), real)
        parts.append(log_probs.unflatten(0, (heads, -1)).transpose(0, 1) - found.log_probs[rows][:, None])
    return torch.cat(parts)


def _states(model: Transformer, found: Run, site: AttentionSite, rows: slice, batch: Batch, heads: int) -> Tensor:
    """The decoder's output for every head's copy of the rows, one head after the other: (H B, T, D)"""
    source_mask = padding_mask(batch.source, PAD_ID).repeat(heads, 1, 1, 1)
    side = "source" if site.kind == "encoder" else "target"
    stack = model.encoder if site.kind == "encoder" else model.decoder
    path = f"{'encoder' if site.kind == 'encoder' else 'decoder'}.layers.{site.layer - 1}.after_feed_forward.stream"
    x = found.tensors[path if site.layer else f"{side}_embedding.stream"][rows].repeat(heads, 1, 1)
    if site.kind == "encoder":
        for layer in stack.layers[site.layer :]:
            x = layer(x, source_mask)
        memory = stack.output(stack.final_norm(x))
        return model.decode(batch.target_in.repeat(heads, 1), memory, source_mask)
    memory = found.tensors[MEMORY][rows].repeat(heads, 1, 1)
    mask = decoder_mask(batch)
    mask = None if mask is None else mask.repeat(heads, 1, 1, 1)
    for layer in stack.layers[site.layer :]:
        x = layer(x, memory, mask, source_mask, None)
    return stack.output(stack.final_norm(x))


def _whole_states(
    model: AutoregressiveModel, found: Run, site: AttentionSite, rows: slice, batch: Batch, heads: int
) -> Tensor:
    """The same of any model, from the beginning of a stack on."""
    mask = model.source_mask(batch.source).repeat(heads, 1, 1, 1)
    if site.kind == "encoder":
        memory = model.encode(batch.source.repeat(heads, 1), mask)
    else:
        memory = found.tensors[MEMORY][rows].repeat(heads, 1, 1)
    return model.decode(batch.target_in.repeat(heads, 1), memory, mask)


def _silence(heads: int) -> OutputHook:
    """Set the context of head h to zero in the h-th copy of the rows."""

    def silenced(context: Tensor) -> Tensor:
        changed = context.unflatten(0, (heads, -1)).clone()
        each = torch.arange(heads, device=context.device)
        changed[each, :, each] = 0.0
        return changed.flatten(0, 1)

    return silenced


def _slices(batch: Batch, heads: int) -> Iterator[slice]:
    """The rows of the batch in slices of which one pass can hold a copy for each head."""
    width = batch.source.shape[1] + batch.target_in.shape[1]
    rows = max(1, TOKENS_A_PASS // (heads * width))
    return (slice(at, at + rows) for at in range(0, len(batch.sentences), rows))
