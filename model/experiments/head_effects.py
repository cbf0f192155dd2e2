"""What each head does for a translation: the change of its log-probabilities when that head alone is switched off.

All heads are rows of a few forward passes by teacher forcing. Michel et al. (2019), "Are Sixteen Heads Really Better
than One?", section 3.2, remove one head at a time in the same way and measure BLEU; here it is the log-probability of
one translation, token by token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..attribution.target import Target
from ..capture.sites import AttentionSite, attention_sites
from ..network.autoregressive import AutoregressiveModel, decoder_inputs
from ..network.hooks import OutputHook, hook_outputs
from ..trace import Head, Kind

TOKENS_A_PASS = 2400
"""Source and target tokens of all rows of one forward pass: more makes no row faster, and none shows how far it is."""


@dataclass(frozen=True, eq=False)
class HeadEffects:
    """How switching off each head changes the log-probability of every token of a translation, in nats.

    Below 0: the token is less probable without the head, so the head speaks for it. Of :func:`word_effects` it is the
    value of one word, and T is 1.
    """

    changes: Mapping[Kind, np.ndarray]
    """(L, H, T) for each kind of attention."""

    def total(self, kind: Kind, token: int | None = None) -> np.ndarray:
        """Return the change of the whole translation, or of one token of it from 0 -> (L, H)."""
        changes = self.changes[kind]
        return changes.sum(-1) if token is None else changes[..., token]

    def strongest(self, token: int | None = None) -> list[tuple[Head, float]]:
        """All heads and their changes, the largest in either direction first."""
        found = [
            ((kind, *place), float(value))
            for kind in self.changes
            for place, value in np.ndenumerate(self.total(kind, token))
        ]
        return sorted(found, key=lambda one: -abs(one[1]))


@dataclass(frozen=True, eq=False)
class WordWithoutHeads:
    """How far the value of one word falls without each head."""

    target: Target
    effects: HeadEffects

    def as_json(self) -> dict[str, Any]:
        """Return {"word", "against", "method", "heads"}: kind, layer and head (from 0) and fall, the largest first."""
        heads = [
            {"kind": kind, "layer": layer, "head": head, "fall": -change}
            for (kind, layer, head), change in self.effects.strongest()
        ]
        return {"word": self.target.word, "against": self.target.against, "method": "heads-off", "heads": heads}


def word_without_heads(model: AutoregressiveModel, target: Target) -> WordWithoutHeads:
    """Switch off every head of the model, one at a time, and read the word again."""
    passes = plan(model, len(target.source_ids), len(target.input_ids))
    return WordWithoutHeads(target, joined(passes, [word_effects(model, target, heads) for heads in passes]))


def head_effects(model: AutoregressiveModel, source_ids: Sequence[int], target_ids: Sequence[int]) -> HeadEffects:
    """Switch off every head of the model, one at a time, and read the T target ids of the source again."""
    passes = plan(model, len(source_ids), len(target_ids))
    return joined(passes, [effects_of(model, source_ids, target_ids, heads) for heads in passes])


def plan(model: nn.Module, source_length: int, target_length: int) -> tuple[tuple[Head, ...], ...]:
    """The heads of each forward pass. Those of the encoder go by themselves, since the others share its output."""
    sites = attention_sites(model)
    rows = max(1, TOKENS_A_PASS // (source_length + target_length) - 1)
    encoder, decoder = (
        [head for site in sites if (site.kind == "encoder") is inside for head in _heads(site)]
        for inside in (True, False)
    )
    return tuple(tuple(part) for heads in (encoder, decoder) for part in _parts(heads, rows))


def joined(passes: Sequence[Sequence[Head]], changes: Sequence[np.ndarray]) -> HeadEffects:
    """Put together what :func:`effects_of` gave for each pass."""
    heads = [head for part in passes for head in part]
    found = dict(zip(heads, np.concatenate(changes), strict=True))
    stacked: dict[Kind, np.ndarray] = {}
    for kind in dict.fromkeys(kind for kind, _, _ in heads):
        stacked[kind] = _stacked({head[1:]: row for head, row in found.items() if head[0] == kind})
    return HeadEffects(stacked)


@torch.inference_mode()
def effects_of(
    model: AutoregressiveModel, source_ids: Sequence[int], target_ids: Sequence[int], heads: Sequence[Head]
) -> np.ndarray:
    """The changes for some heads, in one forward pass: (heads, T).

    Row 0 of the batch is the model with all heads, so that both sides of each difference are rounded alike. Changes
    that are open in this thread take part. Raises ValueError for heads of the encoder beside others.
    """
    log_probs = model.generator(_states(model, source_ids, decoder_inputs(target_ids, model.start_id), heads))
    log_probs = log_probs.log_softmax(-1)
    tokens = torch.tensor(target_ids, device=log_probs.device).expand(len(log_probs), -1)
    found = log_probs.gather(-1, tokens[..., None])[..., 0].double().cpu().numpy()
    return found[1:] - found[0]


@torch.inference_mode()
def word_effects(model: AutoregressiveModel, target: Target, heads: Sequence[Head]) -> np.ndarray:
    """The changes of the value of one word, log p(X) or logit X - logit Y, in one forward pass: (heads, 1).

    All else as in :func:`effects_of`.
    """
    states = _states(model, target.source_ids, target.input_ids, heads)[:, target.position :]
    found = target.value(model.generator(states)).cpu().numpy()
    return (found[1:] - found[0])[:, None]


def _states(
    model: AutoregressiveModel, source_ids: Sequence[int], input_ids: Sequence[int], heads: Sequence[Head]
) -> Tensor:
    """The decoder's states: in row 0 of the model with all heads, in row i + 1 without head i."""
    in_encoder = {kind == "encoder" for kind, _, _ in heads}
    if len(in_encoder) != 1:
        raise ValueError("One pass switches off heads of the encoder or of the decoder, not of both.")
    rows, device = len(heads) + 1, next(model.parameters()).device
    source, inputs = (torch.tensor([list(ids)], device=device) for ids in (source_ids, input_ids))
    with hook_outputs(_silences(model, heads)):
        memory = model.encode(source.expand(rows, -1) if in_encoder == {True} else source)
        memory = memory.expand(rows, *memory.shape[1:])
        return model.decode(inputs.expand(rows, -1), memory, model.source_mask(source))


