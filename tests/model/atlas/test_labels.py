"""Labels of planted heads, of random ones, and of one half of a corpus against the other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import Tensor

from attenscope.atlas.build import Corpus, build_atlas
from attenscope.atlas.files import ATLAS_FOLDER
from attenscope.atlas.query import LEAST_AGREEMENT, Atlas, find_best_pattern_label, label_head, open_atlas
from attenscope.atlas.teacher_forced_batches import PLACE_NAMES, Place
from attenscope.capture.attention import find_attention_sites
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, load_checkpoint
from attenscope.network.hooks import OutputHook, hook_outputs
from attenscope.network.transformer import Transformer
from attenscope.text.tokenizer import Tokenizer
from attenscope.trace import Head
from attenscope.translate import Translator
from tests import toy

PLANTED: tuple[Place, ...] = ("previous", "same_word", "punctuation", "first", "next", "last")
COPIES = "the dog and the dog and the cat."
STRENGTH = 12.0
"""Added to a score: a key that is meant gets nearly all of the weight."""


def meant(place: Place, ids: Tensor, tokenizer: Tokenizer) -> Tensor:
    """The keys that a planted head is to look at, from the ids of the source (B, S): (B, S, S) bool."""
    rows, columns = torch.meshgrid(*[torch.arange(ids.shape[1])] * 2, indexing="ij")
    full_stops = torch.tensor([[tokenizer.token(one).strip() == "." for one in row] for row in ids.tolist()])
    last = (ids > 3).sum(-1, keepdim=True) - 1
    return {
        "previous": (columns == rows - 1).expand(len(ids), -1, -1),
        "next": (columns == rows + 1).expand(len(ids), -1, -1),
        "first": (columns == 0).expand(len(ids), -1, -1),
        "same_word": (ids[:, :, None] == ids[:, None, :]) & (rows != columns),
        "punctuation": full_stops[:, None, :].expand(-1, ids.shape[1], -1),
        "last": (columns[None] == last[:, :, None]),
    }[place]


@contextmanager
def planted(model: Transformer, heads: dict[Head, Place], tokenizer: Tokenizer) -> Iterator[None]:
    """Encoder heads that look at places, whatever their weights are."""
    ids: list[Tensor] = []

    def scores(layer: int) -> OutputHook:
        def changed(found: Tensor) -> Tensor:
            found = found.clone()
            for (_, own, head), place in heads.items():
                if own == layer:
                    found[:, head] += STRENGTH * meant(place, ids[-1], tokenizer)
            return found

        return changed

    encode = model.encode

    def remembered(source: Tensor, mask: Tensor | None = None) -> Tensor:
        ids.append(source)
        return encode(source, mask)

    model.encode = remembered  # type: ignore[method-assign]
    sites = [site for site in find_attention_sites(model) if site.kind == "encoder"]
    with hook_outputs({site.module.get_submodule("scores"): scores(site.layer) for site in sites}):
        yield


@pytest.mark.sweep
def test_every_planted_head_is_found_and_no_random_one_is_labelled(tmp_path: Path) -> None:
    pairs = [*toy.sentences(40, seed=8), *[(COPIES, toy.translation(COPIES))] * 30]
    for name, side in (("a.en", 0), ("a.de", 1)):
        # Every other sentence ends without a full stop: else punctuation and the last token would be the same place.
        lines = [pair[side].removesuffix("." * (at % 2)) for at, pair in enumerate(pairs)]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    corpus = Corpus.read(tmp_path / "a.en", tmp_path / "a.de", 100)
    for seed in range(10):
        model = toy.random_model(seed, heads=4, d_model=32)
        chosen = random.Random(seed)
        places = chosen.sample(PLANTED, 4)
        where: list[Head] = [("encoder", layer, head) for layer in range(2) for head in range(4)]
        heads = dict(zip(chosen.sample(where, 4), places, strict=True))
        translator = Translator(toy.checkpoint(model))
        folder = tmp_path / str(seed)
        with planted(model, heads, translator.tokenizer):
            build_atlas(translator, corpus, folder, costs=False)
        atlas = open_atlas(folder, translator.name, translator.checkpoint.hash)
        labels = {head: atlas.label(head).place for head in atlas.names}
        assert {head: place for head, place in labels.items() if place} == heads, seed


def test_a_label_needs_more_than_chance_and_more_than_few_rows() -> None:
    def row(share: float, even: float, has: float) -> pd.Series:
        return pd.Series({"punctuation_rows": share, "punctuation_even": even, "punctuation_has": has})

    assert label_head(row(0.87, 0.0, 1.0), 500).text == f"{PLACE_NAMES['punctuation']}: 87% of rows"
    assert label_head(row(0.87, 0.0, 0.5), 500).text == f"{PLACE_NAMES['punctuation']}: 87% of rows that have it"
    assert label_head(row(0.87, 0.8, 1.0), 500).text == "mixed"
    assert label_head(row(0.87, 0.0, 0.1), 500).text == "mixed"
    assert label_head(row(0.53, 0.0, 1.0), 100).text == "mixed"
    assert label_head(row(0.53, 0.0, 1.0), 10_000).place == "punctuation"


def agreement(atlas: Atlas) -> tuple[int, int]:
    """How many heads are labelled by one half, and for how many of them the other half says the same."""
    halves = [atlas.halves[atlas.halves["half"] == half].reset_index(drop=True) for half in (0, 1)]
    same = labelled = 0
    for own, other in (halves, halves[::-1]):
        for at in range(len(own)):
            label = label_head(own.iloc[at], atlas.manifest.sentences // 2)
            if label.place:
                against = find_best_pattern_label(other.iloc[at])
                labelled += 1
                same += against.place == label.place and against.agreement >= LEAST_AGREEMENT
    return labelled, same


def test_labels_of_one_half_are_those_of_the_other() -> None:
    """Of all released models together."""
    found = {}
    for path in sorted(CHECKPOINTS_FOLDER.glob(f"*/{ATLAS_FOLDER}")):
        checkpoint = load_checkpoint(path.parent.name)
        found[checkpoint.name] = agreement(open_atlas(path, checkpoint.name, checkpoint.hash))
    labelled, same = (sum(column) for column in zip(*found.values(), strict=True))
    assert labelled > 30
    assert same >= 0.95 * labelled, found


@pytest.mark.parametrize(
    "path", sorted(CHECKPOINTS_FOLDER.glob(f"*/{ATLAS_FOLDER}")), ids=lambda path: path.parent.name
)
def test_released_atlases_are_small_and_say_whose_text_they_hold(path: Path) -> None:
    checkpoint = load_checkpoint(path.parent.name)
    atlas = open_atlas(path, checkpoint.name, checkpoint.hash)
    assert atlas.manifest.sentences == 500
    assert sum(one.stat().st_size for one in path.rglob("*") if one.is_file()) < 4_000_000
    assert "CC BY" in atlas.manifest.licence
    assert "tatoeba.org" in atlas.manifest.licence
    assert {"cost", "cost_low", "cost_high"} <= set(atlas.heads)
