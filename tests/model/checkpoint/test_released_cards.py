"""The numbers of the released models' cards, recomputed from what they speak of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from attenscope.checkpoint.load import (
    find_checkpoint_folder,
    list_checkpoints,
    load_checkpoint,
    parse_config,
    read_checkpoint_config,
)
from attenscope.checkpoint.measurements import CARD_FILE, read_scores
from attenscope.network.config import ORIGINAL_PRESET_NOTE, PRESETS, TransformerConfig, make_preset_config
from attenscope.network.transformer import Transformer

MODELS_PAGE = Path(__file__).resolve().parents[3] / "docs" / "models.md"
SIZES = {"vocab_size", "target_vocab_size", "d_model", "heads", "encoder_layers", "decoder_layers", "feed_forward"}
TRAINED_ALIKE = [name for name in list_checkpoints() if name.startswith("preset-")]


def card(name: str) -> str:
    """The card on one line, so that a statement may be broken anywhere."""
    return " ".join((find_checkpoint_folder(name) / CARD_FILE).read_text(encoding="utf-8").split())


def config(name: str) -> TransformerConfig:
    return parse_config(find_checkpoint_folder(name), read_checkpoint_config(find_checkpoint_folder(name)))


@pytest.mark.parametrize("name", list_checkpoints())
def test_parameters(name: str) -> None:
    count = sum(parameter.numel() for parameter in load_checkpoint(name).model.parameters())
    assert f"| parameters | {count:,}, stored in float16 |" in card(name)


@pytest.mark.parametrize("name", list_checkpoints())
def test_the_architecture_in_words(name: str) -> None:
    own, text = config(name), card(name)
    for part in (
        f"{own.norm_order}-norm",
        f"{own.encoder_layers} + {own.decoder_layers} layers",
        f"d_model {own.d_model}, {own.heads} heads, feed-forward {own.feed_forward:,}",
        f"vocabulary of {own.vocab_size:,} pieces",
    ):
        assert part in text


@pytest.mark.parametrize("name", TRAINED_ALIKE)
def test_what_was_trained_otherwise_than_the_preset_says(name: str) -> None:
    own = config(name)
    differ = set(own.differences(make_preset_config(own.preset))) - SIZES - {"max_length", "dropout"}
    row = re.search(r"\| other than its preset \| ([^|]*) \|", card(name))
    assert row
    assert set(re.findall(r"`(\w+)`", row.group(1))) == differ
    assert "sizes" in row.group(1)


def test_the_card_of_original_says_that_it_is_not_the_paper() -> None:
    assert ORIGINAL_PRESET_NOTE in card("preset-original")


def bleu(preset_name: str) -> str:
    scores = read_scores(find_checkpoint_folder(f"preset-{preset_name}"))
    return f"{next(one.bleu for one in scores if one.set == 'Tatoeba dev' and one.beam == 1):.1f}"


@pytest.mark.parametrize("name", [*TRAINED_ALIKE, "docs"])
def test_scores_of_the_presets_beside_each_other(name: str) -> None:
    text = MODELS_PAGE.read_text(encoding="utf-8") if name == "docs" else card(name)
    found = re.findall(rf"`({'|'.join(PRESETS)})` (\d+\.\d)", text)
    assert {name for name, _ in found} == {name.removeprefix("preset-") for name in TRAINED_ALIKE}
    assert all(value == bleu(name) for name, value in found)


@pytest.mark.parametrize("name", [name for name in list_checkpoints() if name not in TRAINED_ALIKE])
def test_the_documents_have_the_scores(name: str) -> None:
    """Each score in a model's row is one of its own with a beam of 4, of the set that it names."""
    (row,) = re.findall(rf"^\| `{name}` \|.*\| (.*beam 4) \|$", MODELS_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    scores = [one for one in read_scores(find_checkpoint_folder(name)) if one.beam == 4]
    said = re.findall(r"\b\d\d\.(\d+)", row)
    rounded = {f"{one.bleu:.{len(digits)}f}" for one in scores for digits in said}
    assert said
    assert set(re.findall(r"\b\d\d\.\d+", row)) <= rounded


def begins_with(**fields: Any) -> tuple[float, float]:
    """How long the scaled token embeddings and the positions are at first, on the mean."""
    torch.manual_seed(0)
    sizes = {"heads": 4, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 8, "max_length": 100}
    model = Transformer(TransformerConfig(**{**sizes, **fields}))
    embedding = model.source_embedding
    tokens = embedding.scale * embedding.table.weight.norm(dim=-1).mean().item()
    return tokens, embedding.positional_encoding.table[1:].norm(dim=-1).mean().item()


def test_how_long_embeddings_are_beside_positions() -> None:
    vocabulary = {"vocab_size": 2500, "target_vocab_size": 2500, "shared_embedding": False, "tied_generator": False}
    vocabulary["d_model"] = 128
    tokens, positions = begins_with(**vocabulary, init="xavier_uniform", scale_embedding=False)
    said = f"{tokens / positions:.2f} times as long as the positions (a norm of {tokens:.1f} beside {positions:.0f})"
    assert said in card("preset-pad_row")

    tokens, positions = begins_with(**vocabulary, init="torch")
    assert f"so that positions are {positions / tokens:.2f} times as long at first" in card("preset-torch_like")
