"""What was freed is given back, in a process of its own, and what visitors have left is let go."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.runtime import Runtime

from attenscope.viz.masks.mask_input import MaskInput
from attenscope.viz.serving import server
from attenscope.viz.serving.server import AbsentSessions
from attenscope.viz.streamlit_internals import end_absent_sessions
from attenscope.viz.traces.session import measure_session_bytes

SCRIPT = """
import sys
import numpy as np
from attenscope.viz.serving.server import limit_glibc_retained_memory, release_free_memory

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) // 1024

if "keep" in sys.argv:
    limit_glibc_retained_memory()
before = resident()
for size in (6, 20, {size}):  # what glibc sees freed, it keeps more of
    np.ones(size * 2**17)
arrays, pins = [], []
for _ in range(40):
    arrays.append(np.ones({size} * 2**17))
    pins.append(bytearray(100_000))
print(resident() - before)
arrays.clear()
if "give" in sys.argv:
    release_free_memory()
print(resident() - before)
"""


def megabytes(size: int, *words: str) -> tuple[int, int]:
    """Taken by 40 arrays of so many megabytes each, and left after they were freed."""
    command = [sys.executable, "-c", SCRIPT.format(size=size), *words]
    taken, left = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(taken), int(left)


pytestmark = pytest.mark.skipif(server._load_glibc() is None, reason="the C library is not glibc")


@pytest.mark.sweep
def test_large_arrays_go_back_at_once() -> None:
    taken, left = megabytes(6, "keep")
    assert taken > 230
    assert left < 30
    assert megabytes(6)[1] > 100, "glibc does so by itself: nothing need be said to it"


def test_smaller_ones_go_back_when_they_are_given() -> None:
    taken, left = megabytes(2, "keep", "give")
    assert taken > 75
    assert left < 30


def test_large_sessions_of_visitors_who_have_gone_are_ended_first() -> None:
    measured: list[str] = []

    def measure(name: str, size: int) -> int:
        measured.append(name)
        return size

    def sized(**sizes: int) -> dict[str, Callable[[], int]]:
        return {name: partial(measure, name, size) for name, size in sizes.items()}

    absent = AbsentSessions(most=10)
    assert absent.choose(sized(large=30, small=4, smaller=3)) == []  # They may be back in a moment.
    assert not absent.has_ended_any
    assert absent.choose(sized(large=30, small=4, new=50)) == ["large"]
    assert absent.has_ended_any
    assert absent.choose(sized(small=4, new=50)) == ["new"]
    assert absent.choose(sized(small=4)) == []
    assert measured == ["large", "small", "new"]


HELD = (0, 0, 0, 100)
"""Bytes of an array that a fragment of each session was called with."""


def make_fragment(held: int) -> Callable[[], MaskInput]:
    given = MaskInput("identity", {"weights": np.zeros(held, np.uint8)})
    return lambda: given


def test_the_sessions_that_are_chosen_are_closed_in_the_thread_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    states: dict[str, dict[str, str]] = {"a": {"mask_text": "1" * 1000}, "b": {"mask_text": "1"}, "c": {}, "d": {}}
    absent = [
        SimpleNamespace(
            session=SimpleNamespace(
                id=key,
                session_state=SimpleNamespace(filtered_state=state),
                _fragment_storage=SimpleNamespace(_fragments={"one": make_fragment(held)}),
            )
        )
        for (key, state), held in zip(states.items(), HELD, strict=True)
    ]
    soon: list[Callable[[], None]] = []
    running = SimpleNamespace(
        uploaded_file_mgr=SimpleNamespace(file_storage={"c": {"file": SimpleNamespace(data=bytes(70))}}),
        _session_mgr=SimpleNamespace(_session_storage=SimpleNamespace(list=lambda: absent)),
        _get_async_objs=lambda: SimpleNamespace(eventloop=SimpleNamespace(call_soon_threadsafe=soon.append)),
        close_session=closed.append,
    )
    monkeypatch.setattr(Runtime, "exists", lambda: True)
    monkeypatch.setattr(Runtime, "instance", lambda: running)
    end_absent_sessions(measure_session_bytes, lambda sizes: [key for key, size in sizes.items() if size() > 50])
    assert closed == []
    soon[0]()
    assert closed == ["a", "c", "d"]


def test_a_server_that_has_ended_has_no_sessions_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    monkeypatch.setattr(Runtime, "exists", lambda: True)
    monkeypatch.setattr(
        Runtime, "instance", lambda: SimpleNamespace(_get_async_objs=lambda: SimpleNamespace(eventloop=loop))
    )
    end_absent_sessions(measure_session_bytes, lambda sizes: list(sizes))
