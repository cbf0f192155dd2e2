"""Many people, one model in one process: everybody sees their own sentence and nobody else's experiment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from attenscope.capture.attention import capture_attention
from attenscope.network.hooks import hook_outputs
from attenscope.network.transformer import Transformer
from attenscope.runnable_model import Translation
from attenscope.trace import AttentionTrace
from attenscope.translate import Translator
from tests import toy
from tests.model.network.test_hooks import hooks_on

ROOT = Path(__file__).parents[3]
THREADS = 16


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Python changes threads a thousand times as often as usual, so that a mix-up cannot hide."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


def together(work: Sequence[Callable[[], object]]) -> list[object]:
    """Run all at once, each in its thread, none before all are ready."""
    ready = threading.Barrier(len(work))

    def started(task: Callable[[], object]) -> object:
        ready.wait()
        return task()

    with ThreadPoolExecutor(len(work)) as pool:
        return [future.result() for future in [pool.submit(started, task) for task in work]]


def assert_same(one: AttentionTrace, other: AttentionTrace) -> None:
    assert one.maps.keys() == other.maps.keys() == {"encoder", "decoder", "cross"}
    for kind, mine in one.maps.items():
        theirs = other.maps[kind]
        assert mine.query_tokens == theirs.query_tokens
        assert mine.key_tokens == theirs.key_tokens
        np.testing.assert_array_equal(mine.mask, theirs.mask)
        np.testing.assert_array_equal(mine.weights, theirs.weights)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(toy.checkpoint(toy.random_model()))


def test_sixteen_threads_get_their_own_traces(translator: Translator) -> None:
    texts = [english for english, _ in toy.sentences(THREADS)]
    assert len(set(texts)) == THREADS
    alone = [translator.translate(text, max_tokens=8) for text in texts]

    def work(text: str) -> Callable[[], list[Translation]]:
        return lambda: [translator.translate(text, max_tokens=8) for _ in range(2)]

    for expected, found in zip(alone, together([work(text) for text in texts]), strict=True):
        assert isinstance(found, list)
        for translation in found:
            assert translation.target_ids == expected.target_ids
            assert translation.trace.source == expected.source
            assert_same(translation.trace, expected.trace)
    assert hooks_on(translator.model) == 0


def test_uncaptured_and_intervening_threads_beside_a_capture(translator: Translator) -> None:
    """A third each captures, translates without capture, and replaces all cross-attention by an even spread."""
    model = translator.model
    texts = [english for english, _ in toy.sentences(6, seed=5)]
    points = [layer.get_submodule("cross_attention.weights") for layer in model.decoder.layers]

    def even(weights: Tensor) -> Tensor:
        return torch.full_like(weights, 1 / weights.shape[-1])

    def capturing(text: str) -> Translation:
        return translator.translate(text, max_tokens=8)

    def uncaptured(text: str) -> Translation:
        return translator.translate(text, max_tokens=8, capture=False)

    def intervening(text: str) -> Translation:
        with hook_outputs(dict.fromkeys(points, even)):
            return translator.translate(text, max_tokens=8)

    tasks = [partial(task, text) for text in texts for task in (capturing, uncaptured, intervening)]
    alone = [task() for task in tasks]
    found = together(tasks)
    for number, (expected, translation) in enumerate(zip(alone, found, strict=True)):
        assert isinstance(expected, Translation)
        assert isinstance(translation, Translation)
        assert translation.steps == expected.steps
        if number % 3 == 1:
            assert translation.captured is None
            continue
        assert_same(translation.trace, expected.trace)
        assert translation.trace.cross is not None
        spread = translation.trace.cross.weights == np.float32(1 / len(translation.source_tokens))
        assert spread.all() == (number % 3 == 2)
    assert hooks_on(model) == 0


def test_a_capture_ends_while_others_go_on(tiny_model: Transformer) -> None:
    """Short captures come and go on the model while long ones run; hooks are added and taken away under them."""
    source = torch.tensor([[5, 6, 7, 3]])
    with capture_attention(tiny_model) as capture:
        tiny_model.encode(source)
    expected = capture.trace

    def short() -> None:
        for _ in range(20):
            with capture_attention(tiny_model):
                pass

    def long() -> list[AttentionTrace]:
        traces = []
        for _ in range(5):
            with torch.no_grad(), capture_attention(tiny_model) as mine:
                tiny_model.encode(source)
            traces.append(mine.trace)
        return traces

    found = together([short, long] * 4)
    for traces in found[1::2]:
        assert isinstance(traces, list)
        for trace in traces:
            assert trace.encoder is not None
            assert expected.encoder is not None
            np.testing.assert_array_equal(trace.encoder.weights, expected.encoder.weights)
    assert hooks_on(tiny_model) == 0


@pytest.mark.sweep
def test_torch_and_numpy_compute_on_one_core_unless_told_otherwise() -> None:
    program = """
import os
import numpy, torch
from threadpoolctl import threadpool_info
from attenscope.devices import limit_to_one_thread
numpy.ones((2, 2)) @ numpy.ones((2, 2))
for told in ("2", ""):
    os.environ["OMP_NUM_THREADS"] = told
    if not told:
        del os.environ["OMP_NUM_THREADS"]
    limit_to_one_thread()
    pools = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    print(torch.get_num_threads(), *pools, end=";")
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment["OMP_NUM_THREADS"] = "2"
    said = subprocess.run([sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, check=True)
    assert said.stdout.decode() == "2 2;1 1;"
