"""Long work of visitors in a process of its own: it holds nobody up, and it is ended where it takes too much."""

from __future__ import annotations

import operator
import os
import pickle
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope import viz
from attenscope.language import say, use_language
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.read_files import TooLargeError, UnreadableError, read_array_file
from attenscope.masks.read_text import read_printed_tensors
from attenscope.viz import worker_process
from attenscope.viz.fair_queue import TURN_TIMEOUT, BusyError
from attenscope.viz.traces import verdict
from attenscope.viz.worker_process import WorkerProcess, call_in_worker


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.end()


def test_a_call_returns_or_raises_what_the_function_does(worker: WorkerProcess) -> None:
    assert worker.call(operator.add, 2, 3) == 5
    assert worker.call(os.getpid) == worker.call(os.getpid) != os.getpid()
    with pytest.raises(DiagnosisError, match="nothing to read"):
        worker.call(read_printed_tensors, " ")
    with use_language("de"):
        with pytest.raises(DiagnosisError) as raised:
            worker.call(read_printed_tensors, " ")
        assert str(raised.value) == say("There is nothing to read yet: paste a printed tensor or nested lists.")


def test_the_cause_of_an_error_comes_back_with_it(worker: WorkerProcess, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "mask.npz", mask=np.ones((1, 1, 500, 500), bool))
    with pytest.raises(UnreadableError) as raised:
        worker.call(read_array_file, tmp_path / "mask.npz", 1000)
    assert isinstance(raised.value.__cause__, TooLargeError)


def test_work_that_takes_too_long_is_ended_with_a_sentence_and_the_next_goes_on() -> None:
    hasty = WorkerProcess(time_limit=1.0)
    with pytest.raises(BusyError, match="more than 1 seconds"):
        hasty.call(time.sleep, 60)
    assert hasty.call(operator.add, 2, 3) == 5
    hasty.end()


def test_whoever_comes_second_gets_a_turn_and_a_replica_has_room_for_the_work() -> None:
    assert worker_process.TIME_LIMIT < TURN_TIMEOUT
    said = (Path(viz.__file__).parents[1] / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    replica = int(re.findall(r"mem_limit: (\d+)g", said)[0]) * 2**30
    assert replica - worker_process.MEMORY_LIMIT >= 0.8 * 2**30


def test_a_process_that_dies_is_told_of_and_another_takes_its_place(worker: WorkerProcess) -> None:
    with pytest.raises(BusyError, match="ended"):
        worker.call(os._exit, 1)
    assert worker.call(operator.add, 2, 3) == 5


def test_a_process_that_dies_between_two_calls_is_replaced_unnoticed(worker: WorkerProcess) -> None:
    os.kill(worker.call(os.getpid), signal.SIGKILL)
    time.sleep(0.2)
    assert worker.call(operator.add, 2, 3) == 5


def test_work_that_wants_too_much_memory_is_said_to(worker: WorkerProcess) -> None:
    with pytest.raises(BusyError, match="too much memory"):
        worker.call(operator.mul, b"1", 2 * worker_process.MEMORY_LIMIT)
    assert worker.call(operator.add, 2, 3) == 5


def test_a_reply_that_cannot_be_copied_is_an_error_of_the_function(worker: WorkerProcess) -> None:
    with pytest.raises(RuntimeError, match="pickle"):
        worker.call(eval, "lambda: 1")
    assert worker.call(operator.add, 2, 3) == 5


def test_work_ends_by_itself_where_the_server_has_gone() -> None:
    """A process whose server no longer watches has a limit of its own."""
    short = WorkerProcess(time_limit=0.0)
    process = short._start()
    assert process.stdin is not None
    pickle.dump((1.0 - worker_process.ORPHAN_SECONDS, "en", time.sleep, (60,), {}), process.stdin)
    process.stdin.flush()
    assert process.wait(30) != 0
    short._end(process)


def test_no_file_of_the_folder_takes_the_name_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    made = WorkerProcess()
    assert made.call(operator.add, 2, 3) == 5
    made.end()


@pytest.mark.sweep
def test_a_process_that_has_grown_is_let_go_with_its_memory(worker: WorkerProcess) -> None:
    first = worker.call(os.getpid)
    assert worker.call(os.getpid) == first
    assert len(worker.call(operator.mul, b"1", worker_process.GROWN_BYTES)) == worker_process.GROWN_BYTES
    assert worker.call(os.getpid) != first


def test_it_loads_neither_the_app_nor_torch_to_read_a_text(worker: WorkerProcess) -> None:
    worker.call(read_printed_tensors, "[[1, 0], [1, 1]]")
    loaded = worker.call(eval, "set(__import__('sys').modules)")
    assert "attenscope.masks.read_text" in loaded
    assert not {"streamlit", "torch"} & loaded


def test_reading_a_long_text_takes_this_process_no_time() -> None:
    text = "[" + "[1.0, 0.0], " * 40_000 + "[1.0, 1.0]]"
    call_in_worker(operator.add, 2, 3)  # starts it
    start = time.process_time()
    here = read_printed_tensors(text)
    took = time.process_time() - start
    start = time.process_time()
    there = call_in_worker(read_printed_tensors, text)
    assert time.process_time() - start < took / 4
    assert np.array_equal(here[""], there[""])


def test_large_arrays_are_judged_there_as_they_are_here() -> None:
    weights = np.tril(np.ones((1, 1, 2, 300, 300), np.float32))
    weights /= weights.sum(-1, keepdims=True)
    arrays = normalise_arrays({"weights": weights, "mask": np.ones((300, 300), bool)}, "decoder")
    there = verdict.diagnose_arrays_maybe_in_worker(arrays)
    here = diagnose_arrays(arrays)
    assert [one.as_dict() for one in there.findings] == [one.as_dict() for one in here.findings]
    assert (there.verdict, there.meaning, there.sure) == (here.verdict, here.meaning, here.sure)


def test_a_long_paste_is_read_and_judged_in_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    call: Any = WorkerProcess.call

    def note(self: WorkerProcess, function: Callable[..., Any], *given: Any) -> Any:
        called.append(function.__name__)
        return call(self, function, *given)

    monkeypatch.setattr(WorkerProcess, "call", note)
    app = AppTest.from_file(str(Path(viz.__file__).parent / "pages" / "masks.py"), default_timeout=150)
    app.query_params["from"] = "paste"
    app.run()
    app.text_area(key="mask_text").input(str(np.tril(np.ones((300, 300), int)).tolist())).run()
    assert not app.exception
    assert called[:2] == ["read_printed_tensors", "diagnose_arrays"]
    assert any("causal" in one.value for one in app.caption)
