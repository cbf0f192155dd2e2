"""Watching what one thread calls: softmax, fused attention, and nn.MultiheadAttention from the inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ...network.hooks import hook_outputs, observing
from ...network.torch_internals import check_watchable, without_override_check
from ...trace import Kind
from .call import Call
from .call_site import call_site
from .fused_weights import from_arguments, from_scores, heads_of, keys_last, unfold_heads
from .named_modules import match_modules, weights_in
from .recording import ForeignRecording

SOFTMAX = (F.softmax, torch.softmax, Tensor.softmax, torch.special.softmax)


class Watcher(TorchFunctionMode):
    """A mode that lets every call through as it is and notes those that are attention. Modes are a thread's own."""

    def __init__(self, recording: ForeignRecording) -> None:
        super().__init__()
        self.recording = recording
        self._is_cross = False

    @cached_property
    def _multi_head(self) -> Callable[..., Any]:
        return without_override_check(F.multi_head_attention_forward)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is F.multi_head_attention_forward:
            return self._from_inside(args, given)
        output = func(*args, **given)
        if func is F.scaled_dot_product_attention:
            self._fused(args, given, output)
        elif func in SOFTMAX:
            self._softmax(args, given, output)
        return output

    def _from_inside(self, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        bound = inspect.signature(F.multi_head_attention_forward).bind(*args, **given).arguments
        self._is_cross = not _same(bound["query"], bound["key"])
        try:
            with self:
                return self._multi_head(*args, **given)
        finally:
            self._is_cross = False

    def _fused(self, args: tuple[Any, ...], given: dict[str, Any], output: Tensor) -> None:
        site = call_site(self.recording.modules)
        if site is None or not self.recording.records(site.path):
            return
        attention = from_arguments(*args, **given, heads=heads_of(site.module))
        dropout = args[4] if len(args) > 4 else given.get("dropout_p", 0.0)
        difference = None if dropout else _difference(attention.weights, attention.tensors["v"], output)
        attention = unfold_heads(attention, site.module)
        self.recording.add(Call(site.path, attention, self._is_cross, True, site.fast_path, difference), site)

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
        heads, axis = heads_of(site.module), _axis(scores, args, given)
        before, after = (keys_last(tensor, axis, heads) for tensor in (scores, output))
        if before is None or after is None:
            self.recording.unknown_axes[site.path] = f"axis {axis} of {tuple(scores.shape)}"
            return
        attention = from_scores(before, after, heads)
        self.recording.add(Call(site.path, attention, self._is_cross, False, site.fast_path), site)


def _axis(scores: Tensor, args: tuple[Any, ...], given: dict[str, Any]) -> int:
    """The axis of a softmax; where it is not given, the one that torch chooses."""
    axis = args[1] if len(args) > 1 else given.get("dim")
    return (0 if scores.dim() == 3 else 1) if axis is None else axis


def _same(query: Tensor, key: Tensor) -> bool:
    """Whether both are one tensor; transposing a batch makes other views of one storage."""
    return query is key or (query.shape == key.shape and query.data_ptr() == key.data_ptr())


@torch.no_grad()
def _difference(weights: Tensor, value: Tensor, output: Tensor) -> Tensor:
    """Largest absolute difference between what the kernel gave and weights times values; 0-dimensional."""
    return (weights @ value.float() - output.detach().float().reshape(*weights.shape[:3], -1)).abs().max()


@contextmanager
def watch(
    model: nn.Module,
    tensors: Collection[str] = (),
    modules: Collection[str] | Mapping[str, Kind] = (),
) -> Iterator[ForeignRecording]:
    """Record the attention of whatever `model` runs inside the block, in this thread; see ``capture_attention``.

    Raises TraceError for names that do not exist, and TorchInternalsError for a torch that cannot be watched.
    """
    check_watchable(model)
    patterns = dict(modules) if isinstance(modules, Mapping) else dict.fromkeys(modules)
    named = match_modules(model, patterns)
    recording = ForeignRecording(model, frozenset(tensors), named)
    outputs = {module: _output_of(recording, path) for path, module in _modules_at(model, named)}
    try:
        with observing(recording), hook_outputs(outputs), Watcher(recording):
            yield recording
    finally:
        recording.end()


def _modules_at(model: nn.Module, named: Mapping[str, Kind | None]) -> Iterator[tuple[str, nn.Module]]:
    for path in named:
        yield path, model.get_submodule(path)


def _output_of(recording: ForeignRecording, path: str) -> Callable[[Any], None]:
    """A hook on a named module that was seen to call no softmax and no kernel: it may return its weights."""

    def look(output: Any) -> None:
        if recording.has_call_below(path):
            return
        weights = weights_in(output)
        module = recording.model.get_submodule(path)
        site = call_site(recording.modules)
        if weights is not None:
            attention = from_scores(weights.detach(), weights, heads_of(module))
            recording.add(Call(path, attention, False, False, False), site)

    return look
