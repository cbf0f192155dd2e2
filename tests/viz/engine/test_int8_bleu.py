"""What 8 bits a weight lose: the figures that stand in files, measured again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attenscope.checkpoint.load import list_checkpoints
from attenscope.evaluation.quality import measure_int8_quality
from attenscope.training.data import read_pairs
from attenscope.translate import Translator
from attenscope.viz.engine.pack_checkpoint import INT8_BLEU, describe_weights

BENCH = Path(__file__).parents[3] / "bench" / "README.md"
DATA = Path(os.environ.get("ATTENSCOPE_DATA", "/nowhere"))


def test_every_released_model_was_measured_and_loses_little() -> None:
    released = {name: Translator.load(name, "cpu").checkpoint.hash for name in list_checkpoints()}
    assert set(released.values()) == set(INT8_BLEU)
    assert all(abs(found.half - found.int8) < 0.3 for found in INT8_BLEU.values())


def test_the_readme_of_bench_says_how_much_the_models_lose() -> None:
    changes = [found.int8 - found.half for found in INT8_BLEU.values()]
    sentences = [found.sentences for found in INT8_BLEU.values()]
    said = f"BLEU changes by {min(changes):+.2f} to {max(changes):+.2f} on {min(sentences):,} to {max(sentences):,}"
    assert said in " ".join(BENCH.read_text(encoding="utf-8").split())


def test_a_file_says_what_is_known() -> None:
    one, found = next(iter(INT8_BLEU.items()))
    assert f"BLEU {found.int8:.2f}, in half precision {found.half:.2f}" in describe_weights(one, "int8")
    assert describe_weights(one, "half") == "half precision"
    assert describe_weights("another", "int8").endswith("was not measured")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not DATA.is_dir(), reason="set ATTENSCOPE_DATA to the folder that holds tatoeba/dev.en")
@pytest.mark.parametrize("name", list_checkpoints())
def test_the_loss_of_a_model(name: str) -> None:
    translator = Translator.load(name, "cpu")
    found = INT8_BLEU[translator.checkpoint.hash]
    folder, file = found.source.split("/")
    split = file.split(".")[0]
    languages = (translator.card["source_language"], translator.card["target_language"])
    again = measure_int8_quality(
        translator, read_pairs([DATA / folder], *languages, split)[: found.sentences], found.source
    )
    assert (again.half, again.int8) == pytest.approx((found.half, found.int8), abs=0.05)
