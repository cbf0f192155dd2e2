"""A model of somebody's own, named on the command line as ``package.module:factory``.

The factory takes no arguments and returns either

- a :class:`~.translate.Translator`, which then stands among the checkpoints on every page, or
- ``(module, run)``: any nn.Module, and a function that runs it on one sentence and returns its tokens, a list of
  strings or ``{"source": [...], "target": [...], "predicted": [...]}`` as :mod:`.token_names` takes them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .capture.attention import capture_attention
from .text.token_names import Tokens
from .trace import TENSORS, AttentionTrace
from .translate import Translator

OPTION = "--model"
RETURN_VALUE = "It must return a Translator, or (module, run) with run(text) -> tokens."


class LocalError(ValueError):
    """A factory that gives no model, or a model that cannot read a sentence; the message is the sentence to show."""


@dataclass(frozen=True, eq=False)
class LocalModel:
    """A module and the function that runs it."""

    name: str
    model: nn.Module
    run: Callable[[str], Tokens]

    @torch.no_grad()
    def trace(self, text: str) -> AttentionTrace:
        """Everything the module attends to while it reads `text`. Raises LocalError with what the function raised."""
        try:
            with capture_attention(self.model, TENSORS) as capture:
                capture.tokens = self.run(text)
            return capture.sample(0)
        except Exception as error:  # a stranger's code may raise anything, and the server goes on
            raise LocalError(f"{self.name} could not read this sentence: {_in_words(error)}") from error


def option(arguments: Sequence[str]) -> str | None:
    """Return what stands after ``--model``, or ``--model=``; None where it is not given."""
    for at, argument in enumerate(arguments):
        if argument == OPTION:
            return arguments[at + 1] if at + 1 < len(arguments) else ""
        if argument.startswith(f"{OPTION}="):
            return argument.removeprefix(f"{OPTION}=")
    return None


def load(spec: str) -> Translator | LocalModel:
    """Import the module, also from the current folder, and call the factory. Raises LocalError."""
    path, colon, name = spec.partition(":")
    if not (path and colon and name):
        raise LocalError(f"{OPTION} {spec}: write it as package.module:factory.")
    found = _call(_factory(path, name, spec), spec)
    if isinstance(found, Translator):
        return found
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], nn.Module) and callable(found[1]):
        return LocalModel(spec.rpartition(".")[2], *found)
    raise LocalError(f"{OPTION} {spec}: the factory returned {type(found).__name__}. {RETURN_VALUE}")


def _factory(path: str, name: str, spec: str) -> Callable[[], Any]:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        factory = getattr(importlib.import_module(path), name, None)
    except Exception as error:  # importing runs a stranger's code
        raise LocalError(f"{OPTION} {spec}: {path} cannot be imported: {_in_words(error)}") from error
    if not callable(factory):
        raise LocalError(f"{OPTION} {spec}: {path} has no function {name}.")
    return factory


def _call(factory: Callable[[], Any], spec: str) -> Any:
    try:
        return factory()
    except Exception as error:  # as above
        raise LocalError(f"{OPTION} {spec}: the factory failed: {_in_words(error)}") from error


def _in_words(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__}: {text[:300]}" if text != type(error).__name__ else text
