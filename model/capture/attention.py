"""Capture the attention weights of every layer and head while a model runs.

    with capture_attention(model) as capture:
        model(source, target)
    capture.trace.cross.weights        # (L, H, T, S)

Nothing in the model knows of it, no output changes, and two threads that capture on one shared model get their own
traces.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ..language import join_items, join_sentences, say
from ..masks.attention_call_origin import CAPTURED_CALLS, CAPTURED_EXTRA_KEYS
from ..masks.softmax import count_extra_keys, detect_real_keys
from ..network.hooks import HookPoint, OutputHook, hook_outputs
from ..text.words import TokenNames, name_trace_rows_columns
from ..torch_internals import run_eagerly, unwrap_compiled
from ..trace import KINDS, TENSOR_NAMES, AttentionMap, AttentionTrace, Kind, TraceError
from .any_model.module_kinds import read_kind_from_path
from .any_model.stacking import (
    KIND_LABELS,
    MISSING_KEY_VALUES,
    check_one_sentence,
    compute_attention_weight_gradients,
    make_missing_sentence_error,
)
from .any_model.watcher import watch


@contextmanager
def capture_attention(
    model: nn.Module,
    tensors: Collection[str] = (),
    *,
    modules: Collection[str] | Mapping[str, Kind] = (),
    tokens: TokenNames | None = None,
    half: bool = False,
    detach: bool = True,
) -> Iterator[Capture]:
    """Record the attention of whatever `model` runs inside the block, in this thread.

    Args:
        model: one of this project, or any other: what it does by ``F.scaled_dot_product_attention``, flex_attention,
            nn.MultiheadAttention, or a softmax in a module called attention is recorded.
        tensors: more to keep: any of q, k, v, scores, masked_scores. Of another model only those that can be seen.
        modules: paths or patterns (``blocks.*.mixer``) of the modules that are attention, where names do not say
            so; nothing else is recorded then. A mapping also says what they are: ``{"blocks.*.mixer": "decoder"}``.
        tokens: names of the rows and columns: a list of strings, one list for each sample of a batch, or either as
            ``{"source": ..., "target": ...}``.
        half: store weights in half precision, in half the memory, until a trace is made of them: each is then off by
            at most 2.5e-4.
        detach: False to keep the graph of gradients, for :meth:`Capture.gradients`; where a fused kernel would
            run, weights times values are computed in its place.

    The model is as it was when the block ends, also by an exception. What is compiled runs uncompiled inside the
    block. A module that is scripted, exported or runs in another thread cannot be observed. Raises TraceError for
    names that do not exist.
    """
    if unknown := set(tensors) - set(TENSOR_NAMES):
        raise TraceError(
            say(
                "Cannot capture {unknown}; there are {known}.",
                unknown=join_items(sorted(unknown)),
                known=join_items(TENSOR_NAMES),
            )
        )
    model = unwrap_compiled(model)
    sites = find_attention_sites(model)
    own = bool(sites) and not modules
    block: AbstractContextManager[Recording]
    block = (
        _record_hook_points(model, sites, tensors, half, not detach)
        if own
        else watch(model, tensors, modules, half, not detach)
    )
    with run_eagerly(), block as recording:
        yield Capture(recording, tokens)


@contextmanager
def _record_hook_points(
    model: nn.Module, sites: list[AttentionSite], tensors: Collection[str], half: bool, graph: bool
) -> Iterator[HookRecording]:
    """Record the attention of a model with hook points."""
    recording = HookRecording(sites, type(model).__name__)
    functions: dict[nn.Module, OutputHook] = {}
    for site in sites:
        for point in ("weights", *tensors):
            make_hook = (
                _make_half_precision_recording_hook if half and point == "weights" else _make_output_recording_hook
            )
            hook = make_hook(recording.calls[site.path, point])
            if graph and point == "weights":
                hook = _make_graph_hook(hook, recording.graph[site.path])
            functions[getattr(site.module, point)] = hook
        functions[site.module.get_submodule("mask")] = _make_mask_hook(recording, site.path)
    with hook_outputs(functions):
        yield recording


def _make_output_recording_hook(calls: list[Tensor]) -> OutputHook:
    def keep_output(output: Tensor) -> None:
        calls.append(output.detach())

    return keep_output


def _make_graph_hook(keep: OutputHook, graph: list[Tensor]) -> OutputHook:
    """Return `keep` with one step more: the tensor itself, a part of the graph of gradients, is kept in `graph`."""

    def keep_graph(output: Tensor) -> None:
        graph.append(output)
        keep(output)

    return keep_graph


def _make_half_precision_recording_hook(calls: list[Tensor]) -> OutputHook:
    def keep_output(output: Tensor) -> None:
        calls.append(output.detach().half())

    return keep_output


def _make_mask_hook(recording: HookRecording, path: str) -> OutputHook:
    """Keep a mask by the number of its call, that of the weights to come: not every call has a mask."""

    def keep_output(output: Tensor) -> None:
        recording.masks[path, len(recording.calls[path, "weights"])] = output.detach()

    return keep_output


# What ``capture_attention`` gives.


class Recording(Protocol):
    """The tensors of attention that ran inside a block."""

    def batches(self) -> Collection[int]:
        """Return the sizes of the batches that ran."""

    def sample(self, index: int) -> AttentionTrace:
        """Return the trace of sentence `index` of the batch, rows and columns numbered. TraceError when nothing ran."""

    def gradients(self, target: Tensor) -> Recording:
        """Return the same recording with the gradient of `target` where each weight was. TraceError without a graph."""

    @property
    def observer_effect(self) -> str:
        """Whether observing changed which kernels ran, and so the outputs, in a sentence."""

    def check_one_sample(self) -> None:
        """Raise TraceError where more than one sample ran: batches, or windows of one."""


@dataclass(eq=False)
class Capture:
    """A recording, filled while a model runs inside ``capture_attention``, and the traces that it becomes."""

    recording: Recording
    tokens: TokenNames | None = None
    """Names of the rows and columns; may be set at any time, and hold for the traces built after that."""

    def batches(self) -> Collection[int]:
        """Return the sizes of the batches that ran."""
        return self.recording.batches()

    def sample(self, index: int) -> AttentionTrace:
        """Return the trace of sentence `index` of the batch, from 0. TraceError when nothing ran, or not so many."""
        trace = self.recording.sample(index)
        return trace if self.tokens is None else name_trace_rows_columns(trace, self.tokens, index)

    @property
    def observer_effect(self) -> str:
        """Whether observing changed which kernels ran, and so the outputs, in a sentence."""
        return self.recording.observer_effect

    @property
    def trace(self) -> AttentionTrace:
        """The trace of a batch of one sentence. TraceError for a larger batch or when nothing ran."""
        self.recording.check_one_sample()
        return self.sample(0)

    def gradients(self, target: Tensor, index: int = 0) -> AttentionTrace:
        """Return a trace of sentence `index` that holds d target / d weight where each weight was.

        `target` is one number that was computed inside a block with ``detach=False``, such as a logit or a loss; times
        the weights it is attention x gradient (Chefer et al. 2021, equation 5, before the mean over heads). Weights
        that it does not depend on have zeros. Raises TraceError where there is no graph, or no gradient is known.
        """
        return Capture(self.recording.gradients(target), self.tokens).sample(index)

    def _make_trace_with_tokens(self, index: int) -> AttentionTrace:
        """Return the trace of one sample, with its tokens where they are given for it."""
        try:
            return self.sample(index)
        except TraceError:
            return self.recording.sample(index)

    def arrays(self, kind: Kind) -> dict[str, Any]:
        """Return all samples of one kind, as :func:`attenscope.diagnose` takes them.

        Weights (B, L, H, Q, K), mask (B, 1, 1, Q, K), or of the weights' shape where layers or heads have masks of
        their own, and ``captured_keep`` (B, K), True = a real token, where the names of the tokens or the encoder's
        mask tell the padding; a ``key_keep`` that is given goes before it. ``captured_calls`` (L,) says where in the
        code each layer called attention, as JSON, ``captured_extra_keys`` how many of the last keys are no tokens, such
        as a sink. Where the only attention is one that hides nothing, which a capture calls ``encoder``, it is that of
        ``decoder`` too: a decoder may lack its mask. Raises TraceError where nothing of this kind was captured.
        """
        traces = [self._make_trace_with_tokens(index) for index in range(max(self.batches(), default=0))]
        if kind == "decoder" and not any({"decoder", "cross"} & trace.maps.keys() for trace in traces):
            kind = "encoder"  # Self-attention that hides nothing is taken for that of an encoder.
        captured = dict.fromkeys(name for trace in traces for name in trace.maps)
        if kind not in captured:
            none = say("There is no {kind} in what was captured.", kind=say(KIND_LABELS[kind]))
            there = join_items(say(KIND_LABELS[name]) for name in captured)
            counts = say(
                "There is: {kinds}. Self-attention that hides the future counts as the decoder's.", kinds=there
            )
            raise TraceError(join_sentences(none, counts if captured else ""))
        traces = [trace for trace in traces if kind in trace.maps]
        maps = [trace.maps[kind] for trace in traces]
        names = [name for name in ("scores", "masked_scores") if all(name in one.tensors for one in maps)]
        tensors: dict[str, Any] = {name: np.stack([one.tensors[name] for one in maps]) for name in names}
        same = all(one.layer_masks is None for one in maps)
        masks = [one.mask[None, None] if same else np.broadcast_to(one.masks, one.weights.shape) for one in maps]
        encoders = [trace.encoder.mask if kind == "cross" and trace.encoder is not None else None for trace in traces]
        extra = count_extra_keys(len(maps[0].query_tokens), maps[0].key_tokens)
        keys = maps[0].weights.shape[-1] - extra
        keeps = [detect_real_keys(one.key_tokens[:keys], encoder) for one, encoder in zip(maps, encoders, strict=True)]
        if any(keep is not None for keep in keeps):
            whole = np.ones(keys, bool)
            tensors["captured_keep"] = np.stack([whole if keep is None else keep for keep in keeps])
        if extra:
            tensors[CAPTURED_EXTRA_KEYS] = np.array(extra)
        if len(calls := maps[0].layer_calls) == maps[0].layers:
            tensors[CAPTURED_CALLS] = np.array(calls)
        return {"weights": np.stack([one.weights for one in maps]), "mask": np.stack(masks), **tensors}


# The recording of a model of this project.


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
        found = compute_attention_weight_gradients(
            target, [tensor for tensors in self.graph.values() for tensor in tensors]
        )
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
        """Raise TraceError unless all that ran last was of one batch, and the batch has this sentence."""
        last: set[int] = set()
        for kind in KINDS:
            for site in [one for one in self.sites if one.kind == kind][:1]:
                calls = self.calls[site.path, "weights"]
                last |= {tensor.shape[0] for tensor in calls[-self._count_last_run_calls(kind, site) :]}
        if len(last) > 1:
            raise TraceError(
                say(
                    "Batches of {sizes} ran together, as in a beam search, whose rows change places at every step: "
                    "run the model once more on what was found, with the whole translation given.",
                    sizes=str(sorted(last)),
                )
            )
        if last and not 0 <= index < max(last):
            raise make_missing_sentence_error(index, max(last))

    def _map(self, kind: Kind, sites: list[AttentionSite], sample: int) -> AttentionMap:
        calls = self.calls[sites[0].path, "weights"][-self._count_last_run_calls(kind, sites[0]) :]
        queries, keys = sum(tensor.shape[2] for tensor in calls), calls[-1].shape[3]
        kept = [name for name in TENSOR_NAMES if self.calls[sites[0].path, name]]
        rows = {name: keys if name in ("k", "v") else queries for name in kept}
        masks = [self._mask(site, sample, calls) for site in sites]
        return AttentionMap(
            kind,
            weights=self._stack_layers(sites, "weights", sample, queries),
            query_tokens=tuple(str(number + 1) for number in range(queries)),
            key_tokens=tuple(str(number + 1) for number in range(keys)),
            mask=np.logical_or.reduce(masks),
            layer_masks=None if all(np.array_equal(masks[0], one) for one in masks) else np.stack(masks)[:, None],
            tensors={name: self._stack_layers(sites, name, sample, rows[name]) for name in kept},
        )

    def _count_last_run_calls(self, kind: Kind, site: AttentionSite) -> int:
        """How many of the last calls belong together: one, or all the steps of a cached decoding."""
        if kind == "encoder":
            return 1
        own = [other for other in self.sites if other.kind == "decoder"]
        steps = self.calls[own[0].path, "weights"] if own else []
        for count, weights in enumerate(reversed(steps), start=1):
            if weights.shape[2] == weights.shape[3]:  # as many keys as queries: nothing was cached before this call
                return count
        return 1

    def _stack_layers(self, sites: list[AttentionSite], point: str, sample: int, rows: int) -> np.ndarray:
        """All layers' tensors of the last run, the rows of its calls below each other: one copy to the CPU."""
        runs = [[tensor[sample] for tensor in self._select_last_calls(site, point, rows)] for site in sites]
        last = runs[0][-1]
        if all(tensor.shape[-1] == last.shape[-1] for tensor in runs[0]):  # every kind but a cached self-attention
            return torch.stack([torch.cat(run, 1) for run in runs]).float().cpu().numpy()
        joined = last.new_full((len(runs), last.shape[0], rows, last.shape[-1]), MISSING_KEY_VALUES.get(point, 0.0))
        for layer, run in enumerate(runs):
            start = 0
            for tensor in run:
                joined[layer, :, start : start + tensor.shape[1], : tensor.shape[2]] = tensor
                start += tensor.shape[1]
        return joined.float().cpu().numpy()

    def _select_last_calls(self, site: AttentionSite, point: str, rows: int) -> list[Tensor]:
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


