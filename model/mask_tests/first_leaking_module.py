"""The module that lets a forbidden input in: the first whose output moves at positions where its inputs do not.

Two runs that must agree at some positions (:class:`.checks.ProbePair`) are compared module by module, in the order in
which their calls end, so that the innermost comes first. A module whose inputs have moved there already only passes on
what another let in. The same is assumed of a module whose inputs differ and cannot be laid out by positions: then the
module around it is judged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..capture.any_model.axes import iterate_tensors
from ..capture.any_model.call import CapturedCall
from ..capture.any_model.recording import AnyModelRecording
from ..capture.any_model.watcher import watch
from ..language import join_items, say
from ..torch_internals import run_eagerly, unwrap_compiled
from .checks import ProbePair, find_worst_pair
from .outcomes import BATCH_NEIGHBOUR, FUTURE_TOKEN, GRADIENT_REACH, Check
from .subjects import Subject

_ROUNDING_UNITS = 256
"""Units of rounding of the largest number of a tensor that are no movement."""
_FAULT_CODES = {FUTURE_TOKEN: "future-visible", GRADIENT_REACH: "leak", BATCH_NEIGHBOUR: "batch-axis"}
"""What a diagnosis would call the fault, by the test that fails; any other is of padding."""


@dataclass(frozen=True, eq=False)
class _ModuleCall:
    """One call of a module: the tensors that went in, and those that came out, copied."""

    path: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(eq=False)
class _ModuleCalls:
    """The calls of all modules of a model in one run, in the order in which they end."""

    model: nn.Module
    ended: list[_ModuleCall] = field(default_factory=list)
    _open: list[tuple[Tensor, ...]] = field(default_factory=list)

    def record_calls(self, run: Callable[[], object]) -> list[_ModuleCall]:
        """Return the calls that are made while ``run`` runs."""
        handles = []
        try:
            for path, module in self.model.named_modules():
                handles.append(module.register_forward_pre_hook(self._begin, with_kwargs=True))
                handles.append(module.register_forward_hook(partial(self._end, path)))
            run()
        finally:
            for handle in handles:
                handle.remove()
        return self.ended

    def _begin(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._open.append(_copy_tensors((args, kwargs)))

    def _end(self, path: str, module: nn.Module, args: Any, output: Any) -> None:
        self.ended.append(_ModuleCall(path, module, self._open.pop(), _copy_tensors(output)))


def _copy_tensors(values: Any) -> tuple[Tensor, ...]:
    return tuple(tensor.detach().clone() for tensor in iterate_tensors(values) if tensor.is_floating_point())


@torch.no_grad()
def describe_leaking_module(subject: Subject, check: Check) -> str:
    """Return, in a sentence, the first module that a failed test's changes reach where they must not; empty if unknown.

    Hooks stand on the modules meanwhile: for models that nobody else runs at the time.
    """
    if subject.module is None or any(isinstance(one, torch.jit.ScriptModule) for one in subject.module.modules()):
        return ""
    module = unwrap_compiled(subject.module)
    with run_eagerly():
        pair = find_worst_pair(subject, check)
        if pair is None:
            return ""
        runs = [_ModuleCalls(module).record_calls(partial(probe.run, subject)) for probe in (pair.before, pair.after)]
        found = next((call for call, other in _match_calls(*runs) if _is_change_source(call, other, pair)), None)
        if found is None:
            return ""
        recordings = []
        for probe in (pair.before, pair.after):
            with watch(module, ("q", "k", "v")) as recording:
                probe.run(subject)
            recordings.append(recording)
    if check != BATCH_NEIGHBOUR and (outside := _describe_leak_outside_attention(recordings, found, pair)):
        return outside
    return _describe_call(recordings[0], found, _FAULT_CODES.get(check, "padding-visible"))


def _match_calls(before: list[_ModuleCall], after: list[_ModuleCall]) -> Iterator[tuple[_ModuleCall, _ModuleCall]]:
    """Yield the calls of both runs that are the same by module and number."""
    waiting: dict[str, list[_ModuleCall]] = {}
    for call in after:
        waiting.setdefault(call.path, []).append(call)
    for call in before:
        if others := waiting.get(call.path):
            yield call, others.pop(0)


def _is_change_source(before: _ModuleCall, after: _ModuleCall, pair: ProbePair) -> bool:
    if len(before.inputs) != len(after.inputs) or len(before.outputs) != len(after.outputs):
        return False
    came = [
        _has_difference_at_compared_positions(one, other, pair)
        for one, other in zip(before.inputs, after.inputs, strict=True)
    ]
    went = [
        _has_difference_at_compared_positions(one, other, pair)
        for one, other in zip(before.outputs, after.outputs, strict=True)
    ]
    strange = any(
        moved is None and one.shape == other.shape and not torch.equal(one, other)
        for moved, one, other in zip(came, before.inputs, after.inputs, strict=True)
    )
    return True in went and True not in came and not strange


def _has_difference_at_compared_positions(before: Tensor, after: Tensor, pair: ProbePair) -> bool | None:
    """Whether two tensors differ at the positions that count, however their axes are read; None where none fits."""
    found = [
        _is_different_beyond_rounding(one, other)
        for one, other in _select_values_at_compared_positions(before, after, pair)
    ]
    return all(found) if found else None


def _select_values_at_compared_positions(
    before: Tensor, after: Tensor, pair: ProbePair
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield both tensors at the positions that count, (N, ...), for each reading of axes as samples and positions."""
    if before.dim() != after.dim():
        return
    for first, second in _iterate_position_masks(pair):
        sizes = (*first.shape, *second.shape)
        for batch, time in permutations(range(before.dim()), 2):
            if (before.shape[batch], before.shape[time], after.shape[batch], after.shape[time]) == sizes:
                both = [one.movedim((batch, time), (0, 1)) for one in (before, after)]
                if both[0].shape[2:] == both[1].shape[2:]:
                    yield both[0][first], both[1][second]
        if before.dim() and (before.shape[0], after.shape[0]) == (first.numel(), second.numel()):
            yield before[first.flatten()], after[second.flatten()]


