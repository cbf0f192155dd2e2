"""Describe a checkpoint: its model card, list entry, preset comparison and parameter counts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ..language import replace_commands_when_installed, say, to_say
from ..network.config import PRESETS, TransformerConfig
from ..network.transformer import Transformer
from .load import WEIGHTS_FILE, Checkpoint, CheckpointError, parse_config, read_checkpoint_config, unique_weights
from .measurements import SCORES_SECTION, HistoryRow, Score, read_history, read_scores
from .recipe import RECIPE_FILE, Recipe

# The model card of a model just trained: its facts, and the place where its scores go.


CARD_FACTS = ("data", "licence", "attribution")


def make_model_card(checkpoint: Checkpoint, recipe: Recipe, folder: Path) -> str:
    """Return Markdown; what a person knows of the model, such as its weaknesses, is theirs to add."""
    title = recipe.facts.get("title", f"{recipe.source_language} to {recipe.target_language}")
    rows = {
        "architecture": _architecture_text(checkpoint),
        "parameters": f"{sum(one.numel() for one in checkpoint.model.parameters()):,}, stored in float16",
        **{name: recipe.facts[name] for name in CARD_FACTS if name in recipe.facts},
        "training": _training_text(recipe),
    }
    table = "\n".join(f"| {name} | {_escape_cell(text)} |" for name, text in rows.items())
    evaluates, trains = map(replace_commands_when_installed, ("python -m model evaluate", "python -m model train"))
    return (
        f"# {recipe.name}\n\n{title}.\n\n| | |\n|---|---|\n{table}\n\n"
        f"## Scores\n\nComputed by `{evaluates}`.\n\n{SCORES_SECTION.empty}\n"
        f"## Reproduce\n\n    {trains} --config {folder / RECIPE_FILE} --data FOLDER\n"
    )


def _architecture_text(checkpoint: Checkpoint) -> str:
    config = checkpoint.model.config
    return (
        f"encoder-decoder Transformer, {config.norm_order}-norm, {config.encoder_layers} + {config.decoder_layers} "
        f"layers, d_model {config.d_model}, {config.heads} heads, feed-forward {config.feed_forward:,}, one joint BPE "
        f"vocabulary of {config.vocab_size:,} pieces"
    )


def _training_text(recipe: Recipe) -> str:
    falls = {
        "linear": f"the last {recipe.decay_steps:,} falling to zero",
        "inverse_sqrt": "then falling as step ** -0.5",
    }
    if recipe.tuning_steps:
        falls["linear"] = (
            f"{recipe.decay_steps:,} steps falling to zero at step {recipe.last_step_before_tuning:,}, the last "
            f"{recipe.tuning_steps:,} falling from {recipe.tuning_rate:g} to zero"
        )
    return (
        f"{recipe.steps:,} steps of about {recipe.tokens_per_batch:,} tokens, seed {recipe.seed}; peak rate "
        f"{recipe.peak_rate:g} after {recipe.warmup_steps:,} steps, {falls[recipe.schedule]}; "
        f"the mean of the weights at the last evaluations, {recipe.average} at most"
    )


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# An entry in a list of checkpoints: languages, title, size and score. No weights are loaded for it.


PRESET_GROUP = to_say("Presets, trained alike")


@dataclass(frozen=True)
class CheckpointSummary:
    """One checkpoint in a list."""

    name: str
    title: str
    """What it is, as its card says; "" where the card says nothing."""
    source_language: str
    """Its code, such as "en"; "" where the card does not name it. The same holds for the target language."""
    target_language: str
    parameters: int
    score: Score | None
    """The first score kept of the released weights, with the widest beam; None where none is kept."""
    preset: bool
    """Whether its recipe starts from a preset."""


def summarise_checkpoint(folder: Path) -> CheckpointSummary:
    """Return what a list says of a checkpoint. Raises a kind of ValueError for one that cannot be read."""
    card = {key: str(value) for key, value in read_checkpoint_config(folder)["card"].items()}
    kept = [one for one in read_scores(folder) if one.step is None]
    score = max(kept, key=lambda one: one.beam, default=None)
    languages = card.get("source_language", ""), card.get("target_language", "")
    preset = has_preset(folder)
    return CheckpointSummary(folder.name, card.get("title", ""), *languages, count_parameters(folder), score, preset)


def group_by_direction(
    found: Iterable[CheckpointSummary], names: Mapping[str, str]
) -> dict[str, list[CheckpointSummary]]:
    """Return checkpoints by direction, in the words of `names` (code -> language); those of presets by themselves."""
    groups: dict[str, list[CheckpointSummary]] = {}
    for one in sorted(found, key=lambda one: one.preset):
        source, target = (names.get(code, code) for code in (one.source_language, one.target_language))
        direction = f"{source} → {target}".strip(" →") or say("Others")
        groups.setdefault(say(PRESET_GROUP) if one.preset else direction, []).append(one)
    return groups


# Checkpoints whose recipes start from a preset: small models of different architectures, trained the same way.


IGNORED_FIELDS = ("preset", "vocab_size", "target_vocab_size")


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
    config = parse_config(folder, read_checkpoint_config(folder))
    return PresetModel(folder.name, config, count_parameters(folder), read_history(folder), read_scores(folder))


def find_differing_fields(found: Sequence[PresetModel]) -> tuple[str, ...]:
    """Return the configuration fields in which not all models are the same, in their order."""
    names = (field.name for field in fields(TransformerConfig) if field.name not in IGNORED_FIELDS)
    return tuple(name for name in names if len({getattr(one.config, name) for one in found}) > 1)


def has_preset(folder: Path) -> bool:
    """Return whether the recipe beside a checkpoint starts from a preset."""
    try:
        return json.loads((folder / RECIPE_FILE).read_text(encoding="utf-8"))["model"].get("preset") in PRESETS
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return False


def count_parameters(folder: Path) -> int:
    """Return the parameters of a checkpoint, counted from its file's header. Raises CheckpointError."""
    weights = folder / WEIGHTS_FILE
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


# The parameters of a model by part, and the tensors of its state dict.


PART_NAMES = {
    "source_embedding": to_say("embeddings"),
    "target_embedding": to_say("embeddings"),
    "encoder": to_say("encoder"),
    "decoder": to_say("decoder"),
    "generator": to_say("generator"),
}


@dataclass(frozen=True)
class StateTensor:
    """One entry of the state dict."""

    name: str
    shape: tuple[int, ...]
    part: str
    shared_with: str = ""
    """The earlier name of the same tensor, or nothing."""

    @property
    def parameters(self) -> int:
        return math.prod(self.shape)


def list_state_tensors(model: Transformer) -> tuple[StateTensor, ...]:
    """Return every entry of ``model.state_dict()``, in its order; tied ones name the entry that they are."""
    first: dict[int, str] = {}
    found = []
    for name, tensor in model.state_dict(keep_vars=True).items():
        earlier = first.setdefault(id(tensor), name)
        part = PART_NAMES.get(name.partition(".")[0], "other")
        found.append(StateTensor(name, tuple(tensor.shape), part, "" if earlier == name else earlier))
    return tuple(found)


def count_parameters_by_part(model: Transformer) -> dict[str, int]:
    """Return the trained numbers of embeddings, encoder, decoder and generator, each counted where it stands first.

    A matrix that is shared counts once: an output projection tied to the embedding leaves the generator 0.
    """
    counts = dict.fromkeys(PART_NAMES.values(), 0)
    for name, tensor in unique_weights(model).items():
        counts[PART_NAMES[name.partition(".")[0]]] += tensor.numel()
    return counts
