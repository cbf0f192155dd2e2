"""Which module makes a call: read off the stack, so that nothing need be put on the model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from ....pytorch.torch_internals import fast_path_overridden, is_module_call


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
            return tuple(tensors_in((found.get("args"), found.get("kwargs"))))
        names = self.frame.f_code.co_varnames[1 : self.frame.f_code.co_argcount]
        return tuple(tensors_in([found.get(name) for name in names]))


_TOKEN = "the call that Attenscope sees"
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


def call_site(modules: Mapping[int, tuple[str, nn.Module]]) -> CallSite | None:
    """Return the site of the call being made; None when it is not made by one of `modules` (by id: path and module)."""
    nearest: tuple[str, nn.Module] | None = None
    methods: list[tuple[FrameType, nn.Module]] = []
    calls: list[ModuleCall] = []
    fast_path = False
    for frame, (path, module) in _frames(modules):
        if nearest is None and not is_leaf(module):
            nearest = path, module
        fast_path = fast_path or _would_be_fused(frame, module)
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
    return CallSite(*nearest, tuple(calls), *_run(methods), fast_path, beams)


def _run(calls: list[tuple[FrameType, nn.Module]]) -> tuple[FrameType | None, FrameType | None]:
    """(run, outermost forward) of the calls on the stack, which are given from the inside out."""
    if not calls:
        return None, None
    outermost, outer_module = calls[-1]
    forwards = [(frame, module) for frame, module in reversed(calls) if frame.f_code.co_name == "forward"]
    own = (frame for frame, module in forwards if module is outer_module)
    return next(own, outermost), forwards[0][0] if forwards else None


def _frames(modules: Mapping[int, tuple[str, nn.Module]]) -> Iterator[tuple[FrameType, tuple[str, nn.Module]]]:
    """Yield, from the inside out, the frames of functions whose first argument is one of the modules."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            if isinstance(first, nn.Module) and id(first) in modules:
                yield frame, modules[id(first)]
        frame = frame.f_back


def token_of(frame: FrameType | None) -> object | None:
    """Return what stands for a frame, always the same for the same one; None for None.

    Whoever holds a frame holds all of its variables and those of its callers, here the weights of a layer. The token is
    kept with torch's own frame around a forward where there is one: a model that asks for ``locals()`` sees its own.
    """
    if frame is None:
        return None
    around = frame.f_back
    own = around if around is not None and is_module_call(around) else frame
    return own.f_locals.setdefault(_TOKEN, object())


def is_leaf(module: nn.Module) -> bool:
    """nn.Softmax and the like, which are steps of an attention and not one."""
    return type(module).__module__.startswith("torch.nn.") and not isinstance(module, nn.MultiheadAttention)


def _would_be_fused(frame: FrameType, module: nn.Module) -> bool:
    """Whether watching is the first reason against the fast path, and gradients, which come after it, are none."""
    if not fast_path_overridden(frame):
        return False
    inputs = (frame.f_locals.get(name) for name in ("query", "key", "value", "src"))
    tensors = [*module.parameters(), *(value for value in inputs if isinstance(value, torch.Tensor))]
    return not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))


def tensors_in(values: Any) -> Iterator[Tensor]:
    """Yield the tensors of a value, through lists, tuples and mappings."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, Mapping):
        yield from (found for value in values.values() for found in tensors_in(value))
    elif isinstance(values, list | tuple):
        yield from (found for value in values for found in tensors_in(value))