def _iterate_position_masks(pair: ProbePair) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the positions that count in both runs: of inputs, and where they are another sequence, of outputs."""
    before, after = pair.before, pair.after
    if before.rows.shape != before.outputs.shape:
        yield before.rows, after.rows
        yield before.outputs, after.outputs
    else:  # one length may be that of either
        yield before.rows & before.outputs, after.rows & after.outputs


def _is_different_beyond_rounding(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or not one.numel():
        return False
    limit = _ROUNDING_UNITS * torch.finfo(one.dtype).eps * max(1.0, float(one.nan_to_num().abs().max()))
    return bool((~((one - other).abs() <= limit) & ~(one.isnan() & other.isnan()) & (one != other)).any())


def _describe_leak_outside_attention(recordings: list[AnyModelRecording], call: _ModuleCall, pair: ProbePair) -> str:
    """Return a sentence on a module whose attention puts no weight on what changed; empty for any other.

    Then no argument of its call carries the fault: what is attended with had moved before, or it is let in after.
    """
    before, after = ([one for one in recording.calls if one.path == call.path] for recording in recordings)
    if not before or len(before) != len(after) or any(_is_change_attended(one, pair) for one in (*before, *after)):
        return ""
    moved = [
        name
        for name in ("q", "k", "v")
        for one, other in zip(before, after, strict=True)
        if name in one.attention.tensors
        and _has_difference_at_compared_positions(one.attention.tensors[name], other.attention.tensors[name], pair)
    ]
    named = {"module": call.path or say("the model itself"), "place": _describe_module_location(call.module)}
    function = next((one.origin.function for one in before if one.origin), "softmax")
    if moved:
        return say(
            "First let in by {module} ({place}), before it calls {function}: {names} change already where they must "
            "stay.",
            names=join_items(dict.fromkeys(moved)),
            function=function,
            **named,
        )
    return say(
        "First let in by {module} ({place}), outside of its call of {function}: its weights on what changed are zero.",
        function=function,
        **named,
    )


def _is_change_attended(call: CapturedCall, pair: ProbePair) -> bool:
    """Whether weights (B, H, T, T) of positions that must stay lie on what changed; True where that cannot be told."""
    before, after, weights = pair.before, pair.after, call.attention.weights
    if before.inputs.shape != after.inputs.shape or call.is_cross or call.shape != tuple(before.rows.shape[1:]) * 2:
        return True
    changed = (before.inputs != after.inputs).reshape(*before.rows.shape, -1).any(-1)
    cells = before.rows[:, None, :, None] & changed[:, None, None]
    return weights.shape[0] != len(cells) or bool((weights[..., : cells.shape[-1]].nan_to_num(1) * cells).any())


def _describe_call(recording: AnyModelRecording, call: _ModuleCall, code: str) -> str:
    """Return the module, where it is written, and whether it is attention, by what a recording saw it call."""
    origins = (one.origin for one in recording.calls if one.path == call.path)
    if origin := next(filter(None, origins), None):
        return say("First let in by the attention of {place}.", place=origin.words(code))
    named = {"module": call.path or say("the model itself"), "place": _describe_module_location(call.module)}
    if call.path in recording.other_softmaxes:
        return say("First let in by {module} ({place}), in which a softmax runs.", **named)
    return say("First let in by {module} ({place}), which calls no attention.", **named)


def _describe_module_location(module: nn.Module) -> str:
    """Return the class of a module, and where its forward is written unless it is one of torch."""
    forward = inspect.unwrap(module.forward)
    code = getattr(forward, "__code__", None)
    if code is None or Path(code.co_filename).is_relative_to(Path(torch.__file__).parent):
        return type(module).__name__
    return f"{type(module).__name__}, {code.co_filename}:{code.co_firstlineno}"
