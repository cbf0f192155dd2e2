"""Attention weights of every layer and head, read through forward hooks while a model runs.

    with capture_attention(model) as capture:
        model(source, target)
    capture.trace.cross.weights        # (L, H, T, S)

Nothing in the model knows of it, no output changes, and two threads capturing on one shared model get their own traces.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from ..network.hooks import OutputHook, hooked
from ..text.token_names import Tokens, name_tokens
from ..trace import KINDS, TENSORS, AttentionMap, AttentionTrace, Kind, TraceError
from .base import Capture
from .foreign import watch
from .foreign.kinds import CROSS
from .foreign.stacking import NEVER_COMPUTED


@dataclass(frozen=True)
class AttentionSite:
    """One attention module found in a model, and what it is by its path."""

    path: str
    module: nn.Module
    kind: Kind
    layer: int


def attention_sites(model: nn.Module) -> list[AttentionSite]:
    """The modules whose ``weights`` is a hook point, in the model's order; kind and layer are read off the path."""
    sites = []
    for point, found in model.named_modules():
        path, _, name = point.rpartition(".")
        if name == "weights" and isinstance(found, nn.Identity):
            numbers = re.findall(r"\.(\d+)\.", path)
            layer = int(numbers[-1]) if numbers else 0
            sites.append(AttentionSite(path, model.get_submodule(path), kind_of(path), layer))
    crossed = {_layer_path(site) for site in sites if site.kind == "cross"}
    # A decoder by itself has no path that says so, but its layers have cross-attention too.
    return [
        replace(one, kind="decoder") if one.kind == "encoder" and _layer_path(one) in crossed else one for one in sites
    ]


def _layer_path(site: AttentionSite) -> str:
    return site.path.rpartition(".")[0]


def kind_of(path: str) -> Kind:
    """``encoder.layers.0.self_attention`` -> encoder, ``…decoder…cross_attention`` -> cross, and so on."""
    if CROSS.search(path):
        return "cross"
    return "decoder" if "decoder" in path else "encoder"


@dataclass
class Recording(Capture):
    """What the hooks of one capture have seen; becomes a trace when the block has ended."""

    sites: list[AttentionSite]
    model: str
    calls: dict[tuple[str, str], list[Tensor]] = field(default_factory=lambda: defaultdict(list))
    """(path, hook point) -> the tensors of all calls, in order."""
    masks: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    """(path, number of the call) -> its mask, of the calls that had one."""
    tokens: Tokens | None = None
    looking = "These are the weights that the model computed step by step, as it does while somebody looks."

    def batches(self) -> Collection[int]:
        return {tensor.shape[0] for (_, point), found in self.calls.items() if point == "weights" for tensor in found}

    def sample(self, index: int) -> AttentionTrace:
        self._check(index)
        maps: dict[Kind, AttentionMap] = {}
        for kind in KINDS:
            sites = [site for site in self.sites if site.kind == kind and self.calls[site.path, "weights"]]
            if sites:
                maps[kind] = self._map(kind, sites, index)
        if not maps:
            raise TraceError("Nothing was captured: run the model inside the block.")
        trace = AttentionTrace(maps.get("encoder"), maps.get("decoder"), maps.get("cross"), model=self.model)
        return trace if self.tokens is None else name_tokens(trace, self.tokens, index)

    def _check(self, index: int) -> None:
        """TraceError unless all that ran last was of one batch, and it has this sentence."""
        last: set[int] = set()
        for kind in KINDS:
            for site in [one for one in self.sites if one.kind == kind][:1]:
                calls = self.calls[site.path, "weights"]
                last |= {tensor.shape[0] for tensor in calls[-self._calls_of_last_run(kind, site) :]}
        if len(last) > 1:
            raise TraceError(
                f"Batches of {sorted(last)} ran together, as in a beam search, whose rows change places at every step: "
                "run the model once more on what was found, with the whole translation given."
            )
        if last and not 0 <= index < max(last):
            raise TraceError(f"There is no sentence {index} in a batch of {max(last)}; they count from 0.")

    def _map(self, kind: Kind, sites: list[AttentionSite], sample: int) -> AttentionMap:
        calls = self.calls[sites[0].path, "weights"][-self._calls_of_last_run(kind, sites[0]) :]
        queries, keys = sum(tensor.shape[2] for tensor in calls), calls[-1].shape[3]
        kept = [name for name in TENSORS if self.calls[sites[0].path, name]]
        rows = {name: keys if name in ("k", "v") else queries for name in kept}
        return AttentionMap(
            kind,
            weights=self._stacked(sites, "weights", sample, queries),
            query_tokens=tuple(str(number + 1) for number in range(queries)),
            key_tokens=tuple(str(number + 1) for number in range(keys)),
            mask=np.logical_or.reduce([self._mask(site, sample, calls) for site in sites]),
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


@contextmanager
def capture_attention(
    model: nn.Module,
    tensors: Collection[str] = (),
    *,
    modules: Collection[str] | Mapping[str, Kind] = (),
    tokens: Tokens | None = None,
) -> Iterator[Capture]:
    """Record the attention of whatever `model` runs inside the block, in this thread.

    Args:
        model: one of this project, or any other: what it does by ``F.scaled_dot_product_attention``,
            nn.MultiheadAttention, or a softmax in a module called attention is recorded.
        tensors: more to keep: any of q, k, v, scores, masked_scores. Of a foreign model only those that can be seen.
        modules: paths or patterns (``blocks.*.mixer``) of the modules that are attention, where they cannot be told;
            nothing else is recorded then. A mapping also says what they are: ``{"blocks.*.mixer": "decoder"}``.
        tokens: names of the rows and columns: a list of strings, one list for each sample of a batch, or either as
            ``{"source": ..., "target": ...}``.

    The model is as it was when the block ends, also by an exception. A module that is compiled, scripted or runs in
    another thread cannot be looked into. Raises TraceError for names that do not exist.
    """
    if unknown := set(tensors) - set(TENSORS):
        raise TraceError(f"Cannot capture {', '.join(sorted(unknown))}; there are {', '.join(TENSORS)}.")
    sites = attention_sites(model)
    own = bool(sites) and not modules
    with _recorded(model, sites, tensors, tokens) if own else watch(model, tensors, modules, tokens) as recording:
        yield recording


@contextmanager
def _recorded(
    model: nn.Module, sites: list[AttentionSite], tensors: Collection[str], tokens: Tokens | None
) -> Iterator[Recording]:
    """A model with hook points."""
    recording = Recording(sites, type(model).__name__, tokens=tokens)
    functions: dict[nn.Module, OutputHook] = {}
    for site in sites:
        for point in ("weights", *tensors):
            functions[getattr(site.module, point)] = _keeper(recording.calls[site.path, point])
        functions[site.module.get_submodule("mask")] = _mask_keeper(recording, site.path)
    with hooked(functions):
        yield recording


def _keeper(calls: list[Tensor]) -> OutputHook:
    def keep(output: Tensor) -> None:
        calls.append(output.detach())

    return keep


def _mask_keeper(recording: Recording, path: str) -> OutputHook:
    """A call need not have a mask, so a mask is kept by the number of its call: that of the weights to come."""

    def keep(output: Tensor) -> None:
        recording.masks[path, len(recording.calls[path, "weights"])] = output.detach()

    return keep
