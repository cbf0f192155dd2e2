"""Watch the softmax and attention calls of one thread, and edit heads in what they compute."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ...network.hooks import declare_observer, hook_outputs
from ...torch_internals import (
    check_frame_reading_supported,
    copy_without_override_check,
    is_flex_attention,
    parse_flex_attention_call,
)
from ...trace import Kind
from .axes import (
    AxisLayout,
    CallSite,
    find_call_site,
    gather_axis_evidence,
    infer_layout,
    is_torch_leaf_module,
    list_added_key_names,
)
from .call import CapturedCall, find_call_origin, make_call_origin, read_passed_mask
from .kernel_weights import (
    ComputedAttention,
    UnknownArgumentError,
    apply_layout,
    compute_flex_attention,
    compute_fused_attention,
    compute_varlen_attention,
    describe_flex_arguments,
    describe_varlen_arguments,
    list_flex_mask_readings,
    read_block_attention,
    read_softmax_attention,
    read_varlen_arguments,
    run_explicit_attention,
    unfold_heads,
)
from .module_kinds import find_attention_weights_in_output, is_feature_attention, match_modules
from .recording import AnyModelRecording

_FUSED_ARGUMENTS = tuple(inspect.signature(run_explicit_attention).parameters)
"""The arguments of F.scaled_dot_product_attention, in order."""
SOFTMAX_FUNCTIONS = (F.softmax, torch.softmax, Tensor.softmax, torch.special.softmax)


class AttentionWatcher(TorchFunctionMode):
    """A mode that lets every call through as it is and notes those that are attention. Modes are a thread's own."""

    def __init__(self, recording: AnyModelRecording) -> None:
        super().__init__()
        self.recording = recording
        self._same_tensor = False
        """Whether nn.MultiheadAttention was given one tensor as queries and keys; False outside of it."""
        self._multi_head_arguments: Mapping[str, Any] = {}
        """What nn.MultiheadAttention was given, by name; empty outside of it."""

    @cached_property
    def _multi_head(self) -> Callable[..., Any]:
        return copy_without_override_check(F.multi_head_attention_forward)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is F.multi_head_attention_forward:
            return self._run_multi_head(args, given)
        weights = None
        if is_flex_attention(func):
            return self._run_and_record_flex(func, args, given)
        if func is F.scaled_dot_product_attention and self.recording.graph:
            output, weights = run_explicit_attention(*args, **given)
        else:
            output = func(*args, **given)
        self.recording.provenance.note(func, args, given, output)
        if func is F.scaled_dot_product_attention:
            self._record_fused(args, given, output, weights)
        elif func in SOFTMAX_FUNCTIONS:
            self._record_softmax(args, given, output)
        elif arguments := read_varlen_arguments(func, args, given):
            self._record_varlen(func, arguments, output)
        return output

    def _record_varlen(self, func: Callable[..., Any], arguments: dict[str, Any], output: Any) -> None:
        """Record a kernel of packed sequences, or which of its arguments is not understood."""
        site = find_call_site(self.recording.modules)
        if site is None or not self.recording.records(site.path):
            return
        name = str(func)
        try:
            with pause_head_edits():
                attention = compute_varlen_attention(arguments)
        except UnknownArgumentError as error:
            self.recording.refused_kernels[site.path] = error.reason, {**error.values, "kernel": name}
            return
        first = output[0] if isinstance(output, tuple | list) else output
        difference = _compute_kernel_difference(attention.weights, attention.tensors["v"], first.transpose(0, 1))
        words = describe_varlen_arguments(arguments)
        text = ", ".join(f"{one}={two}" for one, two in words.items())
        origin = make_call_origin(site, name, words).copy_with_mask_readings([("arguments", {"arguments": text})])
        call = CapturedCall(site.path, attention, None, True, site.fast_path, None, difference, origin=origin)
        sources = [self.recording.provenance.node(one) for one in arguments.values() if isinstance(one, Tensor)]
        self.recording.add(call, site, sources, first)

    def _run_and_record_flex(self, func: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Run flex_attention and record its attention; its weights are no part of a graph of gradients."""
        output, *more = func(*args, **given)
        site = find_call_site(self.recording.modules)
        if site is None or not self.recording.records(site.path):
            return (output, *more)
        called = parse_flex_attention_call(args)
        query, key = called.query, called.key
        layout = self._find_layout((*query.shape[:-1], key.shape[-2]), -1, site, fused=True)
        if layout is None:
            return (output, *more)
        with pause_head_edits():
            attention = compute_flex_attention(called)
        self.recording.provenance.note(func, args, given, output)
        difference = _compute_kernel_difference(attention.weights, attention.tensors["v"], output)
        is_cross = self._is_cross_attention_call(self.recording.provenance.is_cross(query, key, site.calls))
        arguments = describe_flex_arguments(called)
        origin = make_call_origin(site, "flex_attention", arguments).copy_with_mask_readings(
            list_flex_mask_readings(arguments, attention)
        )
        call = CapturedCall(
            site.path, apply_layout(attention, layout), is_cross, True, site.fast_path, None, difference
        )
        reordered = self.recording.provenance.is_key_batch_reordered(key)
        sources = [self.recording.provenance.node(one) for one in (query, key)]
        self.recording.add(replace(call, reordered=reordered, origin=origin), site, sources, output)
        return (output, *more)

    def _run_multi_head(self, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        bound = inspect.signature(F.multi_head_attention_forward).bind(*args, **given).arguments
        self._same_tensor, self._multi_head_arguments = _is_same_tensor(bound["query"], bound["key"]), bound
        try:
            with self:
                return self._multi_head(*args, **given)
        finally:
            self._same_tensor, self._multi_head_arguments = False, {}

    def _add_call_origin_and_mask(
        self, call: CapturedCall, site: CallSite, function: Callable[..., Any], given: Mapping[str, Any] | None
    ) -> CapturedCall:
        """The call with where it was made, and the mask that was passed to it."""
        if self._multi_head_arguments:
            function, given = F.multi_head_attention_forward, self._multi_head_arguments
        passed = read_passed_mask(site, function, given, call.attention)
        cells = passed.allowed is not None or not passed.readings
        origin = find_call_origin(site, function, given).copy_with_mask_readings(passed.readings, cells)
        return replace(call, attention=replace(call.attention, passed=passed.allowed), origin=origin)

    def _record_fused(self, args: tuple[Any, ...], given: dict[str, Any], output: Tensor, graph: Tensor | None) -> None:
        site = find_call_site(self.recording.modules)
        if site is None or not self.recording.records(site.path):
            return
        query, key = (args[place] if len(args) > place else given[name] for place, name in enumerate(("query", "key")))
        layout = self._find_layout((*query.shape[:-1], key.shape[-2]), -1, site, fused=True)
        if layout is None:
            return
        with pause_head_edits():
            attention = unfold_heads(compute_fused_attention(*args, **given, layout=layout), site.module)
        weights = apply_head_edits(attention.weights, attention.allowed)
        dropout = args[4] if len(args) > 4 else given.get("dropout_p", 0.0)
        difference = None if dropout else _compute_kernel_difference(weights, attention.tensors["v"], layout(output))
        attention = replace(attention, weights=weights, extra_keys=list_added_key_names(site.module))
        is_cross = self.recording.provenance.is_cross(query, key, site.calls)
        in_graph = None if graph is None else (graph, layout)
        call = CapturedCall(
            site.path, attention, self._is_cross_attention_call(is_cross), True, site.fast_path, in_graph, difference
        )
        call = replace(call, reordered=self.recording.provenance.is_key_batch_reordered(key))
        arguments = dict(zip(_FUSED_ARGUMENTS, args, strict=False)) | given
        call = self._add_call_origin_and_mask(call, site, F.scaled_dot_product_attention, arguments)
        self.recording.add(call, site, [self.recording.provenance.node(one) for one in (query, key)], output)

    def _record_softmax(self, args: tuple[Any, ...], given: dict[str, Any], output: Tensor) -> None:
        scores = args[0] if args else given.get("input")
        if not isinstance(scores, Tensor) or scores.dim() < 2:
            return
        site = find_call_site(self.recording.modules)
        if site is None:
            return
        if not self.recording.is_attention(site, scores.dim()):
            self.recording.other_softmaxes.add(site.path)
            return
        self.record_attention_weights(scores, output, read_softmax_axis(scores, args, given), site)

    def record_attention_weights(self, scores: Tensor, weights: Tensor, axis: int, site: CallSite) -> None:
        """Record the output of a softmax over `axis`, or weights that a module returned."""
        before = self.recording.get_running_call(site)
        attention, layout = (
            read_block_attention(site, scores, weights, None if before is None else before.attention),
            None,
        )
        if attention is not None and before is not None:
            self.recording.replace_last(attention, weights)
            return
        if attention is None and (layout := self._find_softmax_layout(scores, weights, axis, site)) is not None:
            attention = self._name_extra_keys(read_softmax_attention(scores, weights, layout), scores, site)
        if attention is not None:
            is_cross = self.recording.provenance.is_cross_from_scores(scores, site.calls)
            in_graph = (weights, layout) if layout is not None and self.recording.graph else None
            call = CapturedCall(
                site.path, attention, self._is_cross_attention_call(is_cross), False, site.fast_path, in_graph
            )
            reordered = self.recording.provenance.is_key_batch_reordered_from_scores(scores)
            call = self._add_call_origin_and_mask(replace(call, reordered=reordered), site, F.softmax, None)
            self.recording.add(call, site, self.recording.provenance.list_factors(scores), weights)

    def _name_extra_keys(self, attention: ComputedAttention, scores: Tensor, site: CallSite) -> ComputedAttention:
        """Name the columns that are no tokens: of a learned sink, and those that nn.MultiheadAttention adds."""
        sinks = [one for name, one in site.module.named_parameters(recurse=False) if "sink" in name]
        has_sink = any(self.recording.provenance.has_joined_parameter(scores, sink) for sink in sinks)
        return replace(attention, extra_keys=("sink",) if has_sink else list_added_key_names(site.module))

    def _is_cross_attention_call(self, seen: bool | None) -> bool | None:
        return False if self._same_tensor else seen

    def _find_softmax_layout(self, scores: Tensor, weights: Tensor, axis: int, site: CallSite) -> AxisLayout | None:
        """The layout of a softmax; None for one that is not of scores, as linear attention has them."""
        outputs = self.recording.provenance.single_projection_size(scores)
        if outputs > 1 and not self.recording.kinds_by_path:
            evidence = gather_axis_evidence(site)
            layout = infer_layout(tuple(weights.shape), axis, evidence)
            heads, rows = (evidence.heads or 1, 0) if layout is None else layout(weights).shape[1:3]
            if outputs > heads and rows != 1:
                self.recording.no_scores[site.path] = "no-product", {}
                return None
        return self._find_layout(tuple(weights.shape), axis, site)

    def _find_layout(self, shape: tuple[int, ...], axis: int, site: CallSite, fused: bool = False) -> AxisLayout | None:
        """How weights of this shape are (B, H, Q, K); where that cannot be told, it is noted."""
        if is_feature_attention(site.module):
            self.recording.refuse(site.path, "over-features")
            return None
        evidence = gather_axis_evidence(site)
        layout = infer_layout(shape, axis, evidence, fused)
        if layout is None:
            seen = {"axis": axis, "shape": str(shape)}
            if evidence.heads is None:
                self.recording.refuse(site.path, "axis", **seen)
            else:
                self.recording.refuse(site.path, "axis-heads", **seen, heads=evidence.heads)
        return layout


def read_softmax_axis(scores: Tensor, args: tuple[Any, ...], given: dict[str, Any]) -> int:
    """Return the axis of a softmax; where it is not given, the one that torch chooses."""
    axis = args[1] if len(args) > 1 else given.get("dim")
    return (0 if scores.dim() == 3 else 1) if axis is None else axis


def _is_same_tensor(query: Tensor, key: Tensor) -> bool:
    """Whether both are one tensor; transposing a batch makes other views of one storage."""
    return query is key or (query.shape == key.shape and query.data_ptr() == key.data_ptr())


@torch.no_grad()
def _compute_kernel_difference(weights: Tensor, value: Tensor, output: Tensor) -> Tensor:
    """Largest absolute difference between what the kernel gave and weights times values; 0-dimensional."""
    with torch.autocast(weights.device.type, enabled=False):
        context = weights @ value.float()
        return (context - output.detach().float().reshape(context.shape)).abs().max()


@contextmanager
def watch(
    model: nn.Module,
    tensors: Collection[str] = (),
    modules: Collection[str] | Mapping[str, Kind] = (),
    half: bool = False,
    graph: bool = False,
) -> Iterator[AnyModelRecording]:
    """Record the attention of whatever `model` runs inside the block, in this thread; see ``capture_attention``.

    Raises TraceError for names that do not exist, and TorchInternalsError for a torch that cannot be watched.
    """
    check_frame_reading_supported(model)
    patterns = dict(modules) if isinstance(modules, Mapping) else dict.fromkeys(modules)
    named = match_modules(model, patterns)
    recording = AnyModelRecording(model, frozenset(tensors), named, half, graph)
    watcher = AttentionWatcher(recording)
    outputs = {
        module: _make_output_hook(watcher, path) for path, module in _iterate_output_modules(model, named, patterns)
    }
    try:
        with declare_observer(recording), hook_outputs(outputs), watcher:
            yield recording
    finally:
        recording.end()


def _iterate_output_modules(
    model: nn.Module, named: Mapping[str, Kind | None], patterns: Collection[str]
) -> Iterator[tuple[str, nn.Module]]:
    """The modules whose output may be weights: dropouts and identities, which pass them on, only by their full name."""
    for path in named:
        module = model.get_submodule(path)
        if path in patterns or not is_torch_leaf_module(module):
            yield path, module


def _make_output_hook(watcher: AttentionWatcher, path: str) -> Callable[[Any], None]:
    """A hook on a named module that was seen to call no softmax and no kernel: it may return its weights."""
    recording = watcher.recording

    def look(output: Any) -> None:
        if recording.has_call_below(path):
            return
        weights = find_attention_weights_in_output(output)
        site = find_call_site(recording.modules)
        if weights is not None and site is not None and not recording.is_last_recorded_weights(weights):
            watcher.record_attention_weights(weights, weights, -1, site)

    return look


# Edits of heads. They stand here, and not with the code that makes them (:mod:`attenscope.interventions.any_model`),
# because a capture inside its block records the weights that the changed heads have.


@dataclass(frozen=True)
class HeadEdit:
    """One head of one attention, counted from 0; see :class:`attenscope.interventions.changes.HeadChange`."""

    head: int
    change: Literal["off", "uniform", "copy"]
    source: int | None = None

    def weights(self, weights: Tensor, allowed: Tensor) -> Tensor:
        """Return what the head's weights become, (B, Q, K), given those of all heads and their mask (B, H, Q, K)."""
        own = weights[:, self.head]
        if self.change == "off":
            return own.new_zeros(own.shape)
        if self.change == "uniform":
            open_ = allowed[:, self.head].to(own.dtype)
            return open_ / open_.sum(-1, keepdim=True).clamp(min=1)
        return weights[:, self.source]


@dataclass(eq=False)
class HeadEdits:
    """The edits of one block: by the path of a module, and by which of its calls in a run, where layers share it."""

    by_path: Mapping[str, Sequence[Sequence[HeadEdit]]]
    heads: Mapping[str, int]
    """The number of heads of each module, as it was captured."""
    made: set[str] = field(default_factory=set)
    """The paths of modules whose heads were changed at least once."""
    now: Sequence[HeadEdit] = ()
    """The edits of the call that was made last."""
    _calls: Counter[str] = field(default_factory=Counter)

    def select_call_edits(self, path: str | None) -> Sequence[HeadEdit]:
        """Return the edits of the attention that the module at a path is about to compute; none outside of all."""
        calls = self.by_path.get(path or "", ())
        self.now = calls[self._calls[path] % len(calls)] if path and calls else ()
        if path and calls:
            self._calls[path] += 1
        return self.now


_open_edits: ContextVar[tuple[HeadEdits, ...]] = ContextVar("head edits", default=())
_edits_paused: ContextVar[bool] = ContextVar("head edits paused", default=False)


@contextmanager
def pause_head_edits() -> Iterator[None]:
    """Make no edits inside the block: a capture computes weights there, which are no attention of the model."""
    token = _edits_paused.set(True)
    try:
        yield
    finally:
        _edits_paused.reset(token)


def is_editing_paused() -> bool:
    """Whether what is computed now is a capture's own work."""
    return _edits_paused.get()


@contextmanager
def register_active_head_edits(edits: HeadEdits) -> Iterator[None]:
    """Let captures of this thread know of edits that are made inside the block."""
    _open_edits.set((*_open_edits.get(), edits))
    try:
        yield
    finally:
        _open_edits.set(tuple(one for one in _open_edits.get() if one is not edits))


def apply_head_edits(weights: Tensor, allowed: Tensor) -> Tensor:
    """Return weights (B, H, Q, K) as the call that was made last has used them: as they are, or with heads changed."""
    edits = [edit for one in _open_edits.get() for edit in one.now]
    if not edits:
        return weights
    changed = weights.clone()
    for edit in edits:
        changed[:, edit.head] = edit.weights(weights, allowed)
    return changed
