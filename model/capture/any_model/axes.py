"""Find which module calls attention, and which axes are samples, heads, queries and keys."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from ...torch_internals import is_fast_path_overridden, is_module_call

# Axes: inferred from what a module says and what it was called with.


HEAD_COUNT_ATTRIBUTES = ("num_heads", "n_heads", "num_attention_heads", "nhead", "n_head", "heads", "h")
"""Attributes in which modules hold their number of heads."""
_STANDARD_ORDER = (0, 1, 2)
"""Samples, heads, queries."""
_OTHER_ORDERS = ((0, 2, 1), (1, 0, 2))
"""Which of the first three axes are those, where queries or heads come before."""
_SEQUENCE_FIRST_ORDER = (1, 2, 0)
"""A further order, possible where keys are not the last axis: (Q, K, B, H)."""


@dataclass(frozen=True)
class AxisEvidence:
    """What is known of the axes before the weights are seen."""

    heads: int | None = None
    """The number of heads that the module says, or one around it; None where none says it."""
    groups: int = 1
    """Query heads that share one head of keys, which a module may keep beside each other as rows."""
    sides: frozenset[tuple[int, int]] = frozenset()
    """(B, length) of the inputs of the module and of the outermost one, in every order that they may be meant in."""
    partitions: frozenset[int] = frozenset()
    """B * length of inputs with two axes of positions, as of an image, that a module may cut into windows."""
    width: int = 0
    """The width of one head: so many rows, where there are not so many tokens, are features."""

    @property
    def batches(self) -> set[int]:
        return {batch for batch, _ in self.sides}

    def may_be_batch(self, size: int, queries: int) -> bool:
        """Whether an axis of this size may be the samples, or the windows that an image is cut into."""
        return not self.sides or size in self.batches or size * queries in self.partitions


@dataclass(frozen=True)
class AxisLayout:
    """How a tensor becomes one of (B, H, Q, K)."""

    axis: int = -1
    """The axis of the keys, which is moved to the end."""
    shape: tuple[int, ...] = ()
    """(B, H), where they are not axes of their own or are more of them; empty to leave the axes as they are."""
    order: tuple[int, ...] = _STANDARD_ORDER
    """Which of the three are the samples, the heads and the queries."""

    def __call__(self, tensor: Tensor) -> Tensor:
        moved = tensor.movedim(self.axis, -1)
        return moved.reshape(*self.shape, -1, moved.shape[-1]) if self.shape else moved.permute(*self.order, 3)


def gather_axis_evidence(site: CallSite) -> AxisEvidence:
    """Return what the module at a site, those around it and their inputs say of the axes."""
    heads = next((found for module in _iterate_modules(site) if (found := read_head_count(module)) > 1), None)
    if heads is None:
        heads = next(
            (found for module in _iterate_modules(site) if (found := _read_configured_head_count(module)) > 1), None
        )
    called = [call.inputs for call in site.calls if any(tensor.dim() > 1 for tensor in call.inputs)]
    own, outer = (called[0], called[-1] if len(called) > 1 else ()) if called else ((), ())
    sides = {side for tensor in own for side in _list_batch_length_pairs(tensor, heads)} | {
        side for one in outer for side in _list_model_batch_length_pairs(one)
    }
    return AxisEvidence(
        heads,
        getattr(site.module, "num_key_value_groups", 1),
        frozenset(sides),
        frozenset(size for tensor in (*own, *outer) for size in _list_partition_batch_sizes(tensor, heads)),
        max((tensor.shape[-1] for tensor in own if tensor.is_floating_point()), default=0) // (heads or 1),
    )


def read_head_count(module: nn.Module) -> int:
    """Return how many heads a module says that it has; 1 where it does not say."""
    said = (getattr(module, name, None) for name in HEAD_COUNT_ATTRIBUTES)
    return next((number for number in said if isinstance(number, int) and number > 0), 1)


def read_query_head_count(module: nn.Module) -> int:
    """Return :func:`read_head_count`, or the number in the module's configuration where only that says it."""
    return read_head_count(module) if read_head_count(module) > 1 else _read_configured_head_count(module)


