"""Read and write the folder of a checkpoint: weights, configuration and tokenizer."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
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
from ..fast_linear import reorder_linear_weights
from ..language import join_items, say
from ..network.config import TransformerConfig
from ..network.transformer import Transformer
from ..text.tokenizer import Tokenizer, TokenizerError
from . import FOLDER_VARIABLE

# A checkpoint: a model with its tokenizer and facts.


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model with its tokenizer and the facts of its card."""

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
    write_file(folder / WEIGHTS_FILE, weights)
    write_file(folder / TOKENIZER_FILE, checkpoint.tokenizer.model)
    hashes = {WEIGHTS_FILE: sha256_hex(weights), TOKENIZER_FILE: sha256_hex(checkpoint.tokenizer.model)}
    facts = {"model": dataclasses.asdict(checkpoint.model.config), "card": checkpoint.card, "sha256": hashes}
    write_checkpoint_config(folder, facts)


def to_safetensors(weights: Mapping[str, Tensor], dtype: torch.dtype = torch.float16) -> bytes:
    """Return the bytes of a safetensors file of the weights."""
    return save({name: tensor.to("cpu", dtype).contiguous() for name, tensor in weights.items()})


def load_checkpoint(name: str | Path, device: torch.device | str = "cpu") -> Checkpoint:
    """Return a checkpoint by its name below checkpoints/ or its folder, in float32 and eval mode.

    Raises CheckpointError.
    """
    folder = find_checkpoint_folder(name)
    facts = read_checkpoint_config(folder)
    config = parse_config(folder, facts)
    data = read_verified_file(folder, WEIGHTS_FILE, facts)
    tokenizer_bytes = read_verified_file(folder, TOKENIZER_FILE, facts)
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
                    file=TOKENIZER_FILE,
                )
            )
    file = f"{folder.name}/{WEIGHTS_FILE}"
    model = build_model(config, read_weights(data, file), file).to(device)
    reorder_linear_weights(model)
    return Checkpoint(folder.name, model, tokenizer, facts["card"], sha256_hex(data)[:12])


class _SkipInitialisation(TorchFunctionMode):
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


MAX_POSITION_TABLE_SIZE = 2**26
"""The most numbers that a table of positions may have: 256 MB, 26 times as many as of any preset."""


def build_model(config: TransformerConfig, weights: Mapping[str, Tensor], name: str) -> Transformer:
    """Return a model of `config` with these weights, in eval mode.

    Raises CheckpointError, naming the tensor of `name` that does not fit.
    """
    _check_config_size(config, weights, name)
    with _SkipInitialisation():
        model = Transformer(config)
    _load_weights(model, weights, name)
    return model.eval()


