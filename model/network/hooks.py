"""The one way to look into a model or to change what it does: a function on a module's output, for one thread.

After baukit's nethook: a hook that returns a tensor replaces the output, one that returns None only reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ..torch_internals import get_forward_hooks

OutputHook = Callable[[Tensor], Tensor | None]

_observers: ContextVar[tuple[object, ...]] = ContextVar("observers", default=())


@contextmanager
def declare_observer(observer: object) -> Iterator[None]:
    """Declare that `observer` observes whatever this thread runs inside the block.

    A model is shared by everyone in the process, so "somebody observes" may not be read from the hooks found on it. It
    is a context variable instead: set while a capture or an intervention is open in *this* thread of execution, and
    invisible to all others.
    """
    _observers.set((*_observers.get(), observer))
    try:
        yield
    finally:
        # Not reset(token): a suspended generator may end after a later observer began, or in another context.
        _observers.set(tuple(one for one in _observers.get() if one is not observer))


def is_observed() -> bool:
    """Whether anybody observes what the current thread runs."""
    return bool(_observers.get())


def is_observing(observer: object) -> bool:
    """Whether this very observer observes what the current thread runs; a hook asks this before it acts."""
    return any(one is observer for one in _observers.get())


class HookPoint(nn.Identity):
    """A named place at which a forward hook may read or replace a tensor, and next to nothing where there is none.

    A decoding step passes eighty of them, and torch's own call takes a microsecond, or four with a hook: so the hooks
    are called here, as torch calls plain forward hooks.
    """

    def __call__(self, x: Tensor) -> Tensor:
        for hook in tuple(get_forward_hooks(self).values()):  # another thread may add or remove one meanwhile
            replaced = hook(self, (x,), x)
            x = x if replaced is None else replaced
        return x


@contextmanager
def hook_outputs(functions: Mapping[nn.Module, OutputHook]) -> Iterator[None]:
    """Call each function with its module's output, inside the block and in this thread only.

    The model may be shared: other threads run through the same hooks, which then do nothing. No hook remains when
    the block ends, however it ends.
    """
    observer = object()
    with ExitStack() as stack:
        stack.enter_context(declare_observer(observer))
        for module, function in functions.items():
            stack.callback(module.register_forward_hook(_make_output_hook(observer, function)).remove)
        yield


@contextmanager
def replace_modules(modules: Mapping[nn.Module, nn.Module]) -> Iterator[None]:
    """Let each module's calls be answered by another one, given the same arguments, inside the block in this thread."""
    observer = object()
    with ExitStack() as stack:
        stack.enter_context(declare_observer(observer))
        for module, other in modules.items():
            hook = module.register_forward_hook(_make_replacement_hook(observer, other), with_kwargs=True)
            stack.callback(hook.remove)
        yield


def _make_replacement_hook(observer: object, other: nn.Module) -> Callable[..., Any]:
    def hook(module: nn.Module, arguments: Any, named: Any, output: Any) -> Any:
        return other(*arguments, **named) if is_observing(observer) else None

    return hook


def _make_output_hook(observer: object, function: OutputHook) -> Callable[..., Any]:
    def hook(module: nn.Module, arguments: Any, output: Tensor) -> Tensor | None:
        return function(output) if is_observing(observer) else None

    return hook


@dataclass(frozen=True)
class Stream:
    """A tensor that comes out of a module, or goes into it; the first of several."""

    module: nn.Module
    before: bool = False


@contextmanager
def hook_streams(functions: Mapping[Stream, OutputHook]) -> Iterator[None]:
    """Call each function with its stream, inside the block and in this thread only; what it returns goes on instead."""
    observer = object()
    with declare_observer(observer), ExitStack() as stack:
        for stream, function in functions.items():
            if stream.before:
                hook = _make_input_hook(observer, function)
                stack.callback(stream.module.register_forward_pre_hook(hook, with_kwargs=True).remove)
            else:
                stack.callback(stream.module.register_forward_hook(_make_stream_hook(observer, function)).remove)
        yield


def _make_input_hook(observer: object, function: OutputHook) -> Callable[..., Any]:
    """On the first argument, named where none is not."""

    def hook(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if not is_observing(observer):
            return None
        first = given[0] if given else next(iter(named.values()))
        changed = function(first)
        if changed is None:
            return None
        return ((changed, *given[1:]), named) if given else (given, {**named, next(iter(named)): changed})

    return hook


def _make_stream_hook(observer: object, function: OutputHook) -> Callable[..., Any]:
    """On the output, or the first of several."""

    def hook(module: nn.Module, given: Any, output: Any) -> Any:
        if not is_observing(observer):
            return None
        changed = function(output[0] if isinstance(output, tuple) else output)
        return changed if changed is None or not isinstance(output, tuple) else (changed, *output[1:])

    return hook


@contextmanager
def record_streams(streams: Mapping[str, Stream]) -> Iterator[dict[str, Tensor]]:
    """Record the last tensor of each stream by its name."""
    found: dict[str, Tensor] = {}

    def make_hook(name: str) -> OutputHook:
        return lambda tensor: found.update({name: tensor.detach()})

    with hook_streams({stream: make_hook(name) for name, stream in streams.items()}):
        yield found


@contextmanager
def record_outputs(model: nn.Module, *paths: str) -> Iterator[dict[str, Tensor]]:
    """Record the last output of modules by path, e.g. ``encoder.layers.0.after_feed_forward.stream``."""
    found: dict[str, Tensor] = {}
    modules = {model.get_submodule(path): path for path in paths}

    def make_hook(path: str) -> OutputHook:
        return lambda output: found.update({path: output.detach()})

    with hook_outputs({module: make_hook(path) for module, path in modules.items()}):
        yield found