def list_added_key_names(module: nn.Module) -> tuple[str, ...]:
    """Return the names of the columns that nn.MultiheadAttention adds after those of the keys."""
    if not isinstance(module, nn.MultiheadAttention):
        return ()
    return ("bias",) * (module.bias_k is not None) + ("zero",) * module.add_zero_attn


def infer_layout(shape: tuple[int, ...], axis: int, evidence: AxisEvidence, fused: bool = False) -> AxisLayout | None:
    """Return how weights of this shape, softmax over `axis`, become (B, H, Q, K); None where the axes do not tell.

    In a fused kernel the queries are the axis before the keys.
    """
    axis = axis % len(shape) - len(shape)
    keys, others = shape[axis], (*shape[:axis], *(shape[axis + 1 :] if axis < -1 else ()))
    if len(others) == 1:
        return AxisLayout(axis, (1, 1)) if axis == -1 and (fused or others == (1,)) else None
    if len(others) == 2:
        return _infer_from_two_axes(others, keys, axis, evidence)
    if len(others) == 3:
        return _infer_from_three_axes(others, keys, axis, evidence, fused)
    samples, heads, rows = others[0], prod(others[1:-1]), others[-1]
    if len(others) > 3 and heads != (evidence.heads or 1):
        return None
    fits = axis == -1 and _is_possible_shape(samples, heads, rows, keys, evidence)
    return AxisLayout(axis, (samples, heads)) if fits else None


