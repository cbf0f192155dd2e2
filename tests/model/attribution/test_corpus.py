"""The numbers that are promised, on the released default model and text that is not part of the project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attenscope.attribution.gradients import compute_integrated_gradients
from attenscope.attribution.logit import split_logit, split_score
from attenscope.attribution.methods import DEFAULT_METHOD, record_target_pass
from attenscope.attribution.target import make_piece_target
from attenscope.checkpoint.load import find_checkpoint_folder
from attenscope.evaluation.attribution import measure_attribution, read_attribution_scores
from attenscope.runnable_model import Translation
from attenscope.training.data import SentencePair, read_pairs
from attenscope.translate import Translator

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
def pairs() -> list[SentencePair]:
    return read_pairs([DATA], "en", "de", "dev")


def words(
    translator: Translator, pairs: list[SentencePair], generator: np.random.Generator
) -> Iterator[tuple[Translation, int]]:
    """Random positions of the translations of random sentences."""
    for at in generator.permutation(len(pairs))[:WORDS]:
        translation = translator.translate(pairs[at][0], capture=False)
        yield translation, int(generator.integers(len(translation.target_ids)))


def test_parts_of_logits_and_scores_sum(translator: Translator, pairs: list[SentencePair]) -> None:
    generator = np.random.default_rng(0)
    for translation, place in words(translator, pairs, generator):
        target = make_piece_target(translator, translation, place)
        found = split_logit(translator.model, target, record_target_pass(translator.model, target))
        assert abs(found.sum - found.logit) < 1e-4, translation.source
        kind = ("encoder", "decoder", "cross")[int(generator.integers(3))]
        layer, head, key = (int(generator.integers(count)) for count in (4, 8, len(translation.source_ids)))
        row = min(place, len(translation.source_ids) - 1)
        column = min(key, row) if kind == "decoder" else key
        cell = split_score(translator, translation, kind, layer, head, row, column)  # type: ignore[arg-type]
        assert abs(cell.cells.sum() - cell.score) < 1e-4, translation.source


def test_integrated_gradients_are_complete(translator: Translator, pairs: list[SentencePair]) -> None:
    for translation, place in words(translator, pairs, np.random.default_rng(1)):
        target = make_piece_target(translator, translation, place)
        assert compute_integrated_gradients(translator.model, target).completeness_error < 0.02, translation.source


def test_the_table_beside_the_checkpoint_can_be_made_again(translator: Translator, pairs: list[SentencePair]) -> None:
    kept = read_attribution_scores(find_checkpoint_folder(NAME))
    assert kept is not None
    assert kept.model_hash == translator.checkpoint.hash
    found = measure_attribution(translator, pairs, kept.set, kept.sentences)
    assert found.best_method == kept.best_method == DEFAULT_METHOD
    assert found.methods[0].beats_random >= 0.85
    assert found.loose.area >= 0.9
    assert found.loose.threshold == pytest.approx(kept.loose.threshold, abs=0.02)
