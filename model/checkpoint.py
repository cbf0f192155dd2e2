"""A released model is a folder: weights (safetensors), configuration and facts (JSON), tokenizer. No pickle.

The configuration holds the hashes of the other two files, so that a damaged or mixed-up folder is refused by name
instead of translating badly.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from .config import TransformerConfig
from .tokenizer import Tokenizer, TokenizerError
from .transformer import Transformer

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.model"
FOLDER = Path(__file__).resolve().parent.parent / "checkpoints"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message names the file and the fault."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model with all it takes to use it, and to say what it is."""

    name: str
    model: Transformer
    tokenizer: Tokenizer
    card: dict[str, Any]
    """Facts: source_language, target_language, data, licence, attribution."""
    hash: str = ""
    """First 12 hexadecimal digits of the SHA-256 of the weights file."""


def available(folder: Path = FOLDER) -> list[str]:
    """Names of the checkpoints in a folder, sorted."""
    return sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))


def unique_weights(model: Transformer) -> dict[str, Tensor]:
    """Every parameter once: tied and shared ones under the first of their names."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_checkpoint(checkpoint: Checkpoint, folder: Path, dtype: torch.dtype = torch.float16) -> None:
    """Write the folder; the weights in half precision unless another dtype is given."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = save(
        {name: tensor.to("cpu", dtype).contiguous() for name, tensor in unique_weights(checkpoint.model).items()}
    )
    (folder / WEIGHTS).write_bytes(weights)
    (folder / TOKENIZER).write_bytes(checkpoint.tokenizer.model)
    hashes = {WEIGHTS: _hash(weights), TOKENIZER: _hash(checkpoint.tokenizer.model)}
    described = {"model": dataclasses.asdict(checkpoint.model.config), "card": checkpoint.card, "sha256": hashes}
    (folder / CONFIG).write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def load_checkpoint(name: str | Path, device: torch.device | str = "cpu") -> Checkpoint:
    """A checkpoint by its name below checkpoints/ or by its folder; in float32, ready to evaluate. CheckpointError."""
    folder = Path(name) if Path(name).is_dir() else FOLDER / name
    if not folder.is_dir():
        known = ", ".join(available()) or "none yet"
        raise CheckpointError(f"There is no checkpoint {str(name)!r}. Give a folder, or one of: {known}.")
    described = _described(folder)
    config = _config(folder, described)
    weights = _checked(folder, WEIGHTS, described)
    tokenizer_bytes = _checked(folder, TOKENIZER, described)
    try:
        tokenizer = Tokenizer(tokenizer_bytes)
    except TokenizerError as error:
        raise CheckpointError(f"{folder.name}: {error}") from error
    for size in (config.vocab_size, config.target_vocab_size):
        if len(tokenizer) != size:
            raise CheckpointError(
                f"{folder.name}: the tokenizer has {len(tokenizer)} pieces, but the model was built for {size}; "
                f"{TOKENIZER} belongs to another checkpoint."
            )
    model = Transformer(config)
    load_weights(model, weights, f"{folder.name}/{WEIGHTS}")
    return Checkpoint(folder.name, model.to(device).eval(), tokenizer, described["card"], _hash(weights)[:12])


def load_weights(model: Transformer, data: bytes, name: str) -> None:
    """Fill a model from safetensors bytes; CheckpointError where names or shapes do not fit."""
    try:
        weights = load(data)
    except SafetensorError as error:
        raise CheckpointError(f"{name} is not a safetensors file: {error}.") from error
    wanted = unique_weights(model)
    if missing := sorted(set(wanted) - set(weights)):
        raise CheckpointError(f"{name} lacks {len(missing)} of the model's tensors, {missing[0]} first.")
    if extra := sorted(set(weights) - set(wanted)):
        raise CheckpointError(f"{name} has {len(extra)} tensors the model does not know, {extra[0]} first.")
    with torch.no_grad():
        for key, parameter in wanted.items():
            if weights[key].shape != parameter.shape:
                raise CheckpointError(
                    f"{name}: {key} has the shape {tuple(weights[key].shape)}, but the configuration asks for "
                    f"{tuple(parameter.shape)}."
                )
            parameter.copy_(weights[key])


def _described(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{folder.name} has no {CONFIG}; a checkpoint is {WEIGHTS}, {CONFIG} and {TOKENIZER}."
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{folder.name}/{CONFIG} cannot be read: {error}.") from error
    if not isinstance(described, dict) or not all(
        isinstance(described.get(key), dict) for key in ("model", "card", "sha256")
    ):
        raise CheckpointError(f'{folder.name}/{CONFIG} must hold the objects "model", "card" and "sha256".')
    return described


def _config(folder: Path, described: dict[str, Any]) -> TransformerConfig:
    try:
        return TransformerConfig.from_json(json.dumps(described["model"]))
    except ValueError as error:
        raise CheckpointError(f"{folder.name}/{CONFIG}: {error}") from error


def _checked(folder: Path, name: str, described: dict[str, Any]) -> bytes:
    """The bytes of a file, whose hash is the one the configuration gives."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise CheckpointError(f"{folder.name} has no readable {name}: {error.strerror}.") from error
    if _hash(data) != described["sha256"].get(name):
        raise CheckpointError(
            f"{folder.name}/{name} is damaged or belongs to another checkpoint: its hash is not the one in {CONFIG}. "
            "Restore the folder from its source."
        )
    return data


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
