"""The card that stands beside a model just trained: its facts, and the place where its scores go."""

from __future__ import annotations

from pathlib import Path

from .bleu_scores import SECTION
from .load import Checkpoint
from .recipe import RECIPE, Recipe

FACTS = ("data", "licence", "attribution")


def model_card(checkpoint: Checkpoint, recipe: Recipe, folder: Path) -> str:
    """Markdown; what a person knows of the model, such as its weaknesses, is left to them to add."""
    title = recipe.facts.get("title", f"{recipe.source_language} to {recipe.target_language}")
    rows = {
        "architecture": _architecture(checkpoint),
        "parameters": f"{sum(one.numel() for one in checkpoint.model.parameters()):,}, stored in float16",
        **{name: recipe.facts[name] for name in FACTS if name in recipe.facts},
        "training": _training(recipe),
    }
    table = "\n".join(f"| {name} | {_cell(text)} |" for name, text in rows.items())
    return (
        f"# {recipe.name}\n\n{title}.\n\n| | |\n|---|---|\n{table}\n\n"
        f"## Scores\n\nComputed by `python -m model evaluate`.\n\n{SECTION.empty}\n"
        f"## Reproduce\n\n    python -m model train --config {folder / RECIPE} --data FOLDER\n"
    )


def _architecture(checkpoint: Checkpoint) -> str:
    config = checkpoint.model.config
    return (
        f"encoder-decoder Transformer, {config.norm_order}-norm, {config.encoder_layers} + {config.decoder_layers} "
        f"layers, d_model {config.d_model}, {config.heads} heads, feed-forward {config.feed_forward:,}, one joint BPE "
        f"vocabulary of {config.vocab_size:,} pieces"
    )


def _training(recipe: Recipe) -> str:
    falls = {
        "linear": f"the last {recipe.decay_steps:,} falling to zero",
        "inverse_sqrt": "then falling as step ** -0.5",
    }
    return (
        f"{recipe.steps:,} steps of about {recipe.tokens_per_batch:,} tokens, seed {recipe.seed}; peak rate "
        f"{recipe.peak_rate:g} after {recipe.warmup_steps:,} steps, {falls[recipe.schedule]}; "
        f"the mean of the weights at the last evaluations, {recipe.average} at most"
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
