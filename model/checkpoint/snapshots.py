"""Snapshots of a training: the model at some of its steps, kept small in the folder of its checkpoint.

The two ends of a training are not kept: the recipe's seed makes the random start again, and the end is the checkpoint
itself. Snapshots share the checkpoint's configuration and tokenizer, and config.json holds the hash of each, so that
only files that belong to it are loaded.

A snapshot is a compressed safetensors file. A matrix is kept as its change since the random start, each row in whole
multiples of a step of its own (`_choose_row_steps`): fine where little has changed yet and that little is all there is
to see, coarser where much has. What is said of a snapshot, its scores and its pictures, is said of the weights as kept.
"""

from __future__ import annotations

import dataclasses
import functools
import lzma
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from ..atomic_write import write_file
from ..language import format_number, join_items, say
from ..network.config import TransformerConfig
from ..network.transformer import Transformer
from .load import (
    WEIGHT_DTYPES,
    Checkpoint,
    CheckpointError,
    build_model,
    find_checkpoint_folder,
    parse_config,
    read_checkpoint_config,
    read_verified_file,
    read_weights,
    sha256_hex,
    unique_weights,
    write_checkpoint_config,
)
from .recipe import RECIPE_FILE, Recipe

SNAPSHOTS_FOLDER = "snapshots"
SNAPSHOT_PATTERN = re.compile(rf"{SNAPSHOTS_FOLDER}/step-(\d{{7}})\.safetensors\.xz")
STEPS_SUFFIX = ".row_steps"
START_SAMPLE = "random_start"
"""The name of a few weights of the random start, by which it is known again."""
SAMPLED = 64
DrawStart = Callable[[], Mapping[str, Tensor]]
"""Returns the weights of a training before its first step."""
DECOMPRESSOR_MEMORY = 100_000_000
"""Bytes; a snapshot needs a tenth."""


def list_snapshot_steps(name: str | Path) -> tuple[int, ...]:
    """Return the steps that a checkpoint, by name or folder, has snapshots of; none for most.

    None either where their whole folder is missing, as in the installed package. Raises CheckpointError.
    """
    folder = find_checkpoint_folder(name)
    files = _list_snapshot_files(read_checkpoint_config(folder))
    return tuple(files) if (folder / SNAPSHOTS_FOLDER).is_dir() else ()


def load_snapshot(checkpoint: Checkpoint, step: int, folder: str | Path | None = None) -> Checkpoint:
    """Return the checkpoint as it was at `step`, on the same device; at 0, as its training began.

    `folder` is where it lies, if not under its name. Raises CheckpointError, naming the file and the fault, for a step
    of which there is no sound snapshot, and for step 0 where no recipe has the seed.
    """
    return next(load_snapshots(checkpoint, (step,), folder))


def load_snapshots(
    checkpoint: Checkpoint, steps: Sequence[int], folder: str | Path | None = None
) -> Iterator[Checkpoint]:
    """Yield the checkpoint as it was at each of the steps, as :func:`load_snapshot`; the random start is drawn once."""
    place = find_checkpoint_folder(folder or checkpoint.name)
    config = checkpoint.model.config
    draw_start = functools.cache(lambda: unique_weights(build_random_model(config, read_initial_weight_seed(place))))
    for step in steps:
        yield _load_snapshot(checkpoint, step, place, draw_start)


def _load_snapshot(checkpoint: Checkpoint, step: int, place: Path, draw_start: DrawStart) -> Checkpoint:
    if step == 0:
        return restore_random_initial_weights(checkpoint, read_initial_weight_seed(place))
    facts = read_checkpoint_config(place)
    files = _list_snapshot_files(facts)
    if step not in files:
        known = join_items(format_number(one, ",") for one in files) or say("none")
        raise CheckpointError(
            say("{place} has no snapshot of step {step:,}; it has: {known}.", place=place.name, step=step, known=known)
        )
    config = checkpoint.model.config
    if parse_config(place, facts) != config:
        raise CheckpointError(
            say(
                "The snapshots in {place} are of another architecture than {model}.",
                place=place.name,
                model=checkpoint.name,
            )
        )
    data, name = read_verified_file(place, files[step], facts), f"{place.name}/{files[step]}"
    weights = _unpack(data, name, checkpoint.model, draw_start)
    return _replace_model(checkpoint, build_model(config, weights, name), sha256_hex(data)[:12])


