"""Whatever comes in through a door is read, or refused with a sentence: in time, and in little memory."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.fuzz.doors import Door, doors
from tests.fuzz.run import answer, case, report

CORPUS = Path(__file__).parent / "corpus"
"""What once got a traceback: a folder a door, named as it is."""
SECONDS, MEGABYTES = 2.0, 500


@cache
def every_door() -> dict[str, Door]:
    return {door.name: door for door in doors()}


def test_what_nobody_meant_is_read_or_refused_with_a_sentence() -> None:
    found = list(every_door().values())
    assert len(found) > 20
    for number in range(300):
        door = found[number % len(found)]
        assert not answer(door, case(door, 0, number)), (door.name, number)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: path.name)
def test_what_once_failed_gets_an_answer(path: Path) -> None:
    door = every_door()[path.parent.name]
    assert not answer(door, path.read_bytes())


def test_a_failure_would_be_seen() -> None:
    def broken(data: bytes) -> object:
        raise KeyError(data)

    def silent(data: bytes) -> object:
        raise ValueError

    assert "KeyError" in answer(Door("broken", (b"",), broken, (ValueError,)), b"x")
    assert answer(Door("silent", (b"",), silent, (ValueError,)), b"x") == "ValueError without a sentence"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_thousand_cases_in_a_process_of_limited_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.run", "1", "5000", str(tmp_path / "failed")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = report(done.stdout)
    assert not found["failures"]
    assert found["slowest"][0] < SECONDS, found["slowest"]
    assert found["grown"] < MEGABYTES
