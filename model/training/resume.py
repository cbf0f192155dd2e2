"""The state of a training on disk, and what identifies its run: so that no run goes on as another one."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from ..checkpoint.recipe import Recipe
from ..language.say import say
from ..network.config import TransformerConfig
from .data import Batches


@dataclass(frozen=True)
class RunIdentity:
    """All that decides the weights of a run."""

    recipe: Recipe
    config: TransformerConfig
    texts: tuple[str, ...]
    """Hashes of the text of each phase, see :meth:`Batches.texts`."""

    @classmethod
    def of(cls, recipe: Recipe, config: TransformerConfig, batches: Batches) -> Self:
        """Return the identity of a run of this recipe, architecture and text."""
        return cls(recipe, config, batches.texts())

    def check(self, state: dict[str, Any], step: int, path: Path) -> None:
        """Raise ValueError, naming what differs, unless a run of this identity could be in the `state` at its step.

        What only matters later may differ: until its learning rate begins to fall, a run can get more steps, and other
        text for them.
        """
        try:
            saved = RunIdentity(Recipe(**state["recipe"]), TransformerConfig(**state["config"]), state["texts"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                say(
                    "{path} was written by another version of this program. Choose another folder with --state.",
                    path=path,
                )
            ) from error
        found = saved.config.differences(self.config) | self.recipe.mismatches(saved.recipe, step)
        differences = [
            say("{name} was {before!r} and is now {now!r}", name=name, before=before, now=now)
            for name, (before, now) in found.items()
        ]
        begun = 1 + (self.recipe.decay_mixture is not None and step > self.recipe.decay_begins)
        if not differences and tuple(saved.texts[:begun]) != self.texts[:begun]:
            differences = [say("the text of --data or its vocabulary is another")]
        if differences:
            raise ValueError(
                say(
                    "The training in {folder} stands at step {step:,} and was begun otherwise: {differences}. "
                    "Choose another folder with --state, or go on with what it was begun with.",
                    folder=path.parent,
                    step=step,
                    differences="; ".join(differences),
                )
            )


def read_state(path: Path, device: torch.device) -> dict[str, Any]:
    """Return the state of a run.

    ValueError for a file that is damaged, or of a version that did not write the identity of its run.
    """
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ValueError(
            say(
                "{path} is damaged: it is not a state of a training. Choose another folder with --state, or remove it.",
                path=path,
            )
        ) from error
    if not isinstance(state, dict) or "begun" not in state:
        raise ValueError(
            say(
                "{path} does not say what its training was begun with, as an earlier version of this program left "
                "it, so it cannot be gone on from. Choose another folder with --state, or remove it.",
                path=path,
            )
        )
    return state
