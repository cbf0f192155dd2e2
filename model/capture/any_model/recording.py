"""Calls of attention, in the order in which they were made, and the traces that they become."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ...language import SOURCE_LANGUAGE, join_sentences, say, use_language
from ...trace import KINDS, AttentionTrace, Kind, TraceError
from .axes import CallSite, gather_axis_evidence, get_frame_identity
from .call import CapturedCall
from .kernel_weights import ComputedAttention
from .module_kinds import (
    REMARKS_SETTING,
    KindEvidence,
    LayerStore,
    Remark,
    explain_empty_capture,
    find_named_ancestor,
    infer_attention_kinds,
    is_causal_mask,
    make_left_out_remark,
    remarks_text,
)
from .provenance import Provenance, TensorNode
from .stacking import (
    BEAM_SEARCH_MESSAGE,
    CallRun,
    check_one_sentence,
    is_time_step,
    join_heads,
    join_time_steps,
    make_missing_sentence_error,
    make_repeat_remarks,
    replace_weights_by_gradients,
    select_last_runs,
    separate_texts,
    stack_map,
)

ATTENTION_NAME = re.compile(r"att(n|en[dt])|mha|\bsa\b", re.IGNORECASE)


@dataclass(eq=False)
class AnyModelRecording:
    """The calls of attention that one model made in one block."""

    model: nn.Module
    tensors: frozenset[str] = frozenset()
    kinds_by_path: Mapping[str, Kind | None] = field(default_factory=dict)
    """The paths of the modules that alone are recorded, and the kind that each was said to be; empty for all."""
    half: bool = False
    """Whether weights are stored in half precision."""
    graph: bool = False
    """Whether the weights of every call are kept as a part of the graph of gradients."""
    calls: list[CapturedCall] = field(default_factory=list)
    other_softmaxes: set[str] = field(default_factory=set)
    """Modules that made a softmax and were not taken for attention."""
    refused: dict[str, Remark] = field(default_factory=dict)
    """Modules whose attention is left out, as it cannot be laid out as queries x keys, and what was seen there."""
    refused_kernels: dict[str, Remark] = field(default_factory=dict)
    """Modules whose kernel was given what is not understood, and what that is."""
    no_scores: dict[str, Remark] = field(default_factory=dict)
    """Modules with a softmax that is not one of scores, and what it is of; they may have attention beside it."""

    def __post_init__(self) -> None:
        self.provenance = Provenance(self.model)
        self._store = LayerStore()
        self.modules = {id(module): (path, module) for path, module in self.model.named_modules()}
        self._run = -1
        self._forward = -1
        self._frames: tuple[object, object] = (None, None)
        """Tokens of the run's frame and of the outermost forward's in it."""
        self._module_call: object = None
        """The token of the frame of the module that was last recorded."""
        self._sources: dict[str, list[TensorNode]] = {}
        """The queries and keys of the last call of each module."""
        self._results: dict[str, list[TensorNode]] = {}
        """What that call has given."""

    def records(self, path: str) -> bool:
        """Whether calls at this path are recorded."""
        return not self.kinds_by_path or find_named_ancestor(path, self.kinds_by_path) is not None

    def is_attention(self, site: CallSite, axes: int) -> bool:
        """Whether a softmax of so many axes is one of attention: by the module's path or class, or as it is named."""
        if self.kinds_by_path:
            return self.records(site.path)
        inner = any(ATTENTION_NAME.search(path) for path, _ in site.module.named_modules())
        by_class = ATTENTION_NAME.search(type(site.module).__name__) and not (site.module is self.model and inner)
        return axes > 2 and bool(ATTENTION_NAME.search(site.path) or by_class)

    def refuse(self, path: str, reason: str, **values: Any) -> None:
        """Leave out all attention of a module, also what is recorded of it: a part would be a wrong picture.

        `reason` is one of :data:`~.modules.REASON_MESSAGES`.
        """
        self.refused[path] = reason, values

    def add(self, call: CapturedCall, site: CallSite | None, sources: Sequence[TensorNode], result: Tensor) -> None:
        """Note a call made at `site`, None where it was not made inside the model, of queries and keys, and its result.

        A run ends with its frame, and where a module comes again in another shape, or in another forward, unless that
        may be the next time step.
        """
        step = is_time_step(call)
        before = None if step or site is None or site.module is self.model else self.get_running_call(site)
        if before is not None and site is not None:
            self._merge_call_attentions(before, call, site)
            self._sources[call.path] += sources
            self._results[call.path].append(self.provenance.node(result))
            return
        run, forward = (get_frame_identity(site.run), get_frame_identity(site.forward)) if site else (None, None)
        if forward is None or forward is not self._frames[1]:
            self._forward += 1
        earlier = [one for one in self._list_run_calls() if one.path == call.path]
        again = any(one.shape != call.shape or (one.forward != self._forward and not step) for one in earlier)
        if site is not None and not step and earlier and earlier[0].forward == self._forward:
            call = replace(call, is_other_text=self._is_other_text(call, earlier[0], site, sources))
        self._sources[call.path] = [*sources]
        self._results[call.path] = [self.provenance.node(result)]
        if run is None or run is not self._frames[0] or again:
            self._run += 1
        self._frames = run, forward
        self._module_call = get_frame_identity(site.frame) if site else None
        beams = site is not None and site.in_beam_search and len(call.attention.weights) > 1
        given = site.calls[-1].inputs if site and site.calls else ()
        images = max((len(tensor) for tensor in given if tensor.dim() == 4 and tensor.is_floating_point()), default=0)
        windows = len(call.attention.weights) // images if images else 1
        call = replace(
            call,
            attention=self._copy_requested_tensors(call.attention, site),
            in_beam_search=beams,
            windows=max(windows, 1),
        )
        self.calls.append(replace(call, run=self._run, forward=self._forward))

    def get_running_call(self, site: CallSite) -> CapturedCall | None:
        """Return what the module at `site` has computed so far in the call that is running; None for its first."""
        last = self.calls[-1] if self.calls else None
        same = last is not None and last.path == site.path and site.frame is not None
        return last if same and get_frame_identity(site.frame) is self._module_call else None

    def replace_last(self, attention: ComputedAttention, result: Tensor) -> None:
        """Replace what was recorded last by what the same call of the module has made of it, and note what it gave."""
        self.calls[-1] = replace(self.calls[-1], attention=self._copy_requested_tensors(attention, None))
        self._results[self.calls[-1].path].append(self.provenance.node(result))

    def _is_other_text(
        self, call: CapturedCall, before: CapturedCall, site: CallSite, sources: Sequence[TensorNode]
    ) -> bool | None:
        """Whether a module that ran `before` in this forward now runs on another text; None where that is not known."""
        queries, keys = call.shape
        if call.shape != before.shape:  # more keys than queries are those of a cache
            return not queries < keys > before.shape[1]
        given, results = self._sources[call.path], self._results[call.path]
        return self.provenance.is_other_text(sources, given, results, site.calls[-1].inputs)

    def _merge_call_attentions(self, before: CapturedCall, call: CapturedCall, site: CallSite) -> None:
        """Join two attentions of one call of a module: the same one over other values, or more heads of it.

        Others, such as a few queries at a time, are refused.
        """
        first, second = before.attention, self._copy_requested_tensors(call.attention, None)
        one_kind = bool(before.is_cross) == bool(call.is_cross)
        same = one_kind and (before.shape, len(first.weights)) == (call.shape, len(second.weights))
        if not same or (len(second.weights), call.shape[0]) not in gather_axis_evidence(site).sides:
            one, other = (str(tuple(part.weights.shape)) for part in (first, second))
            self.refuse(call.path, "several", first=one, second=other)
        elif not torch.equal(first.weights, second.weights):
            self.calls[-1] = join_heads([before, replace(call, attention=second)])

    def _copy_requested_tensors(self, attention: ComputedAttention, site: CallSite | None) -> ComputedAttention:
        """Copy the weights and the tensors that were asked for: a model may write over what it has computed."""
        tensors = {name: tensor.clone() for name, tensor in attention.tensors.items() if name in self.tensors}
        weights = attention.weights.half() if self.half else attention.weights
        if site is not None:
            weights = self._store.store_copy(weights, self._module_counts_by_class[type(site.module)])
        return replace(attention, weights=weights, tensors=tensors)

    @cached_property
    def _module_counts_by_class(self) -> Counter[type[nn.Module]]:
        """How many modules of each class the model has: so many layers may come."""
        return Counter(type(module) for _, module in self.modules.values())

    def has_call_below(self, path: str) -> bool:
        """Whether this run has a call at or below the path already."""
        return any(find_named_ancestor(call.path, {path: None}) is not None for call in self._list_run_calls())

    def is_last_recorded_weights(self, weights: Tensor) -> bool:
        """Whether these very weights were recorded last: some modules pass on those of another."""
        last = self.calls[-1].attention.weights if self.calls else None
        return (
            last is not None
            and last.numel() == weights.numel()
            and torch.equal(last.flatten(), weights.to(last.dtype).flatten())
        )

    def end(self) -> None:
        """Forget what only matters while the model runs."""
        self._frames, self._module_call = (None, None), None
        self._sources.clear()
        self._results.clear()
        self.provenance.forget()

    def _list_run_calls(self) -> list[CapturedCall]:
        found = []
        for call in reversed(self.calls):
            if call.run != self._run:
                break
            found.append(call)
        return found

    def gradients(self, target: Tensor) -> AnyModelRecording:
        changed = copy(self)
        changed.tensors, changed.half = frozenset(), False
        changed.calls = replace_weights_by_gradients(
            [call for call in self.calls if call.path not in self.refused], target
        )
        return changed

    def batches(self) -> Collection[int]:
        return {call.attention.weights.shape[0] for call in self.calls}

    def check_one_sample(self) -> None:
        sizes, windows = set(self.batches()), {call.windows for call in self.calls} - {1}
        if windows and sizes != {1} and sizes <= {1, *windows}:
            raise TraceError(
                say(
                    "A trace is of one sentence, but its attention is within windows, {windows} of one image, each a "
                    "sample: use .sample(i).",
                    windows=str(sorted(windows)),
                )
            )
        check_one_sentence(sizes)

    @property
    def observer_effect(self) -> str:
        return remarks_text(self._remarks())

    def _remarks(self) -> list[Remark]:
        remarks: list[Remark] = [("fast-path", {})] if any(call.fast_path for call in self.calls) else []
        remarks += [_make_kernel_remark(self.calls)] if any(call.fused for call in self.calls) else []
        return [*(remarks or [("unchanged", {})]), *make_repeat_remarks(self.calls), *self._make_left_out_remarks()]

    def sample(self, index: int) -> AttentionTrace:
        recorded = [
            replace(call, attention=call.attention.unpadded_attention)
            for call in self.calls
            if call.path not in self.refused
        ]
        if not recorded:
            raise TraceError(self._empty_capture_text())
        calls = join_time_steps(separate_texts(recorded))
        of = self._infer_kinds_by_path(calls)
        by_kind: dict[Kind, list[CapturedCall]] = {}
        for call in calls:
            by_kind.setdefault(of[call.path], []).append(call)
        runs = {kind: select_last_runs(kind, by_kind) for kind in KINDS if kind in by_kind}
        maps: dict[str, Any] = {
            kind: stack_map(kind, runs[kind], own)
            for kind, own in _match_samples(runs, index).items()
            if own is not None
        }
        with use_language(SOURCE_LANGUAGE):  # in a file, whoever reads it; pages say the remarks
            effect = self.observer_effect
        device = self.calls[-1].attention.weights.device.type
        settings = {"observer_effect": effect, REMARKS_SETTING: self._remarks(), "device": device}
        return AttentionTrace(**maps, model=type(self.model).__name__, settings=settings)

    def _make_left_out_remarks(self) -> list[Remark]:
        """What was seen and not recorded."""
        reasons = {"not-laid-out": self.no_scores | self.refused, "not-understood": self.refused_kernels}
        return [make_left_out_remark(code, found) for code, found in reasons.items() if found]

    def _empty_capture_text(self) -> str:
        if missing := self._make_left_out_remarks():
            nothing = say("Nothing was captured of this {model}.", model=type(self.model).__name__)
            return join_sentences(nothing, remarks_text(missing))
        return explain_empty_capture(self.model, self.provenance.saw_weights, self.other_softmaxes)

    def _infer_kinds_by_path(self, calls: Sequence[CapturedCall]) -> Mapping[str, Kind]:
        by_path: dict[str, list[CapturedCall]] = {}
        for call in calls:
            by_path.setdefault(call.path, []).append(call)
        facts = [KindEvidence(path, _is_ever_cross(found), _is_always_causal(found)) for path, found in by_path.items()]
        guessed = infer_attention_kinds(facts, type(self.model).__name__)
        said = {path: self.kinds_by_path.get(find_named_ancestor(path, self.kinds_by_path) or "") for path in by_path}
        return {path: said[path] or guessed[path] for path in by_path}


