"""What was freed is given back, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from attenscope.viz.serving import server

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


def test_large_arrays_go_back_at_once() -> None:
    taken, left = megabytes(6, "keep")
    assert taken > 230
    assert left < 30
    assert megabytes(6)[1] > 100, "glibc does so by itself: nothing need be said to it"


def test_smaller_ones_go_back_when_they_are_given() -> None:
    taken, left = megabytes(2, "keep", "give")
    assert taken > 75
    assert left < 30