# Where a model of this project has attention, by its hook points.


@dataclass(frozen=True)
class AttentionSite:
    """One attention module of a model, and what it is by its path."""

    path: str
    module: nn.Module
    kind: Kind
    layer: int


def find_attention_sites(model: nn.Module) -> list[AttentionSite]:
    """Return the modules whose ``weights`` is a hook point, in the model's order.

    Kind and layer are read off the path, unless the module says them.
    """
    sites = []
    for point, module in model.named_modules():
        path, _, name = point.rpartition(".")
        if name == "weights" and isinstance(module, nn.Identity):
            numbers = re.findall(r"\.(\d+)\.", path)
            layer = int(numbers[-1]) if numbers else 0
            found = model.get_submodule(path)
            if isinstance(found, AttentionPoints):
                sites.append(AttentionSite(path, found, found.kind, found.layer))
            else:
                sites.append(AttentionSite(path, found, read_kind_from_path(path), layer))
    crossed = {_get_layer_path(site) for site in sites if site.kind == "cross"}
    # A decoder by itself has no path that says so, but its layers have cross-attention too.
    return [
        replace(one, kind="decoder") if one.kind == "encoder" and _get_layer_path(one) in crossed else one
        for one in sites
    ]


def _get_layer_path(site: AttentionSite) -> str:
    return site.path.rpartition(".")[0]


class AttentionPoints(nn.Module):
    """The hook points of :class:`attenscope.network.attention.MultiHeadAttention`, for attention of another library.

    They hold no weights, and without hooks they change nothing.
    """

    def __init__(self, kind: Kind, layer: int, heads: int) -> None:
        super().__init__()
        self.kind, self.layer, self.heads = kind, layer, heads
        self.q, self.k, self.v = HookPoint(), HookPoint(), HookPoint()
        self.mask, self.scores, self.masked_scores = HookPoint(), HookPoint(), HookPoint()
        self.weights, self.context = HookPoint(), HookPoint()
        self.output_projection: Tensor | None = None
        """(D, H d), as a linear layer holds it; None where it is not known."""
        self.has_sink = False
        """Whether a learned sink has a part of every row's weight."""
        self.computes_all_rows_at_once = False
        """Whether the whole map is computed in one piece, so that none of a long text is."""