def pack_snapshot(weights: Mapping[str, Tensor], start: Mapping[str, Tensor] | None = None) -> bytes:
    """Return the bytes of the file of a snapshot.

    Args:
        weights: of the model, each under its name.
        start: the weights before the first step, if the seed of the recipe makes them again.
    """
    kept: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim != 2:
            kept[name] = weight.half()
            continue
        change = weight - start[name] if start else weight
        steps = _choose_row_steps(weight, change)
        kept[name], kept[name + STEPS_SUFFIX] = (change / steps[:, None]).round().to(torch.int8), steps
    if start:
        kept[START_SAMPLE] = _sample(start)
    return lzma.compress(save({name: tensor.contiguous() for name, tensor in kept.items()}))


def _choose_row_steps(weight: Tensor, change: Tensor) -> Tensor:
    """Return the step in which each row of a matrix is kept.

    0.6 of the geometric mean of the standard deviations of its weights and of their change, at most 1.5 of the latter.
    A file of 9.9 M weights, 20 MB in half precision, has 0.8 to 1.9 MB up to step 200, and 3.3 MB at step 800; the next
    token has a distribution that differs from that of the exact weights by 0.006 and 0.014 nats (KL divergence).

    Args:
        weight: (rows, columns).
        change: since the random start, as large.
    """
    spread, changed = weight.std(1, correction=0), change.std(1, correction=0)
    steps = torch.minimum(0.6 * (spread * changed).sqrt(), 1.5 * changed)
    return torch.maximum(steps, change.abs().amax(1) / 127).clamp_min(torch.finfo(torch.float32).tiny)


