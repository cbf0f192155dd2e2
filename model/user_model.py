"""Models named on the command line: ``package.module:factory``, ``hf:FOLDER``, or a directory of such folders.

The factory takes no arguments and returns either

- a :class:`.translate.Translator`, which then stands among the checkpoints on every page, or
- ``(module, run)``: any nn.Module, and a function that runs it on one sentence and returns its tokens, a list of
  strings or ``{"source": [...], "target": [...], "predicted": [...]}`` as :data:`.text.words.TokenNames` says.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from .hugging_face.folder import FOLDER_PREFIX, find_adapter_specs, find_model_folders, open_model_folder
from .language import say
from .runnable_model import LocalError, LocalModel, RunnableModel, one_line_error_text

__all__ = ["LocalError", "LocalModel", "list_named_folders", "load_user_model", "read_option"]

MODEL_OPTION = "--model"
MODELS_OPTION = "--models"


def list_named_folders(arguments: Sequence[str]) -> dict[str, str]:
    """Return what :func:`load_user_model` takes for each model in the directory of ``--models``, by its folder's name.

    Raises LocalError for a directory that is not there or holds no model.
    """
    directory = read_option(arguments, MODELS_OPTION)
    if directory is None:
        return {}
    folders = find_model_folders(Path(directory).expanduser())
    if not folders:
        raise LocalError(
            say(
                "{option} {directory}: no folder in it holds a Hugging Face model (config.json).",
                option=MODELS_OPTION,
                directory=directory,
            )
        )
    specs = {folder.name: str(folder) for folder in folders} | find_adapter_specs(Path(directory).expanduser())
    return {name: f"{FOLDER_PREFIX}{spec}" for name, spec in specs.items()}


def read_option(arguments: Sequence[str], name: str = MODEL_OPTION) -> str | None:
    """Return what stands after an option such as ``--model``, or after it and ``=``; None where it is not given."""
    for at, argument in enumerate(arguments):
        if argument == name:
            return arguments[at + 1] if at + 1 < len(arguments) else ""
        if argument.startswith(f"{name}="):
            return argument.removeprefix(f"{name}=")
    return None


def load_user_model(spec: str) -> RunnableModel | LocalModel:
    """Load the folder, or import the module, also from the current folder, and call the factory. Raises LocalError."""
    if spec.startswith(FOLDER_PREFIX):
        return open_model_folder(spec.removeprefix(FOLDER_PREFIX))
    path, colon, name = spec.partition(":")
    if not (path and colon and name):
        raise LocalError(
            say("{option} {spec}: write it as package.module:factory, or as hf:FOLDER.", option=MODEL_OPTION, spec=spec)
        )
    found = _call_factory(_import_factory(path, name, spec), spec)
    if isinstance(found, RunnableModel):
        return found
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], nn.Module) and callable(found[1]):
        return LocalModel(spec.rpartition(".")[2], *found)
    raise LocalError(
        say(
            "{option} {spec}: the factory returned {found}. It must return a Translator, or (module, run) with "
            "run(text) -> tokens.",
            option=MODEL_OPTION,
            spec=spec,
            found=type(found).__name__,
        )
    )


def _import_factory(path: str, name: str, spec: str) -> Callable[[], Any]:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        factory = getattr(importlib.import_module(path), name, None)
    except Exception as error:  # importing runs a stranger's code
        raise LocalError(
            say(
                "{option} {spec}: {module} cannot be imported: {error}",
                option=MODEL_OPTION,
                spec=spec,
                module=path,
                error=one_line_error_text(error),
            )
        ) from error
    if not callable(factory):
        raise LocalError(
            say(
                "{option} {spec}: {module} has no function {function}.",
                option=MODEL_OPTION,
                spec=spec,
                module=path,
                function=name,
            )
        )
    return factory


def _call_factory(factory: Callable[[], Any], spec: str) -> Any:
    try:
        return factory()
    except Exception as error:  # as above
        raise LocalError(
            say(
                "{option} {spec}: the factory failed: {error}",
                option=MODEL_OPTION,
                spec=spec,
                error=one_line_error_text(error),
            )
        ) from error
