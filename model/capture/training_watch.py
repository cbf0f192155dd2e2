"""The attention of fixed inputs while a model is trained: a trace every so many steps, written into a folder.

    watched = watch(model, lambda: model(x), every=500, to="my-run")
    for batch in batches:
        ...
        watched.step()

The model is observed in eval mode without gradients; its mode and torch's random numbers are afterwards as they were
before, and the training goes on as if nobody had looked.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..text.words import TokenNames
from ..trace import AttentionTrace, Kind
from .attention import capture_attention

TRACE_FILE_NAME = "step-{step:07d}.safetensors"


@dataclass(eq=False)
class TrainingWatch:
    """Traces of one input at the steps of a training; see :func:`watch`."""

    model: nn.Module
    run: Callable[[], Any]
    every: int
    folder: Path
    tokens: TokenNames | None
    modules: Collection[str] | Mapping[str, Kind]
    at: int = 0
    """Steps trained so far."""

    def step(self, number: int | None = None) -> None:
        """Count a step that has just been trained, or say its `number`; every so many, a trace is written."""
        self.at = self.at + 1 if number is None else number
        if self.at % self.every == 0:
            self.record()

    def record(self) -> AttentionTrace:
        """Write a trace of the model as it is now, and return it. TraceError where nothing can be captured."""
        with (
            _preserve_training_state(self.model),
            capture_attention(self.model, modules=self.modules, tokens=self.tokens) as seen,
        ):
            self.run()
        trace = seen.sample(0)
        trace = dataclasses.replace(trace, settings={**trace.settings, "step": self.at})
        trace.save(self.folder / TRACE_FILE_NAME.format(step=self.at))
        return trace


def watch(
    model: nn.Module,
    run: Callable[[], Any],
    *,
    every: int = 500,
    to: str | os.PathLike[str],
    tokens: TokenNames | None = None,
    modules: Collection[str] | Mapping[str, Kind] = (),
) -> TrainingWatch:
    """Begin to watch the training of a model: a trace now, and one at every `every` steps that are counted.

    Args:
        model: any that ``capture_attention`` can record.
        run: runs the model on one fixed input; of a batch, its first sample is kept.
        every: steps between two traces.
        to: the folder of the traces, made where it is not there; ``attenscope open`` shows it.
        tokens, modules: as for ``capture_attention``.

    Raises ValueError for fewer than one step, and TraceError where nothing can be captured.
    """
    if every < 1:
        raise ValueError(f"every={every}: give a number of steps of at least 1.")
    folder = Path(to)
    folder.mkdir(parents=True, exist_ok=True)
    watched = TrainingWatch(model, run, every, folder, tokens, modules)
    watched.record()
    return watched


@contextmanager
def _preserve_training_state(model: nn.Module) -> Iterator[None]:
    """Eval mode, no gradients, and random numbers of its own; afterwards every module is in the mode that it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng():
            yield
    finally:
        for module in training:
            module.training = True