def _infer_from_two_axes(others: tuple[int, ...], keys: int, axis: int, evidence: AxisEvidence) -> AxisLayout | None:
    """(B * H, Q, K), one query of each head (B, H, K), or one head (B, Q, K)."""
    first, rows = others
    heads = evidence.heads or 1
    if axis != -1:  # a square may be (Q, K, H) of one sample
        return AxisLayout(axis, (first, 1)) if axis == -2 and heads == 1 and keys != rows else None
    splits = [(first // heads, heads), (first, 1)] if first % heads == 0 else [(first, 1)]
    if not evidence.sides:
        return AxisLayout(axis, splits[0])
    splits += [(batch, first // batch) for batch in sorted(evidence.batches) if heads == 1 and first % batch == 0]
    known = [split for split in splits if (split[0], rows) in evidence.sides]
    if not known and rows == heads and first in evidence.batches:
        return AxisLayout(axis, (first, heads))
    known = known or [split for split in splits[:2] if evidence.may_be_batch(split[0], rows)]
    return AxisLayout(axis, known[0]) if known else None


def _infer_from_three_axes(
    others: tuple[int, ...], keys: int, axis: int, evidence: AxisEvidence, fused: bool
) -> AxisLayout | None:
    """(B, H, Q, K), or another order of the first three where only that fits."""
    if axis != -1 and evidence.heads is None:
        return None
    fits: dict[tuple[int, ...], int] = {}
    for order in (_STANDARD_ORDER, *_OTHER_ORDERS, *([_SEQUENCE_FIRST_ORDER] if axis != -1 else ())):
        samples, heads, rows = (others[place] for place in order)
        known = ((samples, rows) in evidence.sides) + ((samples, keys) in evidence.sides)
        standard = order == _STANDARD_ORDER and _is_possible_shape(samples, heads, rows, keys, evidence)
        if standard or (known == 2 and heads == evidence.heads and not (fused and order[2] != 2)):
            fits[order] = known
    best = [order for order, known in fits.items() if known == max(fits.values())]
    if _STANDARD_ORDER in best and axis == -1:
        return AxisLayout(axis)
    return AxisLayout(axis, order=best[0]) if len(best) == 1 else None


def _is_possible_shape(samples: int, heads: int, rows: int, keys: int, evidence: AxisEvidence) -> bool:
    """Whether these may be the sizes of (B, H, Q, K)."""
    if _is_whole_sequence(samples, rows, keys, evidence):
        return True
    if rows == evidence.width and (samples, rows) not in evidence.sides:
        return False
    if evidence.heads is None:  # an axis beside the samples that is a sequence is not the heads
        return evidence.may_be_batch(samples, rows) and (
            (samples, rows) in evidence.sides or (samples, heads) not in evidence.sides
        )
    folded = heads * evidence.groups == evidence.heads and rows == evidence.groups
    return (heads == evidence.heads or folded) and evidence.may_be_batch(samples, rows)


def _is_whole_sequence(samples: int, rows: int, keys: int, evidence: AxisEvidence) -> bool:
    """Whether queries and keys are whole sequences of the inputs, so that an axis between is heads, said or not."""
    return (samples, rows) in evidence.sides and (samples, keys) in evidence.sides


def _iterate_modules(site: CallSite) -> Iterator[nn.Module]:
    yield site.module
    yield from (call.module for call in site.calls)


def _read_configured_head_count(module: nn.Module) -> int:
    said = getattr(getattr(module, "config", None), "num_attention_heads", None)
    return said if isinstance(said, int) else 1


def _list_position_axis_sizes(tensor: Tensor) -> tuple[int, ...]:
    """The axes of a tensor without its features; a tensor of integers, such as ids, has none."""
    return tuple(tensor.shape[:-1] if tensor.is_floating_point() else tensor.shape)


def _list_batch_length_pairs(tensor: Tensor, heads: int | None) -> set[tuple[int, int]]:
    """(B, length) in every order that the axes of an input may be meant in."""
    sizes = _list_position_axis_sizes(tensor)
    if not sizes or (tensor.dtype == torch.bool and len(sizes) > 2):  # a time of each sample, or a mask
        return set()
    if len(sizes) == 1:
        return {(1, sizes[0]), (sizes[0], 1)}
    if len(sizes) == 2:
        return {sizes, sizes[::-1]}
    found = {(prod(sizes[:cut]), prod(sizes[cut:])) for cut in range(1, len(sizes))}
    found |= {(sizes[0], prod(tensor.shape[2:]))}  # features first, as of an image
    if len(sizes) == 3:
        found |= {(sizes[0], sizes[1])} if sizes[2] == heads else {(sizes[0], sizes[2])}  # heads apart already
        found |= {(sizes[2], sizes[0]), (sizes[2], sizes[1])} if heads not in sizes else set()  # an alignment
    return found


def _list_model_batch_length_pairs(tensor: Tensor) -> set[tuple[int, int]]:
    """(B, length) of an input of the whole model; an image or a video, whose sides are no sequence, has one order."""
    if tensor.is_floating_point() and tensor.dim() > 3:
        return {(len(tensor), prod(tensor.shape[2:]))}
    return _list_batch_length_pairs(tensor, None)


def _list_partition_batch_sizes(tensor: Tensor, heads: int | None) -> set[int]:
    sizes = _list_position_axis_sizes(tensor)
    if len(sizes) < 3 or heads in sizes[1:]:
        return set()
    return {prod(sizes), sizes[0] * prod(tensor.shape[2:])}


# The module that makes a call: read off the stack, so that nothing need be put on the model.


@dataclass(frozen=True)
class ModuleCall:
    """The call of one module that is running."""

    path: str
    module: nn.Module
    frame: FrameType

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the module was called with, those in lists, tuples and mappings too."""
        found = self.frame.f_locals
        if is_module_call(self.frame):
            return tuple(iterate_tensors((found.get("args"), found.get("kwargs"))))
        names = self.frame.f_code.co_varnames[1 : self.frame.f_code.co_argcount]
        return tuple(iterate_tensors([found.get(name) for name in names]))


_FRAME_TOKEN = "the call that Attenscope sees"
"""No name that a variable can have."""


@dataclass(frozen=True)
class CallSite:
    """Where on the stack a call was made."""

    path: str
    """The path of the innermost module, leaving out those that are nothing but a softmax."""
    module: nn.Module
    calls: tuple[ModuleCall, ...]
    """The modules that are running, from that one outwards: each with what it was called with."""
    run: FrameType | None
    """The outermost call of a method, such as forward or encode: one run of the model is one frame.

    Where that method calls its own module's forward, as generate does once a step, it is that forward.
    """
    forward: FrameType | None
    """The outermost forward within the run."""
    fast_path: bool
    """Whether torch's fused path would have been taken had nobody observed it."""
    in_beam_search: bool
    """Whether a method that is running has beams in its name."""

    @property
    def frame(self) -> FrameType | None:
        """The call of the module itself; None where only a method of it was called."""
        return next((call.frame for call in self.calls if call.module is self.module), None)


def find_call_site(modules: Mapping[int, tuple[str, nn.Module]]) -> CallSite | None:
    """Return the site of the call being made; None when it is not made by one of `modules` (by id: path and module)."""
    nearest: tuple[str, nn.Module] | None = None
    methods: list[tuple[FrameType, nn.Module]] = []
    calls: list[ModuleCall] = []
    fast_path = False
    for frame, (path, module) in _iterate_module_frames(modules):
        if nearest is None and not is_torch_leaf_module(module):
            nearest = path, module
        fast_path = fast_path or _is_fast_path_prevented_by_capture(frame, module)
        if not is_module_call(frame):
            methods.append((frame, module))
            continue
        if nearest is None:
            continue
        if calls and calls[-1].module is module:  # two frames of one call
            calls.pop()
        calls.append(ModuleCall(path, module, frame))
    if methods and not (calls and calls[-1].module is methods[-1][1]):  # a method of the model, such as encode
        calls.append(ModuleCall(modules[id(methods[-1][1])][0], methods[-1][1], methods[-1][0]))
    if nearest is None:
        return None
    beams = any("beam" in frame.f_code.co_name for frame, _ in methods)
    return CallSite(*nearest, tuple(calls), *_find_run_frames(methods), fast_path, beams)


def _find_run_frames(calls: list[tuple[FrameType, nn.Module]]) -> tuple[FrameType | None, FrameType | None]:
    """(run, outermost forward) of the calls on the stack, which are given from the inside out."""
    if not calls:
        return None, None
    outermost, outer_module = calls[-1]
    forwards = [(frame, module) for frame, module in reversed(calls) if frame.f_code.co_name == "forward"]
    own = (frame for frame, module in forwards if module is outer_module)
    return next(own, outermost), forwards[0][0] if forwards else None


def _iterate_module_frames(
    modules: Mapping[int, tuple[str, nn.Module]],
) -> Iterator[tuple[FrameType, tuple[str, nn.Module]]]:
    """Yield, from the inside out, the frames of functions whose first argument is one of the modules."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            if isinstance(first, nn.Module) and id(first) in modules:
                yield frame, modules[id(first)]
        frame = frame.f_back


def get_frame_identity(frame: FrameType | None) -> object | None:
    """Return what stands for a frame, always the same for the same one; None for None.

    Whoever holds a frame holds all of its variables and those of its callers, here the weights of a layer. The token is
    kept with torch's own frame around a forward where there is one: a model that asks for ``locals()`` sees its own.
    """
    if frame is None:
        return None
    around = frame.f_back
    own = around if around is not None and is_module_call(around) else frame
    return own.f_locals.setdefault(_FRAME_TOKEN, object())


def is_torch_leaf_module(module: nn.Module) -> bool:
    """Whether a module is torch's own, such as nn.Softmax: a step of an attention and not one."""
    return type(module).__module__.startswith("torch.nn.") and not isinstance(module, nn.MultiheadAttention)


def _is_fast_path_prevented_by_capture(frame: FrameType, module: nn.Module) -> bool:
    """Whether only watching keeps a forward from the fast path: torch checks for gradients later, and finds none."""
    if not is_fast_path_overridden(frame):
        return False
    inputs = (frame.f_locals.get(name) for name in ("query", "key", "value", "src"))
    tensors = [*module.parameters(), *(value for value in inputs if isinstance(value, torch.Tensor))]
    return not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))


def iterate_tensors(values: Any) -> Iterator[Tensor]:
    """Yield the tensors of a value, through lists, tuples and mappings."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, Mapping):
        yield from (found for value in values.values() for found in iterate_tensors(value))
    elif isinstance(values, list | tuple):
        yield from (found for value in values for found in iterate_tensors(value))
