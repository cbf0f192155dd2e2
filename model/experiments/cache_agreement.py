"""Three ways to the attention of a translation, which must be one: cached, in one forward pass, as in training.

They are run in float64. In float32 the ways round differently, and how far that moves a weight depends on the scores:
`preset-torch_like` has scores of nearly 600 and up to 2e-5 between the ways, the other released models 2e-6. In float64
they agree to the last digit of a weight that is kept as float32, so that a fault of the cache or a mask stands out.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..decoding.constraints import Constraints
from ..decoding.steps import greedy
from ..interventions.apply import intervening
from ..interventions.changes import Change
from ..network.autoregressive import shift_right
from ..network.config import PAD_ID
from ..network.transformer import Transformer
from ..trace import AttentionMap, Kind
from ..translate import Translator

PADDING = 3
"""Columns of padding that the batch of the third way has after either sentence."""
WAYS = ("cached", "full", "teacher-forced")
TOLERANCE = 1e-6
"""Two weights computed in float64 and kept as float32 may round to neighbours, which lie 6e-8 apart at most."""


@dataclass(frozen=True)
class Agreement:
    """The largest absolute difference of any attention weight between each two of the three ways."""

    differences: Mapping[tuple[str, str], Mapping[Kind, float]]

    @property
    def largest(self) -> float:
        return max(value for one in self.differences.values() for value in one.values())

    @property
    def holds(self) -> bool:
        return self.largest <= TOLERANCE


def agreement_of(
    translator: Translator, source_ids: Sequence[int], target_ids: Sequence[int], changes: Sequence[Change] = ()
) -> Agreement:
    """Return the agreement of a translation, given as the ids of its source and of what was written."""
    return three_ways(translator.model, torch.tensor([source_ids], device=translator.device), target_ids, changes)


@torch.inference_mode()
def three_ways(
    model: Transformer, source: Tensor, target_ids: Sequence[int], changes: Sequence[Change] = ()
) -> Agreement:
    """Run source (1, S) with the T target ids in each of :data:`WAYS` and compare all attention weights.

    `changes` are made to the model in all of them. Raises InterventionError for those that it cannot make.

    ``cached``: one token at a time with a key/value cache, as decoding does. ``full``: one forward pass over the
    finished translation. ``teacher-forced``: as in training, in a batch beside another sentence and with padding.
    """
    exact = _in_float64(model)
    source = source.to(next(exact.parameters()).device)
    target = shift_right(torch.tensor([target_ids], device=source.device))
    with intervening(exact, changes):
        runs = (_cached(exact, source, target_ids), _full(exact, source, target), _batch(exact, source, target))
    maps = dict(zip(WAYS, runs, strict=True))
    pairs = combinations(WAYS, 2)
    return Agreement({pair: _differences(maps[pair[0]], maps[pair[1]]) for pair in pairs})


def _in_float64(model: Transformer) -> Transformer:
    """A copy without hooks: those that the model has now may be other threads', and may change while it is copied."""
    without_hooks = {id(module._forward_hooks): type(module._forward_hooks)() for module in model.modules()}
    made = copy.deepcopy(model, without_hooks)
    return made.to("cpu" if next(model.parameters()).device.type == "mps" else None, torch.float64)  # MPS has none


def _cached(model: Transformer, source: Tensor, target_ids: Sequence[int]) -> dict[Kind, AttentionMap]:
    with capture_attention(model) as recording:
        list(greedy(model, source, len(target_ids), candidates=1, constraints=Constraints(tuple(target_ids))))
    return recording.trace.maps


def _full(model: Transformer, source: Tensor, target: Tensor) -> dict[Kind, AttentionMap]:
    with capture_attention(model) as recording:
        model(source, target)
    return recording.trace.maps


def _batch(model: Transformer, source: Tensor, target: Tensor) -> dict[Kind, AttentionMap]:
    """The sentence, padded, is row 1 of a batch of two; row 0 is made of its own tokens in reverse, and longer."""
    room = min(PADDING, model.config.max_length - max(source.shape[1], target.shape[1]))
    with capture_attention(model) as recording:
        model(_beside_another(source, room), _beside_another(target, room))
    return recording.sample(1).maps


def _beside_another(ids: Tensor, room: int) -> Tensor:
    """ids (1, N) -> (2, N + room)"""
    other = torch.cat([ids.flip(1), ids[:, :1].expand(-1, room)], 1)
    return torch.cat([other, torch.nn.functional.pad(ids, (0, room), value=PAD_ID)])


def _differences(one: Mapping[Kind, AttentionMap], other: Mapping[Kind, AttentionMap]) -> dict[Kind, float]:
    """Over the rows and columns both have: padding makes the third way's maps larger."""
    return {kind: _largest(one[kind].weights, other[kind].weights) for kind in one}


def _largest(one: np.ndarray, other: np.ndarray) -> float:
    queries, keys = min(one.shape[2], other.shape[2]), min(one.shape[3], other.shape[3])
    return float(np.abs(one[:, :, :queries, :keys] - other[:, :, :queries, :keys]).max())
