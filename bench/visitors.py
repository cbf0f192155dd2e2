"""How long many visitors wait who use the app at once: sessions without browsers, each acting as soon as it can.

An action is one that a person takes on Explore: another head four times of five, a new sentence the fifth.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np

from attenscope.checkpoint.load import CHECKPOINTS_FOLDER
from bench.positions import app
from bench.timing import Row
from bench.visitor import Visitor

SESSIONS = (1, 5, 20, 50)
SECONDS = 20.0
"""For which a number of sessions acts, once all of them have the page."""
SENTENCES = [
    line
    for line in (CHECKPOINTS_FOLDER / "sentences.en").read_text(encoding="utf-8").splitlines()
    if 3 < len(line.split()) < 12
]
NEW_SENTENCE = 5
"""One in so many actions of a visitor is a new sentence."""


class Load(NamedTuple):
    """What some sessions have seen."""

    sessions: int
    waits: np.ndarray
    """Seconds of each action."""
    errors: int

    @property
    def actions_a_second(self) -> float:
        return len(self.waits) / SECONDS

    def percentile(self, share: int) -> float:
        """Seconds within which that share of the actions were answered."""
        return float(np.percentile(self.waits, share))


def measure() -> list[Row]:
    with app() as url:
        load(url, 2)  # warms up
        loads = [load(url, sessions) for sessions in SESSIONS]
    one = loads[0]
    rows = []
    for found in loads:
        shown = f"{found.percentile(50):.2f}, {found.percentile(95):.2f}, {found.actions_a_second:.1f}"
        what = f"visitors: {found.sessions} at once: seconds p50, p95, actions a second; p50 / one visitor's"
        ratio = found.percentile(50) / one.percentile(50)
        met = not found.errors and (ratio <= 8 or found.sessions != 20)
        goal = "at most 8" if found.sessions == 20 else "none"
        rows.append(Row(what, shown, f"{one.percentile(50):.2f}", ratio, goal, met))
    most, last = max(one.actions_a_second for one in loads), loads[-1].percentile(95)
    rows.append(
        Row("visitors: actions a second, all together", f"{most:.1f}", "25", most / 25, "at least 1", most >= 25)
    )
    rows.append(
        Row("visitors: 50 at once: seconds p95, ours / the limit", f"{last:.1f}", "6", last / 6, "at most 1", last <= 6)
    )
    return rows


def load(url: str, sessions: int) -> Load:
    """Let so many sessions act at once."""
    waits: list[float] = []
    errors: list[str] = []
    ready = threading.Barrier(sessions + 1)

    def act(number: int) -> None:
        with Visitor(url) as visitor:
            visitor.open()
            ready.wait()
            waits.extend(list(_actions(visitor, number, time.monotonic())))
        errors.extend(visitor.errors)

    threads = [threading.Thread(target=act, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    ready.wait()
    for thread in threads:
        thread.join()
    return Load(sessions, np.array(waits), len(errors))


def _actions(visitor: Visitor, number: int, begun: float) -> Iterator[float]:
    """Seconds of one action after another, until the time is over."""
    for step in count(number):
        if time.monotonic() - begun > SECONDS:
            return
        if step % NEW_SENTENCE:
            yield visitor.choose_head(step % 4, step // 4 % 8)
        else:
            yield visitor.enter("sentence", SENTENCES[(7 * number + step) % len(SENTENCES)])