def _silences(model: nn.Module, heads: Sequence[Head]) -> dict[nn.Module, OutputHook]:
    """Hooks that set the context of head i to zero in row i + 1 of the batch, and leave row 0 as it is."""
    hooks: dict[nn.Module, OutputHook] = {}
    for site in attention_sites(model):
        places = enumerate(heads, 1)
        off = [(row, head) for row, (kind, layer, head) in places if (kind, layer) == (site.kind, site.layer)]
        if off:
            hooks[site.module.get_submodule("context")] = _silence(*zip(*off, strict=True))
    return hooks


def _silence(rows: tuple[int, ...], heads: tuple[int, ...]) -> OutputHook:
    def silenced(context: Tensor) -> Tensor:
        changed = context.clone()
        changed[list(rows), list(heads)] = 0.0
        return changed

    return silenced


def _heads(site: AttentionSite) -> Iterator[Head]:
    count = site.module.heads
    assert isinstance(count, int)
    return ((site.kind, site.layer, head) for head in range(count))


def _parts(heads: Sequence[Head], rows: int) -> Iterator[Sequence[Head]]:
    """As few parts as have at most so many heads each, of like size."""
    count = -(-len(heads) // rows)
    return (heads[at * len(heads) // count : (at + 1) * len(heads) // count] for at in range(count))


def _stacked(rows: Mapping[tuple[int, int], np.ndarray]) -> np.ndarray:
    """(layer, head) -> (T,) as one array (L, H, T)."""
    layers, heads = (max(place) + 1 for place in zip(*rows, strict=True))
    return np.array([[rows[layer, head] for head in range(heads)] for layer in range(layers)])
