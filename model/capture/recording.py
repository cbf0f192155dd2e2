"""The tensors that the hooks of one capture have read from a model of this project, and the traces they become."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..language.say import say
from ..trace import KINDS, TENSORS, AttentionMap, AttentionTrace, Kind, TraceError
from .foreign.gradients import gradients_of
from .foreign.stacking import NEVER_COMPUTED, check_one_sentence, no_sentence
from .sites import AttentionSite


@dataclass
class HookRecording:
    """The tensors of all calls of a model in one block; they become a trace when the block has ended."""

    sites: list[AttentionSite]
    model: str
    calls: dict[tuple[str, str], list[Tensor]] = field(default_factory=lambda: defaultdict(list))
    """(path, hook point) -> the tensors of all calls, in order."""
    masks: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    """(path, number of the call) -> its mask, of the calls that had one."""
    graph: dict[str, list[Tensor]] = field(default_factory=lambda: defaultdict(list))
    """Path -> the weights of all calls as a part of the graph of gradients; of a capture that keeps it."""

    def gradients(self, target: Tensor) -> HookRecording:
        paths = [path for path, found in self.graph.items() for _ in found]
        found = gradients_of(target, [tensor for tensors in self.graph.values() for tensor in tensors])
        changed = HookRecording(self.sites, self.model, masks=self.masks)
        for path, gradient in zip(paths, found, strict=True):
            changed.calls[path, "weights"].append(gradient)
        return changed

    def batches(self) -> Collection[int]:
        return {tensor.shape[0] for (_, point), found in self.calls.items() if point == "weights" for tensor in found}

    @property
    def observer_effect(self) -> str:
        return say("The model computed these weights step by step, as it does whenever it is observed.")

    def check_one_sample(self) -> None:
        check_one_sentence(set(self.batches()))

    def sample(self, index: int) -> AttentionTrace:
        self._check(index)
        maps: dict[Kind, AttentionMap] = {}
        for kind in KINDS:
            sites = [site for site in self.sites if site.kind == kind and self.calls[site.path, "weights"]]
            if sites:
                maps[kind] = self._map(kind, sites, index)
        if not maps:
            raise TraceError(say("Nothing was captured: run the model inside the block."))
        return AttentionTrace(maps.get("encoder"), maps.get("decoder"), maps.get("cross"), model=self.model)

    def _check(self, index: int) -> None:
        """TraceError unless all that ran last was of one batch, and it has this sentence."""
        last: set[int] = set()
        for kind in KINDS:
            for site in [one for one in self.sites if one.kind == kind][:1]:
                calls = self.calls[site.path, "weights"]
                last |= {tensor.shape[0] for tensor in calls[-self._calls_of_last_run(kind, site) :]}
        if len(last) > 1:
            raise TraceError(
                say(
                    "Batches of {sizes} ran together, as in a beam search, whose rows change places at every step: "
                    "run the model once more on what was found, with the whole translation given.",
                    sizes=str(sorted(last)),
                )
            )
        if last and not 0 <= index < max(last):
            raise no_sentence(index, max(last))

    def _map(self, kind: Kind, sites: list[AttentionSite], sample: int) -> AttentionMap:
        calls = self.calls[sites[0].path, "weights"][-self._calls_of_last_run(kind, sites[0]) :]
        queries, keys = sum(tensor.shape[2] for tensor in calls), calls[-1].shape[3]
        kept = [name for name in TENSORS if self.calls[sites[0].path, name]]
        rows = {name: keys if name in ("k", "v") else queries for name in kept}
        masks = [self._mask(site, sample, calls) for site in sites]
        return AttentionMap(
            kind,
            weights=self._stacked(sites, "weights", sample, queries),
            query_tokens=tuple(str(number + 1) for number in range(queries)),
            key_tokens=tuple(str(number + 1) for number in range(keys)),
            mask=np.logical_or.reduce(masks),
            layer_masks=None if all(np.array_equal(masks[0], one) for one in masks) else np.stack(masks)[:, None],
            tensors={name: self._stacked(sites, name, sample, rows[name]) for name in kept},
        )

    def _calls_of_last_run(self, kind: Kind, site: AttentionSite) -> int:
        """How many of the last calls belong together: one, or all the steps of a cached decoding."""
        if kind == "encoder":
            return 1
        own = [other for other in self.sites if other.kind == "decoder"]
        steps = self.calls[own[0].path, "weights"] if own else []
        for count, weights in enumerate(reversed(steps), start=1):
            if weights.shape[2] == weights.shape[3]:  # as many keys as queries: nothing was cached before this call
                return count
        return 1

    def _stacked(self, sites: list[AttentionSite], point: str, sample: int, rows: int) -> np.ndarray:
        """All layers' tensors of the last run, the rows of its calls below each other: one copy to the CPU."""
        runs = [[tensor[sample] for tensor in self._last(site, point, rows)] for site in sites]
        last = runs[0][-1]
        if all(tensor.shape[-1] == last.shape[-1] for tensor in runs[0]):  # every kind but a cached self-attention
            return torch.stack([torch.cat(run, 1) for run in runs]).float().cpu().numpy()
        joined = last.new_full((len(runs), last.shape[0], rows, last.shape[-1]), NEVER_COMPUTED.get(point, 0.0))
        for layer, run in enumerate(runs):
            start = 0
            for tensor in run:
                joined[layer, :, start : start + tensor.shape[1], : tensor.shape[2]] = tensor
                start += tensor.shape[1]
        return joined.float().cpu().numpy()

    def _last(self, site: AttentionSite, point: str, rows: int) -> list[Tensor]:
        """The last calls that make up so many rows; cached keys and values pass their hook point only once."""
        found: list[Tensor] = []
        for tensor in reversed(self.calls[site.path, point]):
            found.insert(0, tensor)
            rows -= tensor.shape[2]
            if rows <= 0:
                break
        return found

    def _mask(self, site: AttentionSite, sample: int, calls: list[Tensor]) -> np.ndarray:
        """(Q, K): what any head may see; a key that did not exist yet at a step was not allowed at it."""
        first = len(self.calls[site.path, "weights"]) - len(calls)
        mask = np.zeros((sum(weights.shape[2] for weights in calls), calls[-1].shape[3]), dtype=bool)
        start = 0
        for number, weights in enumerate(calls, start=first):
            rows, keys = weights.shape[2:]
            given = self.masks.get((site.path, number))
            allowed = True if given is None else given.broadcast_to(weights.shape)[sample].any(0).cpu().numpy()
            mask[start : start + rows, :keys] = allowed
            start += rows
        return mask
