"""A folder of Hugging Face transformers, as it is named on the command line: ``hf:FOLDER``.

Nothing is downloaded, no code of the folder runs, and only weights in safetensors are read: nothing is unpickled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from ..language.say import listed, say, sentences, to_say
from ..live.local_model import LocalError, LocalModel

if TYPE_CHECKING:
    from ..live.live_model import LiveModel

PREFIX = "hf:"
CONFIG = "config.json"
SAFE = ("model.safetensors", "model.safetensors.index.json")
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack")
LAYERS = re.compile("layer|block|expert|depth|stage", re.IGNORECASE)
"""Names of numbers of a configuration that say how many modules are made, before any weight is read."""
MOST_LAYERS = 1024
LONGEST = 300
"""Characters of what transformers says of a folder."""
MISSING = to_say(
    "Running a Hugging Face folder takes transformers, which is not installed here: pip install transformers"
)


def model_folders(directory: Path) -> list[Path]:
    """Return the folders under a directory that hold a model, by name: the directory's own children. LocalError."""
    if not directory.is_dir():
        raise LocalError(say("There is no folder {directory}.", directory=directory))
    return sorted(path.parent for path in directory.glob(f"*/{CONFIG}"))


def open_named(name: str) -> LiveModel | LocalModel:
    """Return what runs ``FOLDER`` or ``FOLDER?source=en&target=de``: one that writes, or an encoder, which reads.

    The languages are those of a model that writes many. Raises LocalError.
    """
    path, _, query = name.partition("?")
    languages = dict(parse_qsl(query))
    if unknown := set(languages) - {"source", "target"}:
        raise LocalError(
            say(
                "{prefix}{name}: {unknown} is unknown; write ?source=en&target=de.",
                prefix=PREFIX,
                name=name,
                unknown=listed(sorted(unknown)),
            )
        )
    folder = Path(path).expanduser()
    config = _checked(folder)
    try:
        from . import load
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "transformers":
            raise LocalError(say(MISSING)) from error
        raise
    return _in_sentences(folder, lambda: load.loaded(folder, config, languages))


def _checked(folder: Path) -> Mapping[str, Any]:
    """What the folder's configuration says, where it can be run at all."""
    if not folder.is_dir():
        raise LocalError(say("There is no folder {folder}.", folder=folder))
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except OSError as error:
        raise LocalError(
            say("{folder} has no {config}: it is no folder of a Hugging Face model.", folder=folder.name, config=CONFIG)
        ) from error
    except (ValueError, RecursionError) as error:
        raise LocalError(say("{folder}: {config} is not JSON.", folder=folder.name, config=CONFIG)) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise LocalError(
            say(
                "{folder}: {config} names no model_type, so it is no folder of a Hugging Face model.",
                folder=folder.name,
                config=CONFIG,
            )
        )
    _check_layers(folder, config)
    if "auto_map" in config:
        raise LocalError(
            say("{folder} needs code that comes with it, and code from a folder is never run.", folder=folder.name)
        )
    if not any((folder / name).is_file() for name in SAFE):
        pickled = next((name for name in PICKLED if (folder / name).exists()), None)
        raise LocalError(
            sentences(
                say("{folder} has no weights in safetensors ({file}).", folder=folder.name, file=SAFE[0]),
                say("It has {file}, which is never opened: save it again with model.save_pretrained.", file=pickled)
                if pickled
                else "",
            )
        )
    return config


def _check_layers(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise LocalError where a configuration, or one in it, asks for more modules than any model has."""
    within = [config]
    while within:
        for name, value in within.pop().items():
            if isinstance(value, dict):
                within.append(value)
            elif isinstance(value, (int, float)) and LAYERS.search(name) and value > MOST_LAYERS:
                raise LocalError(
                    say(
                        "{folder}: {config} asks for {name} = {value}; at most {most:,} are made.",
                        folder=folder.name,
                        config=CONFIG,
                        name=name[:LONGEST],
                        value=str(value)[:20],
                        most=MOST_LAYERS,
                    )
                )


def _in_sentences(folder: Path, load: Callable[[], LiveModel | LocalModel]) -> LiveModel | LocalModel:
    """Whatever a damaged or unusual folder raises inside transformers, as one sentence."""
    try:
        return load()
    except LocalError:
        raise
    except Exception as error:  # transformers raises anything, from KeyError to its own
        said = " ".join(str(error).split()) or type(error).__name__
        raise LocalError(say("{folder} cannot be run: {said}", folder=folder.name, said=said[:LONGEST])) from error