def _sample(start: Mapping[str, Tensor]) -> Tensor:
    """Return some of the weights of a random start, of all of its tensors."""
    each = [start[name].flatten() for name in sorted(start)]
    return torch.cat([one[:: max(1, len(one) // SAMPLED)][:SAMPLED] for one in each])


def _unpack(data: bytes, name: str, model: Transformer, draw_start: DrawStart) -> dict[str, Tensor]:
    """Return the weights of a snapshot of a training of `model`. Raises CheckpointError, naming the fault."""
    most = 4 * sum(weight.numel() for weight in model.parameters()) + 1_000_000
    unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DECOMPRESSOR_MEMORY)
    try:
        unpacked = unpacking.decompress(data, max_length=most)
    except lzma.LZMAError:
        unpacked = b""
    kept = read_weights(unpacked, name) if unpacking.eof else {}
    steps = {one.removesuffix(STEPS_SUFFIX): kept.pop(one) for one in list(kept) if one.endswith(STEPS_SUFFIX)}
    if not kept or not all(one in kept and _is_packed_matrix(kept[one], row) for one, row in steps.items()):
        raise CheckpointError(
            say("{name} is no snapshot of this model: it cannot be unpacked. Restore it from its source.", name=name)
        )
    sample = kept.pop(START_SAMPLE, None)
    start = {} if sample is None else draw_start()
    if sample is not None:
        _check_start(start, sample, name)
    for one, row in steps.items():
        kept[one] = kept[one] * row[:, None]
        if one in start and start[one].shape == kept[one].shape:
            kept[one] += start[one]
    return kept


def _is_packed_matrix(numbers: Tensor, steps: Tensor) -> bool:
    """Whether these may be a matrix and the step of each of its rows, as :func:`pack_snapshot` writes them."""
    sound = numbers.dtype == torch.int8 and steps.dtype in WEIGHT_DTYPES
    return sound and numbers.ndim == 2 and numbers.shape[:1] == steps.shape


def _check_start(start: Mapping[str, Tensor], sample: Tensor, name: str) -> None:
    """Raise CheckpointError where a random start is not the one that `sample` is of."""
    drawn = _sample(start)
    if drawn.shape != sample.shape or not torch.allclose(drawn, sample.float(), atol=1e-4):
        raise CheckpointError(
            say(
                "{name} holds what changed since the random start of its training, but the start that is drawn here "
                "is another: the seed in {recipe} is not that of the training, or PyTorch draws other numbers now.",
                name=name,
                recipe=RECIPE_FILE,
            )
        )


def restore_random_initial_weights(checkpoint: Checkpoint, seed: int) -> Checkpoint:
    """Return the checkpoint with the random weights that the `seed` of its recipe gives."""
    return _replace_model(checkpoint, build_random_model(checkpoint.model.config, seed), f"random {seed}")


def build_random_model(config: TransformerConfig, seed: int) -> Transformer:
    """Return a model as it is before its first step; the random generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(config).eval()


def has_random_initial_weights(name: str | Path) -> bool:
    """Return whether a recipe beside the checkpoint says that its training began with random weights.

    Also True for a recipe that cannot be read: :func:`read_initial_weight_seed` says what is wrong with it.
    """
    path = find_checkpoint_folder(name) / RECIPE_FILE
    try:
        return not Recipe.load(path).begin_from
    except ValueError:
        return path.is_file()


def read_initial_weight_seed(name: str | Path) -> int:
    """Return the seed of a checkpoint's random start, from the recipe beside it.

    Raises CheckpointError where there is no recipe to read it from, or where training began with trained weights.
    """
    folder = find_checkpoint_folder(name)
    try:
        recipe = Recipe.load(folder / RECIPE_FILE)
    except ValueError as error:
        raise CheckpointError(
            say(
                "The random start of {folder} is not known, since the seed is read in its {recipe}. {error}",
                folder=folder.name,
                recipe=RECIPE_FILE,
                error=error,
            )
        ) from error
    if recipe.begin_from:
        raise CheckpointError(
            say("{folder} had no random start: its training began with trained weights.", folder=folder.name)
        )
    return recipe.seed


def copy_snapshots_to_checkpoint(run: Path, folder: Path) -> tuple[int, ...]:
    """Copy the snapshots of a training's folder into a checkpoint's, each packed; return their steps.

    Those of an earlier release are removed. Raises CheckpointError for a file that is no snapshot.
    """
    shutil.rmtree(folder / SNAPSHOTS_FOLDER, ignore_errors=True)
    facts = read_checkpoint_config(folder)
    hashes = {name: one for name, one in facts["sha256"].items() if not SNAPSHOT_PATTERN.fullmatch(name)}
    start = None
    if has_random_initial_weights(folder):
        start = unique_weights(build_random_model(parse_config(folder, facts), read_initial_weight_seed(folder)))
    for path in sorted(run.glob("snapshot-*.safetensors")):
        try:
            data = pack_snapshot(load_file(path), start)
        except SafetensorError as error:
            raise CheckpointError(say("{path} is not a safetensors file: {error}.", path=path, error=error)) from error
        name = f"{SNAPSHOTS_FOLDER}/step-{int(path.stem.removeprefix('snapshot-')):07d}.safetensors.xz"
        (folder / SNAPSHOTS_FOLDER).mkdir(exist_ok=True)
        write_file(folder / name, data)
        hashes[name] = sha256_hex(data)
    write_checkpoint_config(folder, {**facts, "sha256": hashes})
    return list_snapshot_steps(folder)


def _list_snapshot_files(facts: dict[str, Any]) -> dict[int, str]:
    """Return the names of the snapshots that a configuration vouches for, by their steps, in order."""
    found = [match for name in facts["sha256"] if (match := SNAPSHOT_PATTERN.fullmatch(name))]
    return {int(match[1]): match[0] for match in sorted(found, key=lambda match: match[1])}


def _replace_model(checkpoint: Checkpoint, model: Transformer, name: str) -> Checkpoint:
    device = next(checkpoint.model.parameters()).device
    return dataclasses.replace(checkpoint, model=model.to(device), hash=name)
