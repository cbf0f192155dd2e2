"""The numbers that are promised, on the released default model and text that is not part of the project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from model.attribution.gradients import integrated_gradients
from model.attribution.logit_parts import logit_parts
from model.attribution.methods import DEFAULT_METHOD, record_target
from model.attribution.score_parts import score_parts
from model.attribution.target import target_pieces
from model.checkpoint.files import folder_of
from model.evaluation.attribution_measurement import measure
from model.evaluation.attribution_scores import read_attribution_scores
from model.training.data import Pair, read_pairs
from model.translate import Translation, Translator

NAME, WORDS = "everyday-en-de", 500
DATA = Path(os.environ.get("ATTENSCOPE_DATA", "/nowhere")) / "tatoeba"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not DATA.is_dir(), reason="set ATTENSCOPE_DATA to the folder that holds tatoeba/dev.en"),
]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(NAME, "cpu")


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return read_pairs([DATA], "en", "de", "dev")


def words(
    translator: Translator, pairs: list[Pair], generator: np.random.Generator
) -> Iterator[tuple[Translation, int]]:
    """Random positions of the translations of random sentences."""
    for at in generator.permutation(len(pairs))[:WORDS]:
        translation = translator.translate(pairs[at][0], capture=False)
        yield translation, int(generator.integers(len(translation.target_ids)))


def test_parts_of_logits_and_scores_sum(translator: Translator, pairs: list[Pair]) -> None:
    generator = np.random.default_rng(0)
    for translation, place in words(translator, pairs, generator):
        target = target_pieces(translator, translation, place)
        found = logit_parts(translator.model, target, record_target(translator.model, target))
        assert abs(found.sum - found.logit) < 1e-4, translation.source
        kind = ("encoder", "decoder", "cross")[int(generator.integers(3))]
        layer, head, key = (int(generator.integers(count)) for count in (4, 8, len(translation.source_ids)))
        row = min(place, len(translation.source_ids) - 1)
        column = min(key, row) if kind == "decoder" else key
        cell = score_parts(translator, translation, kind, layer, head, row, column)  # type: ignore[arg-type]
        assert abs(cell.cells.sum() - cell.score) < 1e-4, translation.source


def test_integrated_gradients_are_complete(translator: Translator, pairs: list[Pair]) -> None:
    for translation, place in words(translator, pairs, np.random.default_rng(1)):
        target = target_pieces(translator, translation, place)
        assert integrated_gradients(translator.model, target).completeness_error < 0.02, translation.source


def test_the_table_beside_the_checkpoint_can_be_made_again(translator: Translator, pairs: list[Pair]) -> None:
    kept = read_attribution_scores(folder_of(NAME))
    assert kept is not None
    assert kept.model_hash == translator.checkpoint.hash
    found = measure(translator, pairs, kept.set, kept.sentences)
    assert found.best_method == kept.best_method == DEFAULT_METHOD
    assert found.methods[0].beats_random >= 0.85
    assert found.loose.area >= 0.9
    assert found.loose.threshold == pytest.approx(kept.loose.threshold, abs=0.02)