def _check_config_size(config: TransformerConfig, weights: Mapping[str, Tensor], name: str) -> None:
    """Raise CheckpointError where the configuration asks for far more than there is, before memory is taken for it."""
    layers = config.encoder_layers + config.decoder_layers
    table = config.max_length * config.d_model  # of positions: in no file if sinusoidal, and so bounded by itself
    least = config.d_model * (config.target_vocab_size + layers * (4 * config.d_model + 2 * config.feed_forward))
    there = sum(weight.numel() for weight in weights.values())
    if least > 100 * max(there, 10_000) or table > MAX_POSITION_TABLE_SIZE:
        raise CheckpointError(
            say(
                "{name} has {there:,} numbers, but the configuration asks for at least {least:,}.",
                name=name,
                there=there,
                least=max(least, table),
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


def read_weights(data: bytes, name: str) -> dict[str, Tensor]:
    """Return the tensors in the bytes of a safetensors file. Raises CheckpointError, which calls it `name`."""
    try:
        return load(data)
    except KeyError as error:  # of a type of numbers that torch has not
        raise CheckpointError(
            say("{name} is not a safetensors file: {error}.", name=name, error=f"dtype {error}")
        ) from error
    except SafetensorError as error:
        raise CheckpointError(say("{name} is not a safetensors file: {error}.", name=name, error=error)) from error


WEIGHT_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""The types of numbers that weights may be stored in: of those of 8 bits, torch cannot say whether they are finite."""


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
                dtype=_get_dtype_name(weight.dtype),
            )
        )
    if weight.dtype not in WEIGHT_DTYPES:
        known = join_items(repr(_get_dtype_name(dtype)) for dtype in WEIGHT_DTYPES)
        raise CheckpointError(
            say(
                "{name} is {value!r}; it must be one of {known}.",
                name=name,
                value=_get_dtype_name(weight.dtype),
                known=known,
            )
        )
    if not torch.isfinite(weight).all():
        raise CheckpointError(
            say("{name} holds NaN or infinite numbers: the file is damaged, or its training failed.", name=name)
        )


def _get_dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# The folder of a released model: weights (safetensors), configuration and facts (JSON), tokenizer. No pickle.
#
# The configuration holds the hashes of the other files, so that a damaged or mixed-up folder is refused by name
# instead of translating badly.


WEIGHTS_FILE, CONFIG_FILE, TOKENIZER_FILE = "model.safetensors", "config.json", "tokenizer.model"
ARCHITECTURE_KEY = "architecture"
"""The name of the hash of what config.json says of the model."""


def _find_checkpoints_folder() -> Path:
    """Return the folder that FOLDER_VARIABLE names, else the one in the installed package, else the project's."""
    here = Path(__file__).resolve()
    project, package = (here.parents[up] / "checkpoints" for up in (2, 1))
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else package if package.is_dir() else project


CHECKPOINTS_FOLDER = _find_checkpoints_folder()
OUTPUT_FOLDER = (
    Path("checkpoints") if CHECKPOINTS_FOLDER.parent == Path(__file__).resolve().parents[1] else CHECKPOINTS_FOLDER
)
"""Where a training puts a finished checkpoint: never into an installed package, but below the current folder."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message names the file and the fault."""


def list_checkpoints(folder: Path = CHECKPOINTS_FOLDER) -> list[str]:
    """Return the names of the checkpoints in a folder, sorted."""
    return sorted(path.parent.name for path in folder.glob(f"*/{CONFIG_FILE}"))


def find_checkpoint_folder(name: str | Path) -> Path:
    """Return the folder of a checkpoint given by its name below checkpoints/ or by its folder.

    Raises CheckpointError.
    """
    given, released = Path(name), CHECKPOINTS_FOLDER / name
    folder = given if (given / CONFIG_FILE).is_file() or not released.is_dir() else released
    if not folder.is_dir():
        known = join_items(list_checkpoints()) or say("none yet")
        raise CheckpointError(
            say("There is no checkpoint {name!r}. Give a folder, or one of: {known}.", name=str(name), known=known)
        )
    return folder


def write_checkpoint_config(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write config.json, which :func:`read_checkpoint_config` reads, with the hash of the architecture in it."""
    hashes = {**facts["sha256"], ARCHITECTURE_KEY: hash_architecture(facts["model"])}
    write_file(folder / CONFIG_FILE, json.dumps({**facts, "sha256": hashes}, indent=2, ensure_ascii=False) + "\n")


def read_checkpoint_config(folder: Path) -> dict[str, Any]:
    """Return what a checkpoint's config.json says: "model", "card" and "sha256". Raises CheckpointError."""
    path = folder / CONFIG_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            say(
                "{folder} has no {config}; a checkpoint is {weights}, {config} and {tokenizer}.",
                folder=folder.name,
                config=CONFIG_FILE,
                weights=WEIGHTS_FILE,
                tokenizer=TOKENIZER_FILE,
            )
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            say("{folder}/{config} cannot be read: {error}.", folder=folder.name, config=CONFIG_FILE, error=error)
        ) from error
    if not isinstance(found, dict) or not all(isinstance(found.get(key), dict) for key in ("model", "card", "sha256")):
        raise CheckpointError(
            say(
                '{folder}/{config} must hold the objects "model", "card" and "sha256".',
                folder=folder.name,
                config=CONFIG_FILE,
            )
        )
    return found


def parse_config(folder: Path, facts: dict[str, Any]) -> TransformerConfig:
    """Return the architecture that config.json describes, whose hash it gives. Raises CheckpointError."""
    try:
        config = TransformerConfig.from_json(json.dumps(facts["model"]))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{folder.name}/{CONFIG_FILE}: {error}") from error
    if facts["sha256"].get(ARCHITECTURE_KEY) != hash_architecture(facts["model"]):
        raise CheckpointError(
            say(
                "{folder}/{config} is damaged: the architecture is not the one whose hash it gives. Restore the "
                "folder from its source.",
                folder=folder.name,
                config=CONFIG_FILE,
            )
        )
    return config


def read_verified_file(folder: Path, name: str, facts: dict[str, Any]) -> bytes:
    """Return the bytes of a file, whose hash is the one the configuration gives. Raises CheckpointError."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise CheckpointError(
            say("{folder} has no readable {name}: {strerror}.", folder=folder.name, name=name, strerror=error.strerror)
        ) from error
    if sha256_hex(data) != facts["sha256"].get(name):
        raise CheckpointError(
            say(
                "{folder}/{name} is damaged or belongs to another checkpoint: its hash is not the one in "
                "{config}. Restore the folder from its source.",
                folder=folder.name,
                name=name,
                config=CONFIG_FILE,
            )
        )
    return data


def hash_architecture(model: Mapping[str, Any]) -> str:
    """Return the hash of what a configuration says of the architecture, whatever the order of its fields."""
    return sha256_hex(json.dumps(model, sort_keys=True).encode())


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
