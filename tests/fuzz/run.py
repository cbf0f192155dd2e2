"""`python -m tests.fuzz.run SEED COUNT FOLDER`: so many cases, every door in turn, in a process of limited memory.

Prints one JSON object: how many cases, the slowest, the growth of memory in MB, and each failure, whose input is kept
in FOLDER.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.doors import Door, doors
from tests.fuzz.mutations import mutated

ADDRESS_SPACE = 4 * 2**30
"""Bytes that a case may ask for beyond what the process has: more is a MemoryError, which no door allows."""


def main(seed: int, count: int, folder: Path) -> None:
    found = doors()
    for door in found:
        for good in door.good:
            door.read(good)
    _limit()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    failures: list[dict[str, str]] = []
    slowest: tuple[float, str] = (0.0, "")
    for number in range(count):
        door = found[number % len(found)]
        data = case(door, seed, number)
        start = time.process_time()
        problem = answer(door, data)
        slowest = max(slowest, (time.process_time() - start, f"{door.name} {seed} {number}"))
        if problem:
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{door.name.replace(' ', '-')}-{seed}-{number}"
            (folder / name).write_bytes(data)
            failures.append({"case": name, "problem": problem})
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps({"cases": count, "slowest": slowest, "grown": grown, "failures": failures}))


def case(door: Door, seed: int, number: int) -> bytes:
    """The input of a case: a function of the door, the seed and the number alone."""
    random = np.random.default_rng((seed, number))
    return mutated(door.good[int(random.integers(len(door.good)))], random)


def answer(door: Door, data: bytes) -> str:
    """What went wrong with an input; empty where it was read, or refused with a sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            door.read(data)
    except door.allowed as error:
        return "" if str(error).strip() else f"{type(error).__name__} without a sentence"
    except BaseException as error:  # a KeyboardInterrupt made by an input would be a failure too
        frames = traceback.extract_tb(error.__traceback__)
        return f"{type(error).__name__}: {str(error)[:200]} at {frames[-1].filename}:{frames[-1].lineno}"
    return ""


def _limit() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def report(text: str) -> dict[str, Any]:
    """The last line that a run has printed."""
    found: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
