"""What the minutes of a soak say: the last third against the middle one."""

from __future__ import annotations

import os

import numpy as np

from bench.soak import Minute, Sample, rows, sample


def test_growth_in_the_last_third_and_every_error_are_told() -> None:
    waits = np.full(20, 0.5)
    flat = [Minute(Sample(megabytes, 30, 80), waits) for megabytes in (300, 400, 500, 510, 505, 500)]
    assert [one.met for one in rows(flat, 0)] == [True] * 5
    memory, threads, *_, errors = rows([*flat[:5], Minute(Sample(560, 30, 80), waits)], 1)
    assert (memory.ours, memory.theirs, memory.met) == ("532", "505", False)
    assert threads.met
    assert (errors.ours, errors.theirs, errors.met) == ("1", "120", False)


def test_what_this_process_holds() -> None:
    held = sample(os.getpid())
    assert 10 < held.megabytes < 100_000
    assert held.threads >= 1
    with open(os.devnull, encoding="utf-8"):
        assert sample(os.getpid()).files == held.files + 1
