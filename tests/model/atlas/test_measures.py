"""Measures of batches against a loop over single traces; costs, links and parts of speech against their definitions."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from attenscope.atlas import measure, teacher_forced_batches
from attenscope.atlas.build import Corpus, build_atlas
from attenscope.atlas.measure import measure_heads
from attenscope.atlas.teacher_forced_batches import Sentence, make_batches, run_batch
from attenscope.checkpoint.load import list_checkpoints
from attenscope.network import transformer
from attenscope.network.config import PRESETS, make_preset_config
from attenscope.translate import Translator
from tests import toy
from tests.model.atlas.slow_loop import slow_measures

CLOSE = 1e-5
TEXT = (
    "the dog, the small dog sees a cat.",
    "a cat likes the cat",
    "the child finds a house and the tree here.",
    "dog",
)


def corpus_of(folder: Path, pairs: list[tuple[str, str]], size: int = 4) -> Corpus:
    folder.mkdir(parents=True, exist_ok=True)
    for name, side in (("a.en", 0), ("a.de", 1)):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return Corpus.read(folder / "a.en", folder / "a.de", size)


def pairs() -> list[tuple[str, str]]:
    return [*((text, text) for text in TEXT), *toy.sentences(6, seed=5)]


def check(translator: Translator, folder: Path, corpus: Corpus, heads: int) -> None:
    """Every measure of so many heads, drawn at random, is that of the slow loop."""
    build_atlas(translator, corpus, folder)
    table = pd.read_parquet(folder / "heads.parquet").set_index(["map", "layer", "head"])
    rows = pd.read_parquet(folder / "sentences.parquet")
    languages = translator.card["source_language"], translator.card["target_language"]
    sentences = []
    for line, source, target in zip(rows["sentence"], rows["source"], rows["target"], strict=True):
        ids = translator.encode(source).ids, translator.encode(target).ids
        sentences.append(
            Sentence.from_source_and_target(int(line), (source, target), ids, translator.tokenizer, languages)
        )
    expected = slow_measures(translator, sentences)
    chosen = random.Random(0).sample(sorted(table.index), min(heads, len(table)))
    compared = 0
    for head in chosen:
        for name in table.columns:
            value = table.loc[head, name]
            if (head, name) in expected:
                assert value == pytest.approx(expected[head, name], abs=CLOSE), (head, name)
                compared += 1
            else:
                assert np.isnan(value) or name.endswith("_has") or name.startswith("cost_"), (head, name)
    assert compared > 20 * len(chosen)


def test_measures_of_batches_are_those_of_single_traces(
    toy_translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher_forced_batches, "TOKENS_A_BATCH", 90)
    monkeypatch.setattr(measure, "TOKENS_A_PASS", 100)
    check(toy_translator, tmp_path / "atlas", corpus_of(tmp_path / "text", pairs()), 12)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it switches 96 heads off, one sentence at a time
@pytest.mark.parametrize("name", list_checkpoints())
def test_measures_of_released_models(name: str, tmp_path: Path) -> None:
    """20 heads on 100 sentences of the released atlas."""
    translator = Translator.load(name, "cpu")
    rows = pd.read_parquet(Path("checkpoints") / name / "atlas" / "sentences.parquet")[:100]
    corpus = corpus_of(tmp_path / "text", list(zip(rows["source"], rows["target"], strict=True)), 50)
    check(translator, tmp_path / "atlas", corpus, 20)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_costs_and_logits_of_every_architecture(name: str, toy_translator: Translator) -> None:
    """One sentence by itself and padded beside longer ones: the same, whatever the order of the norms."""
    torch.manual_seed(0)
    sizes = {"vocab_size": toy.VOCABULARY, "target_vocab_size": toy.VOCABULARY, "d_model": 32, "heads": 2}
    more = {"encoder_layers": 2, "decoder_layers": 2, "feed_forward": 64, "max_length": 64, "dropout": 0.0}
    model = transformer.Transformer(make_preset_config(name, **sizes, **more)).eval()
    translator = Translator(toy.checkpoint(model))
    tokenizer = translator.tokenizer
    sentences = [
        Sentence.from_source_and_target(
            line, pair, (tokenizer.encode(pair[0]).ids, tokenizer.encode(pair[1]).ids), tokenizer, ("en", "de")
        )
        for line, pair in enumerate(pairs()[:5])
    ]
    (batch,) = make_batches(sentences, torch.device("cpu"))
    found = measure_heads(model, run_batch(model, batch))
    expected = slow_measures(translator, batch.sentences)
    for (head, measured), value in expected.items():
        kind, layer, number = head
        sums = found.sums[kind][measured]
        assert sums.total[:, layer, number].sum() / sums.rows[:, layer, number].sum() == pytest.approx(value, abs=CLOSE)
