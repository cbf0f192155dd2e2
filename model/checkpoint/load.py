"""A model with its tokenizer and facts, written to a checkpoint's folder and read from it; see files.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..atomic_write import write_file
from ..language.say import say
from ..network.config import TransformerConfig
from ..network.transformer import Transformer
from ..pytorch.linear import lay_out
from ..text.tokenizer import Tokenizer, TokenizerError
from .files import (
    CONFIG,
    FOLDER,
    TOKENIZER,
    WEIGHTS,
    CheckpointError,
    available,
    config_of,
    folder_of,
    read_facts,
    read_verified,
    sha256,
    write_facts,
)

__all__ = ["CONFIG", "FOLDER", "TOKENIZER", "WEIGHTS", "Checkpoint", "CheckpointError", "available", "load_checkpoint"]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model with all it takes to use it, and to say what it is."""

    name: str
    model: Transformer
    tokenizer: Tokenizer
    card: Mapping[str, Any]
    """Facts: source_language, target_language, data, licence, attribution."""
    hash: str = ""
    """First 12 hexadecimal digits of the SHA-256 of the weights file."""


def unique_weights(model: Transformer) -> dict[str, Tensor]:
    """Return every parameter once: tied and shared ones under the first of their names."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_checkpoint(checkpoint: Checkpoint, folder: Path, dtype: torch.dtype = torch.float16) -> None:
    """Write the folder; the weights in half precision unless another dtype is given."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = to_safetensors(unique_weights(checkpoint.model), dtype)
    write_file(folder / WEIGHTS, weights)
    write_file(folder / TOKENIZER, checkpoint.tokenizer.model)
    hashes = {WEIGHTS: sha256(weights), TOKENIZER: sha256(checkpoint.tokenizer.model)}
    facts = {"model": dataclasses.asdict(checkpoint.model.config), "card": checkpoint.card, "sha256": hashes}
    write_facts(folder, facts)


def to_safetensors(weights: Mapping[str, Tensor], dtype: torch.dtype = torch.float16) -> bytes:
    """Return the bytes of a safetensors file of the weights."""
    return save({name: tensor.to("cpu", dtype).contiguous() for name, tensor in weights.items()})


def load_checkpoint(name: str | Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Return a checkpoint by its name below checkpoints/ or its folder, in float32 and eval mode. CheckpointError."""
    folder = folder_of(name)
    facts = read_facts(folder)
    config = config_of(folder, facts)
    weights = read_verified(folder, WEIGHTS, facts)
    tokenizer_bytes = read_verified(folder, TOKENIZER, facts)
    try:
        tokenizer = Tokenizer(tokenizer_bytes)
    except TokenizerError as error:
        raise CheckpointError(f"{folder.name}: {error}") from error
    for size in (config.vocab_size, config.target_vocab_size):
        if len(tokenizer) != size:
            raise CheckpointError(
                say(
                    "{folder}: the tokenizer has {pieces} pieces, but the model was built for {size}; "
                    "{file} belongs to another checkpoint.",
                    folder=folder.name,
                    pieces=len(tokenizer),
                    size=size,
                    file=TOKENIZER,
                )
            )
    model = build_model(config, weights, f"{folder.name}/{WEIGHTS}").to(device)
    lay_out(model)
    return Checkpoint(folder.name, model, tokenizer, facts["card"], sha256(weights)[:12])


class _Uninitialised(TorchFunctionMode):
    """A mode that draws no random numbers where a model is built only to be filled: most of the time of loading.

    torch.nn.utils.skip_init serves single modules: it leaves buffers empty too, here the table of positions, and unties
    shared weights.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (Tensor.uniform_, Tensor.normal_):
            return args[0]
        return func(*args, **(kwargs or {}))


def build_model(config: TransformerConfig, data: bytes, name: str) -> Transformer:
    """Return a model of `config` with the weights of a safetensors file, in eval mode. CheckpointError."""
    weights = _read_weights(data, name)
    _check_size(config, weights, name)
    with _Uninitialised():
        model = Transformer(config)
    _load_weights(model, weights, name)
    return model.eval()


def _check_size(config: TransformerConfig, weights: Mapping[str, Tensor], name: str) -> None:
    """Raise CheckpointError where the configuration asks for far more than there is, before memory is taken for it."""
    layers = config.encoder_layers + config.decoder_layers
    least = config.d_model * (config.target_vocab_size + layers * (4 * config.d_model + 2 * config.feed_forward))
    there = sum(weight.numel() for weight in weights.values())
    if least > 100 * max(there, 10_000):
        raise CheckpointError(
            say(
                "{name} has {there:,} numbers, but the configuration asks for at least {least:,}.",
                name=name,
                there=there,
                least=least,
            )
        )


def _load_weights(model: Transformer, weights: Mapping[str, Tensor], name: str) -> None:
    """Fill a model; CheckpointError where names or shapes do not fit."""
    wanted = unique_weights(model)
    if missing := sorted(set(wanted) - set(weights)):
        raise CheckpointError(
            say(
                "{name} lacks {count} of the model's tensors, {first} first.",
                name=name,
                count=len(missing),
                first=missing[0],
            )
        )
    if extra := sorted(set(weights) - set(wanted)):
        raise CheckpointError(
            say(
                "{name} has {count} tensors the model does not know, {first} first.",
                name=name,
                count=len(extra),
                first=extra[0],
            )
        )
    with torch.no_grad():
        for key, parameter in wanted.items():
            _check_weight(f"{name}: {key}", weights[key], parameter.shape)
            parameter.copy_(weights[key])


def _read_weights(data: bytes, name: str) -> dict[str, Tensor]:
    try:
        return load(data)
    except SafetensorError as error:
        raise CheckpointError(say("{name} is not a safetensors file: {error}.", name=name, error=error)) from error


def _check_weight(name: str, weight: Tensor, shape: torch.Size) -> None:
    """Raise CheckpointError for a tensor of another shape, and for what no training leaves behind."""
    if weight.shape != shape:
        raise CheckpointError(
            say(
                "{name} has the shape {shape}, but the configuration asks for {wanted}.",
                name=name,
                shape=tuple(weight.shape),
                wanted=tuple(shape),
            )
        )
    if not weight.is_floating_point():
        raise CheckpointError(
            say(
                "{name} holds {dtype}, not floating-point numbers.",
                name=name,
                dtype=str(weight.dtype).removeprefix("torch."),
            )
        )
    if not torch.isfinite(weight).all():
        raise CheckpointError(
            say("{name} holds NaN or infinite numbers: the file is damaged, or its training failed.", name=name)
        )