def _match_samples(runs: Mapping[Kind, list[CallRun]], index: int) -> Mapping[Kind, int | None]:
    """The sample of each side that belongs to sample `index` of the larger one; None where there is none.

    Several texts may be written for one source: then each source has as many. Sides without cross-attention, as of
    images and texts, are paired by their numbers. Raises TraceError for a sample that there is not, and where rows
    change places, as in a beam search.
    """
    if any(call.in_beam_search for found in runs.values() for run in found for call in run):
        raise TraceError(say(BEAM_SEARCH_MESSAGE))
    sizes = {kind: len(found[-1][0].attention.weights) for kind, found in runs.items()}
    most = max(sizes.values())
    if not 0 <= index < most:
        raise make_missing_sentence_error(index, most)

    def match_side(size: int) -> int | None:
        if "cross" in runs and most % size == 0:
            return index // (most // size)
        return index if index < size else None

    return {kind: match_side(size) for kind, size in sizes.items()}


def _make_kernel_remark(calls: Sequence[CapturedCall]) -> Remark:
    """How far the weights shown explain the outputs of the fused kernels that ran."""
    if any(call.graph for call in calls):
        return "explicit", {}
    differences = [call.kernel_difference.item() for call in calls if call.kernel_difference is not None]
    return ("fused", {"difference": max(differences)}) if differences else ("fused-dropout", {})


def _is_ever_cross(calls: Sequence[CapturedCall]) -> bool | None:
    found = {call.is_cross for call in calls}
    return next((answer for answer in (True, False) if answer in found), None)


def _is_always_causal(calls: Sequence[CapturedCall]) -> bool | None:
    found = {is_causal_mask(call.attention.allowed[..., : call.shape[1]]) for call in calls} - {None}
    return None if not found else False not in found
