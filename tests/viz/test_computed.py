"""Where the GPU has no memory left, the CPU goes on, and the page says so."""

from __future__ import annotations

import threading
from itertools import product
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from attenscope import devices
from attenscope.devices import OutOfMemory, choose_device, has_switched_to_cpu
from attenscope.language import use_language
from attenscope.runnable_model import InputError
from attenscope.viz.decode import runs
from attenscope.viz.decode.runs import DecodingRequest
from attenscope.viz.ui import cache
from attenscope.viz.ui.cache import queue_and_cache
from tests.viz.fakes import FakeTranslator
from tests.viz.page_texts import captions

FULL = "The GPU has no memory left, so the CPU computes now"


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that sees a GPU and has not left it yet."""
    monkeypatch.setattr(devices, "available_devices", lambda: ("cpu", "cuda"))
    monkeypatch.setattr(devices, "_gpu_is_full", threading.Event())


def test_the_cpu_goes_on(with_gpu: None) -> None:
    tried: list[str] = []

    @queue_and_cache(2)
    def work(sentence: str) -> str:
        tried.append(choose_device().type)
        if tried[-1] == "cuda":
            raise OutOfMemory
        return sentence.upper()

    assert work("a") == "A"
    assert tried == ["cuda", "cpu"]
    assert has_switched_to_cpu()
    assert choose_device() == torch.device("cpu")
    assert (work("a"), work("b")) == ("A", "B")
    assert tried == ["cuda", "cpu", "cpu"]  # kept, and no second try on the GPU


def test_results_are_shared_by_all_languages() -> None:
    tried: list[str] = []

    @queue_and_cache(2, "Searching …")
    def work(sentence: str) -> str:
        tried.append(sentence)
        return sentence.upper()

    for language in ("en", "de", "zh"):
        with use_language(language):
            assert work("a") == "A"
    assert tried == ["a"]


def test_every_flow_of_a_run_is_kept_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = lambda trace, kind, layer: (trace, kind, layer)  # noqa: E731
    monkeypatch.setattr(cache.flow, "compute_attention_flow", made)
    kept: Any = cache.compute_attention_flow
    for run, kind, layer, weighted in product(("one", "other"), ("encoder", "cross"), (0, 1), (False, True)):
        trace = f"{run}, times value norms" if weighted else run
        assert kept((run,), kind, layer, weighted, trace) == (trace, kind, layer)
    kept.clear()


def test_other_errors_pass(with_gpu: None) -> None:
    @queue_and_cache(2)
    def work(sentence: str) -> str:
        raise InputError(sentence)

    with pytest.raises(InputError, match="as it was"):
        work("as it was")
    assert not has_switched_to_cpu()


def test_a_model_that_did_not_fit_is_loaded_on_the_cpu(with_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(cache, "_load_model_on_device", lambda name, device: loaded.append(device))
    cache.load_runnable_model("any")
    devices.switch_process_to_cpu()
    cache.load_runnable_model("any")
    assert loaded == ["cuda", "cpu"]


def test_a_decoding_says_so(with_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OutOfMemory

    model: Any = FakeTranslator()
    model.model = torch.nn.Identity()
    monkeypatch.setattr(model, "translate", full)
    monkeypatch.setattr(runs.st, "session_state", {})
    run = runs.get_or_start_run(model, DecodingRequest("two words", "greedy"))
    run.wait(20)
    assert runs.input_problem_text(run) == runs.GPU_IS_FULL
    assert has_switched_to_cpu()


def test_the_page_says_so(app: AppTest, with_gpu: None) -> None:
    assert not any(FULL in one for one in captions(app.run()))
    devices.switch_process_to_cpu()
    assert any(FULL in one for one in captions(app.run()))
