"""Snapshots of a training: the model at some of its steps, kept small in the checkpoint's folder.

Its two ends are not kept: the recipe's seed makes the random start again, and the end is the checkpoint itself.

They share the checkpoint's configuration and tokenizer. config.json holds the hash of each, so that only the files that
belong to it are loaded.

A snapshot is a safetensors file of what has changed since the random start, or since zero where there was none: each
row of each weight in whole steps of its own, about 2.5 bits a weight once they are compressed. So the first moments, in
which little has changed, are nearly exact. Measured: of a training of 4 + 4 layers of 256, attention moves by 0.2% of
its mass at step 10, 0.6% at step 200 and 5% at step 800; multi30k-en-de loses 1.0 of its 34.8 BLEU at step 1,600.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from ..atomic_write import write_file
from ..language.say import listed, number, say
from ..network.config import TransformerConfig
from ..network.transformer import Transformer
from .files import config_of, folder_of, read_facts, read_verified, sha256, write_facts
from .load import Checkpoint, CheckpointError, model_with, read_weights, unique_weights
from .recipe import RECIPE, Recipe

SNAPSHOTS = "snapshots"
NAME = re.compile(rf"{SNAPSHOTS}/step-(\d{{7}})\.safetensors")
STEPS, SIZES, START = "steps", "sizes", "start"
"""The tensors of a file: (bytes,) whole numbers of steps, 8 bits each, all rows of all weights in turn, as a zlib
stream; (rows,) the size of a step; (weights,) the first number of each weight of the start, to know it by: processors
draw the same random numbers up to rounding."""
TOKENS = ("source_embedding", "target_embedding", "generator")
FINE, FINEST = 0.1, 0.3
"""A step is the root mean square of what its row has changed by; of the row of a token, which every layer reads, at
most `FINE` of what the row itself has, but not less than `FINEST` of the change."""


def snapshot_steps(name: str | Path) -> tuple[int, ...]:
    """The steps that a checkpoint, by name or folder, has snapshots of; none for most. CheckpointError."""
    return _steps(read_facts(folder_of(name)))


def load_snapshot(checkpoint: Checkpoint, step: int, folder: str | Path | None = None) -> Checkpoint:
    """The checkpoint as it was at `step`, on the same device; at 0, as its training began. `folder`: where it lies, if
    not under its name.

    CheckpointError, naming the file and the fault, for a step of which there is no sound snapshot, and for step 0 where
    no recipe says the seed.
    """
    place = folder_of(folder or checkpoint.name)
    if step == 0:
        return random_start(checkpoint, seed_of(place))
    facts = read_facts(place)
    if step not in _steps(facts):
        known = listed(number(one, ",") for one in _steps(facts)) or say("none")
        raise CheckpointError(
            say("{place} has no snapshot of step {step:,}; it has: {known}.", place=place.name, step=step, known=known)
        )
    if config_of(place, facts) != checkpoint.model.config:
        raise CheckpointError(
            say(
                "The snapshots in {place} are of another architecture than {model}.",
                place=place.name,
                model=checkpoint.name,
            )
        )
    data, name = read_verified(place, _file(step), facts), f"{place.name}/{_file(step)}"
    weights = unpacked(data, _start(checkpoint.model.config, place), name)
    return _with(checkpoint, model_with(checkpoint.model.config, weights, name), sha256(data)[:12])


def random_start(checkpoint: Checkpoint, seed: int) -> Checkpoint:
    """The checkpoint with the random weights that its training began with, if the recipe's seed is given."""
    return _with(checkpoint, random_model(checkpoint.model.config, seed), f"random {seed}")


