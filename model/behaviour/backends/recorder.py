"""The outputs of all layers of a model, call after call, and its attention where it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...capture.foreign.recording import ForeignRecording
from ...capture.foreign.watcher import watch
from ..hugging_face import output_of
from .batch import OUTPUT

_recordings: ContextVar[list[ForeignRecording] | None] = ContextVar("recordings", default=None)


@dataclass
class Recorder:
    """The outputs of the layers of one model, call after call."""

    model: nn.Module
    calls: dict[str, list[Tensor]] = field(default_factory=dict)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Note what the layers give inside the block, and their attention where :func:`recorded` asks for it."""
        handles = [module.register_forward_hook(partial(self._note, path)) for path, module in layers_of(self.model)]
        kept = _recordings.get()
        try:
            with contextlib.nullcontext() if kept is None else watch(self.model) as attention:
                yield
        finally:
            for handle in handles:
                handle.remove()
        if kept is not None and attention is not None:
            kept.append(attention)

    def _note(self, path: str, module: nn.Module, args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        if isinstance(first, Tensor) and first.dim() == 3:
            self.calls.setdefault(path, []).append(first.detach())

    @torch.no_grad()
    def run(self, **given: Any) -> Any:
        """Run the model without gradients, note its output, and return what it returned."""
        found = self.model(**given)
        self.calls.setdefault(OUTPUT, []).append(output_of(found).detach())
        return found

    def joined(self) -> dict[str, Tensor]:
        """Return the outputs of all calls below each other: (B, T, D) by path."""
        return {path: torch.cat(parts, 1) for path, parts in self.calls.items()}


@contextlib.contextmanager
def recorded() -> Iterator[list[ForeignRecording]]:
    """Record the attention of all that runs inside the block: one recording of each batch, or of each sample alone."""
    kept: list[ForeignRecording] = []
    token = _recordings.set(kept)
    try:
        yield kept
    finally:
        _recordings.reset(token)


def layers_of(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the modules in the outermost lists of modules, in order: the layers."""
    lists = [path for path, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    outer = [path for path in lists if not any(path.startswith(f"{other}.") for other in lists)]
    return [(f"{path}.{name}", child) for path in outer for name, child in model.get_submodule(path).named_children()]
