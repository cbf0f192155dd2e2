"""Watching what one thread calls: softmax, fused attention, and nn.MultiheadAttention from the inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ...network.hooks import hook_outputs, observing
from ...pytorch.torch_internals import check_watchable, flex_call, is_flex_attention, without_override_check
from ...trace import Kind
from .calls.axes import Layout, added_keys, evidence_of, layout_of
from .calls.block_layouts import block_attention
from .calls.call import Call
from .calls.call_site import CallSite, call_site, is_leaf
from .calls.flex import flex_arguments, flex_passed, flex_weights, laid_out
from .calls.fused_weights import Attention, attended, from_arguments, from_scores, unfold_heads
from .calls.origin import origin_of, origin_with
from .calls.passed_mask import passed_mask
from .calls.varlen import UnknownArgumentError, varlen_arguments, varlen_in_words, varlen_weights
from .head_edits import edited, paused
from .named_modules import match_modules, weights_in
from .recording import ForeignRecording
from .refusals import is_over_features

_FUSED = tuple(inspect.signature(attended).parameters)
"""The arguments of F.scaled_dot_product_attention, in order."""
SOFTMAX = (F.softmax, torch.softmax, Tensor.softmax, torch.special.softmax)


class Watcher(TorchFunctionMode):
    """A mode that lets every call through as it is and notes those that are attention. Modes are a thread's own."""

    def __init__(self, recording: ForeignRecording) -> None:
        super().__init__()
        self.recording = recording
        self._is_cross: bool | None = None
        """Whether nn.MultiheadAttention was given keys of another tensor; None outside of it."""
        self._multi_head_arguments: Mapping[str, Any] = {}
        """What nn.MultiheadAttention was given, by name; empty outside of it."""

    @cached_property
    def _multi_head(self) -> Callable[..., Any]:
        return without_override_check(F.multi_head_attention_forward)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is F.multi_head_attention_forward:
            return self._from_inside(args, given)
        weights = None
        if is_flex_attention(func):
            return self._flex(func, args, given)
        if func is F.scaled_dot_product_attention and self.recording.graph:
            output, weights = attended(*args, **given)
        else:
            output = func(*args, **given)
        self.recording.provenance.note(func, args, given, output)
        if func is F.scaled_dot_product_attention:
            self._fused(args, given, output, weights)
        elif func in SOFTMAX:
            self._softmax(args, given, output)
        elif arguments := varlen_arguments(func, args, given):
            self._varlen(func, arguments, output)
        return output

    def _varlen(self, func: Callable[..., Any], arguments: dict[str, Any], output: Any) -> None:
        """Record a kernel of packed sequences, or which of its arguments is not understood."""
        site = call_site(self.recording.modules)
        if site is None or not self.recording.records(site.path):
            return
        name = str(func)
        try:
            with paused():
                attention = varlen_weights(arguments)
        except UnknownArgumentError as error:
            self.recording.refused_kernels[site.path] = error.reason, {**error.values, "kernel": name}
            return
        first = output[0] if isinstance(output, tuple | list) else output
        difference = _difference(attention.weights, attention.tensors["v"], first.transpose(0, 1))
        words = varlen_in_words(arguments)
        text = ", ".join(f"{one}={two}" for one, two in words.items())
        origin = origin_with(site, name, words).given([("arguments", {"arguments": text})])
        call = Call(site.path, attention, bool(self._is_cross), True, site.fast_path, None, difference, origin=origin)
        self.recording.add(call, site)

    def _flex(self, func: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Run flex_attention and record its attention; its weights are no part of a graph of gradients."""
        output, *more = func(*args, **given)
        site = call_site(self.recording.modules)
        if site is None or not self.recording.records(site.path):
            return (output, *more)
        called = flex_call(args)
        query, key = called.query, called.key
        layout = self._layout((*query.shape[:-1], key.shape[-2]), -1, site, fused=True)
        if layout is None:
            return (output, *more)
        with paused():
            attention = flex_weights(called)
        self.recording.provenance.note(func, args, given, output)
        difference = _difference(attention.weights, attention.tensors["v"], output)
        is_cross = self._crosses(self.recording.provenance.is_cross(query, key, site.calls))
        arguments = flex_arguments(called)
        origin = origin_with(site, "flex_attention", arguments).given(flex_passed(arguments, attention))
        call = Call(site.path, laid_out(attention, layout), is_cross, True, site.fast_path, None, difference)
        reordered = self.recording.provenance.is_reordered(key)
        self.recording.add(replace(call, reordered=reordered, origin=origin), site)
        return (output, *more)

    def _from_inside(self, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        bound = inspect.signature(F.multi_head_attention_forward).bind(*args, **given).arguments
        self._is_cross, self._multi_head_arguments = not _same(bound["query"], bound["key"]), bound
        try:
            with self:
                return self._multi_head(*args, **given)
        finally:
            self._is_cross, self._multi_head_arguments = None, {}

    def _with_origin(
        self, call: Call, site: CallSite, function: Callable[..., Any], given: Mapping[str, Any] | None
    ) -> Call:
        """The call with where it was made, and the mask that was passed to it."""
        if self._multi_head_arguments:
            function, given = F.multi_head_attention_forward, self._multi_head_arguments
        passed = passed_mask(site, function, given, call.attention)
        cells = passed.allowed is not None or not passed.readings
        origin = origin_of(site, function, given).given(passed.readings, cells)
        return replace(call, attention=replace(call.attention, passed=passed.allowed), origin=origin)

    def _fused(self, args: tuple[Any, ...], given: dict[str, Any], output: Tensor, graph: Tensor | None) -> None:
        site = call_site(self.recording.modules)
        if site is None or not self.recording.records(site.path):
            return
        query, key = (args[place] if len(args) > place else given[name] for place, name in enumerate(("query", "key")))
        layout = self._layout((*query.shape[:-1], key.shape[-2]), -1, site, fused=True)
        if layout is None:
            return
        with paused():
            attention = unfold_heads(from_arguments(*args, **given, layout=layout), site.module)
        weights = edited(attention.weights, attention.allowed)
        dropout = args[4] if len(args) > 4 else given.get("dropout_p", 0.0)
        difference = None if dropout else _difference(weights, attention.tensors["v"], layout(output))
        attention = replace(attention, weights=weights, extra_keys=added_keys(site.module))
        is_cross = self.recording.provenance.is_cross(query, key, site.calls)
        in_graph = None if graph is None else (graph, layout)
        call = Call(site.path, attention, self._crosses(is_cross), True, site.fast_path, in_graph, difference)
        call = replace(call, reordered=self.recording.provenance.is_reordered(key))
        arguments = dict(zip(_FUSED, args, strict=False)) | given
        self.recording.add(self._with_origin(call, site, F.scaled_dot_product_attention, arguments), site)

    def _softmax(self, args: tuple[Any, ...], given: dict[str, Any], output: Tensor) -> None:
        scores = args[0] if args else given.get("input")
        if not isinstance(scores, Tensor) or scores.dim() < 2:
            return
        site = call_site(self.recording.modules)
        if site is None:
            return
        if not self.recording.is_attention(site, scores.dim()):
            self.recording.other_softmaxes.add(site.path)
            return
        self.add_weights(scores, output, axis_of(scores, args, given), site)

    def add_weights(self, scores: Tensor, weights: Tensor, axis: int, site: CallSite) -> None:
        """Record the output of a softmax over `axis`, or weights that a module returned."""
        before = self.recording.open_call(site)
        attention, layout = block_attention(site, scores, weights, None if before is None else before.attention), None
        if attention is not None and before is not None:
            self.recording.replace_last(attention)
            return
        if attention is None and (layout := self._layout_of_softmax(scores, weights, axis, site)) is not None:
            attention = self._with_names(from_scores(scores, weights, layout), scores, site)
        if attention is not None:
            is_cross = self.recording.provenance.scores_are_cross(scores, site.calls)
            in_graph = (weights, layout) if layout is not None and self.recording.graph else None
            call = Call(site.path, attention, self._crosses(is_cross), False, site.fast_path, in_graph)
            reordered = self.recording.provenance.scores_are_reordered(scores)
            self.recording.add(self._with_origin(replace(call, reordered=reordered), site, F.softmax, None), site)

    def _with_names(self, attention: Attention, scores: Tensor, site: CallSite) -> Attention:
        """Name the columns that are no tokens: of a learned sink, and those that nn.MultiheadAttention adds."""
        sinks = [one for name, one in site.module.named_parameters(recurse=False) if "sink" in name]
        has_sink = any(self.recording.provenance.depends_on(scores, sink) for sink in sinks)
        return replace(attention, extra_keys=("sink",) if has_sink else added_keys(site.module))

    def _crosses(self, seen: bool | None) -> bool:
        return bool(self._is_cross) if seen is None else seen

    def _layout_of_softmax(self, scores: Tensor, weights: Tensor, axis: int, site: CallSite) -> Layout | None:
        """The same of a softmax, which need not be one of scores: linear attention has one of queries or keys alone."""
        outputs = self.recording.provenance.outputs_alone(scores)
        if outputs > 1 and not self.recording.kinds_by_path:
            evidence = evidence_of(site)
            layout = layout_of(tuple(weights.shape), axis, evidence)
            heads, rows = (evidence.heads or 1, 0) if layout is None else layout(weights).shape[1:3]
            if outputs > heads and rows != 1:
                self.recording.no_scores[site.path] = "no-product", {}
                return None
        return self._layout(tuple(weights.shape), axis, site)

    def _layout(self, shape: tuple[int, ...], axis: int, site: CallSite, fused: bool = False) -> Layout | None:
        """How weights of this shape are (B, H, Q, K); where that cannot be told, it is noted."""
        if is_over_features(site.module):
            self.recording.refuse(site.path, "over-features")
            return None
        evidence = evidence_of(site)
        layout = layout_of(shape, axis, evidence, fused)
        if layout is None:
            seen = {"axis": axis, "shape": str(shape)}
            if evidence.heads is None:
                self.recording.refuse(site.path, "axis", **seen)
            else:
                self.recording.refuse(site.path, "axis-heads", **seen, heads=evidence.heads)
        return layout


def axis_of(scores: Tensor, args: tuple[Any, ...], given: dict[str, Any]) -> int:
    """Return the axis of a softmax; where it is not given, the one that torch chooses."""
    axis = args[1] if len(args) > 1 else given.get("dim")
    return (0 if scores.dim() == 3 else 1) if axis is None else axis


def _same(query: Tensor, key: Tensor) -> bool:
    """Whether both are one tensor; transposing a batch makes other views of one storage."""
    return query is key or (query.shape == key.shape and query.data_ptr() == key.data_ptr())


@torch.no_grad()
def _difference(weights: Tensor, value: Tensor, output: Tensor) -> Tensor:
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
) -> Iterator[ForeignRecording]:
    """Record the attention of whatever `model` runs inside the block, in this thread; see ``capture_attention``.

    Raises TraceError for names that do not exist, and TorchInternalsError for a torch that cannot be watched.
    """
    check_watchable(model)
    patterns = dict(modules) if isinstance(modules, Mapping) else dict.fromkeys(modules)
    named = match_modules(model, patterns)
    recording = ForeignRecording(model, frozenset(tensors), named, half, graph)
    watcher = Watcher(recording)
    outputs = {module: _output_of(watcher, path) for path, module in _modules_at(model, named, patterns)}
    try:
        with observing(recording), hook_outputs(outputs), watcher:
            yield recording
    finally:
        recording.end()


def _modules_at(
    model: nn.Module, named: Mapping[str, Kind | None], patterns: Collection[str]
) -> Iterator[tuple[str, nn.Module]]:
    """The modules whose output may be weights: dropouts and identities, which pass them on, only by their full name."""
    for path in named:
        module = model.get_submodule(path)
        if path in patterns or not is_leaf(module):
            yield path, module


def _output_of(watcher: Watcher, path: str) -> Callable[[Any], None]:
    """A hook on a named module that was seen to call no softmax and no kernel: it may return its weights."""
    recording = watcher.recording

    def look(output: Any) -> None:
        if recording.has_call_below(path):
            return
        weights = weights_in(output)
        site = call_site(recording.modules)
        if weights is not None and site is not None and not recording.has_weights(weights):
            watcher.add_weights(weights, weights, -1, site)

    return look