def random_model(config: TransformerConfig, seed: int) -> Transformer:
    """A model as it is before its first step; leaves the random generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(config).eval()


def had_random_start(name: str | Path) -> bool:
    """Whether a recipe beside the checkpoint says that its training began with random weights.

    True too for one that cannot be read: what is wrong with it is said by `seed_of`.
    """
    path = folder_of(name) / RECIPE
    try:
        return not Recipe.load(path).begin_from
    except ValueError:
        return path.is_file()


def seed_of(name: str | Path) -> int:
    """The seed of a checkpoint's random start, in the recipe beside it.

    CheckpointError where there is no recipe to read it in, or where training began with trained weights.
    """
    folder = folder_of(name)
    try:
        recipe = Recipe.load(folder / RECIPE)
    except ValueError as error:
        raise CheckpointError(
            say(
                "The random start of {folder} is not known, since the seed is read in its {recipe}. {error}",
                folder=folder.name,
                recipe=RECIPE,
                error=error,
            )
        ) from error
    if recipe.begin_from:
        raise CheckpointError(
            say("{folder} had no random start: its training began with trained weights.", folder=folder.name)
        )
    return recipe.seed


def release_snapshots(run: Path, folder: Path) -> tuple[int, ...]:
    """Pack the snapshots of a training's folder into a checkpoint's, beside its recipe -> their steps.

    Those of an earlier release are removed. CheckpointError for a file that is no snapshot.
    """
    shutil.rmtree(folder / SNAPSHOTS, ignore_errors=True)
    facts = read_facts(folder)
    hashes = {name: one for name, one in facts["sha256"].items() if not NAME.fullmatch(name)}
    start = _start(config_of(folder, facts), folder)
    for path in sorted(run.glob("snapshot-*.safetensors")):
        data = packed(read_weights(path.read_bytes(), str(path)), start)
        name = _file(int(path.stem.removeprefix("snapshot-")))
        (folder / SNAPSHOTS).mkdir(exist_ok=True)
        write_file(folder / name, data)
        hashes[name] = sha256(data)
    write_facts(folder, {**facts, "sha256": hashes})
    return snapshot_steps(folder)


def packed(weights: Mapping[str, Tensor], start: Mapping[str, Tensor]) -> bytes:
    """Return the file of a snapshot: how far the weights have moved from `start`, in whole steps."""
    steps, sizes = [], []
    for name, begun in start.items():
        now = weights[name].float().reshape(-1, begun.shape[-1])
        moved = now - begun.reshape(now.shape)
        size = _size(moved)
        if name.startswith(TOKENS):
            size = torch.minimum(size, (FINE * _size(now)).clamp_min(FINEST * size))
        steps.append((moved / size.clamp_min(torch.finfo(torch.float32).tiny)).round().clamp(-127, 127).to(torch.int8))
        sizes.append(size[:, 0])
    every = b"".join(one.numpy().tobytes() for one in steps)
    # Neighbours tell nothing of each other, so Huffman coding alone is smaller; but it spends a whole bit on a number.
    ways = (zlib.compressobj(strategy=one) for one in (zlib.Z_HUFFMAN_ONLY, zlib.Z_DEFAULT_STRATEGY))
    data = min((way.compress(every) + way.flush() for way in ways), key=len)
    return save({STEPS: _bytes(data), SIZES: torch.cat(sizes), START: _known_by(start)})


def unpacked(data: bytes, start: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the weights of a snapshot's file that was packed from `start`. CheckpointError, naming the file."""
    found = read_weights(data, name)
    shapes = {one: (int(np.prod(begun.shape[:-1])), begun.shape[-1]) for one, begun in start.items()}
    rows, numbers = (sum(count) for count in ((one for one, _ in shapes.values()), (a * b for a, b in shapes.values())))
    sizes, kept = found.get(SIZES), found.get(STEPS)
    steps = b"" if kept is None else _inflated(kept.numpy().tobytes(), numbers)
    if sizes is None or sizes.shape != (rows,) or sizes.dtype != torch.float32 or len(steps) != numbers:
        raise CheckpointError(
            say("{name} is no snapshot of this architecture: it has not {count:,} numbers.", name=name, count=numbers)
        )
    known, own = found.get(START), _known_by(start)
    if known is None or known.shape != own.shape or not torch.allclose(known, own, atol=1e-4):
        raise CheckpointError(
            say("{name} is the difference from other weights than its training began with here.", name=name)
        )
    every = torch.frombuffer(bytearray(steps), dtype=torch.int8).split([a * b for a, b in shapes.values()])
    weights = {}
    for (one, begun), part, size in zip(
        start.items(), every, sizes.split([count for count, _ in shapes.values()]), strict=True
    ):
        weights[one] = begun + (part.reshape(shapes[one]) * size[:, None]).reshape(begun.shape)
    return weights


def _start(config: TransformerConfig, folder: Path) -> dict[str, Tensor]:
    """The weights that the snapshots in a folder are counted from: the random start, or zeros where there was none."""
    if had_random_start(folder):
        return unique_weights(random_model(config, seed_of(folder)))
    return {name: torch.zeros_like(tensor) for name, tensor in unique_weights(random_model(config, 0)).items()}


def _size(rows: Tensor) -> Tensor:
    """The root mean square of each row."""
    return rows.square().mean(1, keepdim=True).sqrt()


def _known_by(start: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([tensor.flatten()[0] for tensor in start.values()])


def _bytes(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _inflated(data: bytes, count: int) -> bytes:
    """The bytes of a zlib stream, at most one more than `count`; none where it is none."""
    try:
        return zlib.decompressobj().decompress(data, count + 1)
    except zlib.error:
        return b""


def _steps(facts: dict[str, Any]) -> tuple[int, ...]:
    return tuple(sorted(int(found[1]) for found in map(NAME.fullmatch, facts["sha256"]) if found))


def _file(step: int) -> str:
    return f"{SNAPSHOTS}/step-{step:07d}.safetensors"


def _with(checkpoint: Checkpoint, model: Transformer, name: str) -> Checkpoint:
    device = next(checkpoint.model.parameters()).device
    return dataclasses.replace(checkpoint, model=model.to(device), hash=name)
