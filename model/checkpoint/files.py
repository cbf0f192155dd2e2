"""The folder of a released model: weights (safetensors), configuration and facts (JSON), tokenizer. No pickle.

The configuration holds the hashes of the other files, so that a damaged or mixed-up folder is refused by name instead
of translating badly.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..atomic_write import write_file
from ..language.say import listed, say
from ..network.config import TransformerConfig
from . import FOLDER_VARIABLE

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.model"
ARCHITECTURE = "architecture"
"""The name of the hash of what config.json says of the model."""


def _folder() -> Path:
    """The folder that is named, else that of the project; an installed package has the two for use inside it."""
    here = Path(__file__).resolve()
    project, package = (here.parents[up] / "checkpoints" for up in (2, 1))
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else package if package.is_dir() else project


FOLDER = _folder()
OUTPUT = Path("checkpoints") if FOLDER.parent == Path(__file__).resolve().parents[1] else FOLDER
"""Where a training puts a finished checkpoint: never into an installed package, but below the current folder."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message names the file and the fault."""


def available(folder: Path = FOLDER) -> list[str]:
    """Return the names of the checkpoints in a folder, sorted."""
    return sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))


def folder_of(name: str | Path) -> Path:
    """Return the folder of a checkpoint given by its name below checkpoints/ or by its folder. CheckpointError."""
    given, released = Path(name), FOLDER / name
    folder = given if (given / CONFIG).is_file() or not released.is_dir() else released
    if not folder.is_dir():
        known = listed(available()) or say("none yet")
        raise CheckpointError(
            say("There is no checkpoint {name!r}. Give a folder, or one of: {known}.", name=str(name), known=known)
        )
    return folder


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write config.json, which :func:`read_facts` reads, with the hash of the architecture in it."""
    hashes = {**facts["sha256"], ARCHITECTURE: architecture_hash(facts["model"])}
    write_file(folder / CONFIG, json.dumps({**facts, "sha256": hashes}, indent=2, ensure_ascii=False) + "\n")


def read_facts(folder: Path) -> dict[str, Any]:
    """Return what a checkpoint's config.json says: "model", "card" and "sha256". CheckpointError."""
    path = folder / CONFIG
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            say(
                "{folder} has no {config}; a checkpoint is {weights}, {config} and {tokenizer}.",
                folder=folder.name,
                config=CONFIG,
                weights=WEIGHTS,
                tokenizer=TOKENIZER,
            )
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            say("{folder}/{config} cannot be read: {error}.", folder=folder.name, config=CONFIG, error=error)
        ) from error
    if not isinstance(found, dict) or not all(isinstance(found.get(key), dict) for key in ("model", "card", "sha256")):
        raise CheckpointError(
            say(
                '{folder}/{config} must hold the objects "model", "card" and "sha256".',
                folder=folder.name,
                config=CONFIG,
            )
        )
    return found


def config_of(folder: Path, facts: dict[str, Any]) -> TransformerConfig:
    """Return the architecture that config.json describes, whose hash it gives. CheckpointError."""
    try:
        config = TransformerConfig.from_json(json.dumps(facts["model"]))
    except ValueError as error:
        raise CheckpointError(f"{folder.name}/{CONFIG}: {error}") from error
    if facts["sha256"].get(ARCHITECTURE) != architecture_hash(facts["model"]):
        raise CheckpointError(
            say(
                "{folder}/{config} is damaged: the architecture is not the one whose hash it gives. Restore the "
                "folder from its source.",
                folder=folder.name,
                config=CONFIG,
            )
        )
    return config


def read_verified(folder: Path, name: str, facts: dict[str, Any]) -> bytes:
    """Return the bytes of a file, whose hash is the one the configuration gives. CheckpointError."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise CheckpointError(
            say("{folder} has no readable {name}: {strerror}.", folder=folder.name, name=name, strerror=error.strerror)
        ) from error
    if sha256(data) != facts["sha256"].get(name):
        raise CheckpointError(
            say(
                "{folder}/{name} is damaged or belongs to another checkpoint: its hash is not the one in "
                "{config}. Restore the folder from its source.",
                folder=folder.name,
                name=name,
                config=CONFIG,
            )
        )
    return data


def architecture_hash(model: Mapping[str, Any]) -> str:
    """Return the hash of what a configuration says of the architecture, whatever the order of its fields."""
    return sha256(json.dumps(model, sort_keys=True).encode())


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
