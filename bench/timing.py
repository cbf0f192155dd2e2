"""Timing two ways of doing the same thing so that a noisy machine disturbs both alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import torch


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    ours: str
    theirs: str
    ratio: float
    goal: str
    met: bool

    @property
    def cells(self) -> tuple[str, ...]:
        return self.what, self.ours, self.theirs, f"{self.ratio:.2f}", self.goal, "yes" if self.met else "**no**"


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], repetitions: int, warm_up: int = 1
) -> tuple[float, float]:
    """Median seconds of each: they take turns, and which goes first alternates."""
    for _ in range(warm_up):
        ours()
        theirs()
    times: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for repetition in range(repetitions):
        for function in (ours, theirs) if repetition % 2 else (theirs, ours):
            times[function].append(seconds(function))
    return median(times[ours]), median(times[theirs])


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread inside the block: what the app and the command line use."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
