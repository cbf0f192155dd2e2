"""Decodings beside the page: a new one stops the one before, of which nothing is kept that nobody asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from attenscope.devices import OutOfMemory
from attenscope.language import say, use_language
from attenscope.runnable_model import Translation
from attenscope.viz.decode import runs
from attenscope.viz.decode.runs import DecodingRequest
from tests.viz.fakes import FakeTranslator


class Slow(FakeTranslator):
    """Writes one word as long as it is not let go."""

    def __init__(self) -> None:
        self.model = torch.nn.Identity()
        self.go = threading.Event()

    def translate(self, text: str, strategy: Any = None, on_step: Callable[[Any], bool] | None = None) -> Translation:
        part = super().translate(text.split()[0])
        while on_step and not self.go.is_set():
            if not on_step(lambda: part):
                return part
            time.sleep(0.01)
        return super().translate(text)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Slow:
    monkeypatch.setattr(runs.st, "session_state", {})
    monkeypatch.setattr(runs, "WAIT_SECONDS", 0.01)
    return Slow()


def ask(model: Any, method: Any) -> runs.DecodingRun:
    return runs.get_or_start_run(model, DecodingRequest("two words", method))


def text_of(one: runs.DecodingRun) -> str:
    one.wait(10)
    assert one.progress.result is not None
    return one.progress.result.text


def test_who_comes_back_to_a_replaced_decoding_gets_all_of_it(model: Slow) -> None:
    first = ask(model, "greedy")
    assert first.is_working
    second = ask(model, "sample")
    assert text_of(first) == "TWO"
    model.go.set()
    assert text_of(second) == "TWO WORDS"
    assert text_of(ask(model, "greedy")) == "TWO WORDS"
    assert len(runs.list_finished_runs(model, "two words")) == 2  # type: ignore[arg-type]


def test_a_decoding_that_failed_speaks_the_language_of_who_asks(model: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Translation:
        raise OutOfMemory

    monkeypatch.setattr(model, "translate", fail)
    monkeypatch.setattr(runs, "switch_process_to_cpu", lambda: None)
    for language in ("de", "en", "zh"):
        with use_language(language):
            one = ask(model, "greedy")
            one.wait(10)
            assert runs.input_problem_text(one) == say(runs.GPU_IS_FULL)
            assert ask(model, "greedy") is one


def test_what_a_visitor_stopped_stays_as_it_was(model: Slow) -> None:
    first = ask(model, "greedy")
    first.stop()
    assert text_of(first) == "TWO"
    assert ask(model, "greedy") is first
    ask(model, "sample").stop()
    assert ask(model, "greedy") is first


def test_a_decoding_ends_when_its_visitor_goes_and_begins_anew_when_they_come_back(
    model: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = threading.Event()
    there.set()
    monkeypatch.setattr(runs, "create_connection_probe", lambda: there.is_set)
    left = ask(model, "greedy")
    time.sleep(3 * runs.PUBLISH_SECONDS)
    assert left.is_working
    there.clear()
    assert text_of(left) == "TWO"
    assert left.abandoned
    assert runs.list_finished_runs(model, "two words") == []  # type: ignore[arg-type]
    there.set()
    model.go.set()
    assert text_of(ask(model, "greedy")) == "TWO WORDS"
