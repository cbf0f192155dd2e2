"""Models named on the command line: ``package.module:factory``, ``hf:FOLDER``, or a directory of such folders.

The factory takes no arguments and returns either

- a :class:`~.translate.Translator`, which then stands among the checkpoints on every page, or
- ``(module, run)``: any nn.Module, and a function that runs it on one sentence and returns its tokens, a list of
  strings or ``{"source": [...], "target": [...], "predicted": [...]}`` as :mod:`.token_names` takes them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from .hugging_face.folder import PREFIX, model_folders, open_named
from .language.say import say
from .live.live_model import LiveModel
from .live.local_model import LocalError, LocalModel, in_words

__all__ = ["LocalError", "LocalModel", "load", "named_folders", "option"]

OPTION = "--model"
DIRECTORY = "--models"


def named_folders(arguments: Sequence[str]) -> dict[str, str]:
    """Return what :func:`load` takes for each model of the directory that ``--models`` names, by its folder's name.

    Raises LocalError for a directory that is not there or holds no model.
    """
    directory = option(arguments, DIRECTORY)
    if directory is None:
        return {}
    folders = model_folders(Path(directory).expanduser())
    if not folders:
        raise LocalError(
            say(
                "{option} {directory}: no folder in it holds a Hugging Face model (config.json).",
                option=DIRECTORY,
                directory=directory,
            )
        )
    return {folder.name: f"{PREFIX}{folder}" for folder in folders}


def option(arguments: Sequence[str], name: str = OPTION) -> str | None:
    """Return what stands after an option such as ``--model``, or after it and ``=``; None where it is not given."""
    for at, argument in enumerate(arguments):
        if argument == name:
            return arguments[at + 1] if at + 1 < len(arguments) else ""
        if argument.startswith(f"{name}="):
            return argument.removeprefix(f"{name}=")
    return None


def load(spec: str) -> LiveModel | LocalModel:
    """Load the folder, or import the module, also from the current folder, and call the factory. Raises LocalError."""
    if spec.startswith(PREFIX):
        return open_named(spec.removeprefix(PREFIX))
    path, colon, name = spec.partition(":")
    if not (path and colon and name):
        raise LocalError(
            say("{option} {spec}: write it as package.module:factory, or as hf:FOLDER.", option=OPTION, spec=spec)
        )
    found = _call(_factory(path, name, spec), spec)
    if isinstance(found, LiveModel):
        return found
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], nn.Module) and callable(found[1]):
        return LocalModel(spec.rpartition(".")[2], *found)
    raise LocalError(
        say(
            "{option} {spec}: the factory returned {found}. It must return a Translator, or (module, run) with "
            "run(text) -> tokens.",
            option=OPTION,
            spec=spec,
            found=type(found).__name__,
        )
    )


def _factory(path: str, name: str, spec: str) -> Callable[[], Any]:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        factory = getattr(importlib.import_module(path), name, None)
    except Exception as error:  # importing runs a stranger's code
        raise LocalError(
            say(
                "{option} {spec}: {module} cannot be imported: {error}",
                option=OPTION,
                spec=spec,
                module=path,
                error=in_words(error),
            )
        ) from error
    if not callable(factory):
        raise LocalError(
            say(
                "{option} {spec}: {module} has no function {function}.",
                option=OPTION,
                spec=spec,
                module=path,
                function=name,
            )
        )
    return factory


def _call(factory: Callable[[], Any], spec: str) -> Any:
    try:
        return factory()
    except Exception as error:  # as above
        raise LocalError(
            say("{option} {spec}: the factory failed: {error}", option=OPTION, spec=spec, error=in_words(error))
        ) from error
