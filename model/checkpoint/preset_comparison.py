"""Checkpoints whose recipes start from a preset: small models of different architectures, trained the same way."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ..language.say import say
from ..network.config import TransformerConfig
from ..network.presets import PRESETS
from .bleu_scores import Score, read_scores
from .files import WEIGHTS, CheckpointError, config_of, read_facts
from .history import HistoryRow, read_history

UNSEEN = ("preset", "vocab_size", "target_vocab_size")


@dataclass(frozen=True)
class PresetModel:
    """A checkpoint whose recipe starts from a preset, without its weights."""

    name: str
    config: TransformerConfig
    parameters: int
    history: tuple[HistoryRow, ...]
    scores: tuple[Score, ...]

    @property
    def released_scores(self) -> tuple[Score, ...]:
        """The scores of the released weights."""
        return tuple(one for one in self.scores if one.step is None)

    @property
    def steps(self) -> int:
        return self.history[-1].step if self.history else 0

    @property
    def dev_bleu(self) -> float | None:
        """The last one measured while training."""
        return next((row.bleu for row in reversed(self.history) if row.bleu is not None), None)


def read_preset_model(folder: Path) -> PresetModel | None:
    """Return what can be compared of a checkpoint, None if its recipe names no preset. Raises a kind of ValueError."""
    if not has_preset(folder):
        return None
    config = config_of(folder, read_facts(folder))
    return PresetModel(folder.name, config, parameter_count(folder), read_history(folder), read_scores(folder))


def differing_fields(found: Sequence[PresetModel]) -> tuple[str, ...]:
    """Return the configuration fields in which not all models are the same, in their order."""
    names = (field.name for field in fields(TransformerConfig) if field.name not in UNSEEN)
    return tuple(name for name in names if len({getattr(one.config, name) for one in found}) > 1)


def has_preset(folder: Path) -> bool:
    """Return whether the recipe beside a checkpoint starts from a preset."""
    try:
        return json.loads((folder / "recipe.json").read_text(encoding="utf-8"))["model"].get("preset") in PRESETS
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False


def parameter_count(folder: Path) -> int:
    """Return the parameters of a checkpoint, counted from its file's header. Raises CheckpointError."""
    weights = folder / WEIGHTS
    try:
        with safe_open(weights, "np") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            say(
                "{parent}/{weights} cannot be read: {error}.",
                parent=weights.parent.name,
                weights=weights.name,
                error=error,
            )
        ) from error
