"""Snapshots of a training: the model at some of its steps, kept in half precision in the checkpoint's folder.

Its two ends are not kept: the recipe's seed makes the random start again, and the end is the checkpoint itself.

They share the checkpoint's configuration and tokenizer. config.json holds the hash of each, so that only the files that
belong to it are loaded.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from ..atomic_write import write_file
from ..language.say import listed, number, say
from ..network.config import TransformerConfig
from ..network.transformer import Transformer
from .files import config_of, folder_of, read_facts, read_verified, sha256, write_facts
from .load import Checkpoint, CheckpointError, build_model, to_safetensors
from .recipe import RECIPE, Recipe

SNAPSHOTS = "snapshots"
NAME = re.compile(rf"{SNAPSHOTS}/step-(\d{{7}})\.safetensors")


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
    weights = read_verified(place, _file(step), facts)
    model = build_model(checkpoint.model.config, weights, f"{place.name}/{_file(step)}")
    return _with(checkpoint, model, sha256(weights)[:12])


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
    """Copy the snapshots of a training's folder into a checkpoint's, in half precision -> their steps.

    Those of an earlier release are removed. CheckpointError for a file that is no snapshot.
    """
    shutil.rmtree(folder / SNAPSHOTS, ignore_errors=True)
    facts = read_facts(folder)
    hashes = {name: one for name, one in facts["sha256"].items() if not NAME.fullmatch(name)}
    for path in sorted(run.glob("snapshot-*.safetensors")):
        try:
            data = to_safetensors(load_file(path))
        except SafetensorError as error:
            raise CheckpointError(say("{path} is not a safetensors file: {error}.", path=path, error=error)) from error
        name = _file(int(path.stem.removeprefix("snapshot-")))
        (folder / SNAPSHOTS).mkdir(exist_ok=True)
        write_file(folder / name, data)
        hashes[name] = sha256(data)
    write_facts(folder, {**facts, "sha256": hashes})
    return snapshot_steps(folder)


def _steps(facts: dict[str, Any]) -> tuple[int, ...]:
    return tuple(sorted(int(found[1]) for found in map(NAME.fullmatch, facts["sha256"]) if found))


def _file(step: int) -> str:
    return f"{SNAPSHOTS}/step-{step:07d}.safetensors"


def _with(checkpoint: Checkpoint, model: Transformer, name: str) -> Checkpoint:
    device = next(checkpoint.model.parameters()).device
    return dataclasses.replace(checkpoint, model=model.to(device), hash=name)
