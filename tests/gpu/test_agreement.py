"""What is computed on the GPU is what is computed on the CPU, up to rounding."""

from __future__ import annotations

import copy
from itertools import product
from pathlib import Path

import pytest
import torch

from attenscope.checkpoint.load import (
    CHECKPOINTS_FOLDER,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
    unique_weights,
)
from attenscope.evaluation.device_check import compare_device_with_cpu
from attenscope.translate import Translator
from tests import toy
from tests.device_work import WORK, assert_same
from tests.model.capture.test_threads import together

pytestmark = pytest.mark.gpu
TEXT = "the small dog sees a cat today."


@pytest.fixture(scope="module")
def there(toy_translator: Translator, gpu: torch.device) -> Translator:
    model = copy.deepcopy(toy_translator.model).to(gpu)
    return Translator(toy.checkpoint(model, toy_translator.name))


@pytest.mark.parametrize("name", list_checkpoints())
def test_a_released_model_over_two_hundred_sentences(name: str, gpu: torch.device) -> None:
    cpu, there = Translator.load(name, "cpu"), Translator.load(name, gpu)
    lines = (CHECKPOINTS_FOLDER / f"sentences.{cpu.card['source_language']}").read_text(encoding="utf-8").splitlines()
    pairs = [" ".join(pair) for pair in product(lines[:20], lines[:10])]
    found = compare_device_with_cpu(cpu, there, [*lines, *pairs][:200])
    assert found.sentences == 200
    assert found.faults == (), found


@pytest.mark.parametrize("name", WORK)
def test_everything_that_pages_compute(there: Translator, toy_translator: Translator, name: str) -> None:
    assert_same(WORK[name](toy_translator, TEXT), WORK[name](there, TEXT), 1e-3)


def test_sixteen_threads_share_one_gpu(there: Translator) -> None:
    texts = [english for english, _ in toy.sentences(16)]
    alone = [there.translate(text) for text in texts]
    found = together([lambda text=text: there.translate(text) for text in texts])  # type: ignore[misc]
    assert_same(alone, found, 1e-5)


def test_a_checkpoint_saved_there_is_the_one_that_was_loaded(
    there: Translator, toy_checkpoint: Path, tmp_path: Path, gpu: torch.device
) -> None:
    save_checkpoint(there.checkpoint, tmp_path / "saved", torch.float32)
    before, after = load_checkpoint(toy_checkpoint), load_checkpoint(tmp_path / "saved", gpu)
    assert next(after.model.parameters()).device.type == gpu.type
    for name, weights in unique_weights(before.model).items():
        assert torch.equal(weights, unique_weights(after.model)[name].cpu())
