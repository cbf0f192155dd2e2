"""An hour of visitors: whether the server keeps its memory, its threads and its pace.

Sessions without browsers walk all pages with the pauses of people who look. Two of their sentences side by side make
one that nobody has asked for, so that what is kept of old ones has to make room.
"""

from __future__ import annotations

import random
import threading
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.positions import Served, serving
from bench.timing import Row
from bench.visitor import Visitor
from bench.visitors import SENTENCES

SESSIONS = 20
PAGES = ("", "decode", "why", "heads", "positions", "training", "masks", "talk")
PAUSE = 10.0, 30.0
"""Seconds between two actions of a visitor, at least and at most."""
PATIENCE = 300.0
"""Seconds that a visitor waits for an answer."""
LOOK_EVERY = 5.0
"""Seconds between two looks at what the server holds: between them it holds much for moments."""
FLAT = 0.03
"""Share by which the last third may differ from the middle one."""


class Sample(NamedTuple):
    """What the server holds at one moment, or in the mean of several."""

    megabytes: float
    threads: float
    files: float


class Minute(NamedTuple):
    """One minute: what the server held in the mean, and how long its visitors waited in it."""

    sample: Sample
    waits: np.ndarray
    """Seconds of each action."""

    @property
    def p95(self) -> float:
        """Seconds within which 95% of the actions were answered; NaN where there was none."""
        return float(np.percentile(self.waits, 95)) if self.waits.size else float("nan")


def measure(minutes: int = 60) -> list[Row]:
    """Let the visitors walk for so long, a line printed each minute."""
    with serving() as served:
        found, errors = walked(served, minutes)
        errors += served.log.read_text(encoding="utf-8", errors="replace").count("Traceback")
    return rows(found, errors)


def rows(found: Sequence[Minute], errors: int) -> list[Row]:
    """What the minutes say: the last third against the middle one."""
    third = len(found) // 3
    middle, last = found[third : 2 * third], found[2 * third :]
    what = f"soak: {SESSIONS} sessions for {len(found)} minutes"
    made = []
    for name, values in (
        ("MB", [one.sample.megabytes for one in found]),
        ("threads", [one.sample.threads for one in found]),
        ("open files", [one.sample.files for one in found]),
    ):
        before, after = (float(np.mean(values[part])) for part in (slice(third, 2 * third), slice(2 * third, None)))
        ratio = after / before
        shown = f"{after:.0f}", f"{before:.0f}"
        met = ratio <= 1 + FLAT
        made.append(Row(f"{what}: {name}, last third / middle third", *shown, ratio, f"at most {1 + FLAT}", met))
    p95 = [float(np.percentile(np.concatenate([one.waits for one in part]), 95)) for part in (last, middle)]
    shown = f"{p95[0]:.2f}", f"{p95[1]:.2f}"
    made.append(Row(f"{what}: seconds p95, last third / middle third", *shown, p95[0] / p95[1], "none", True))
    actions = sum(len(one.waits) for one in found)
    made.append(Row(f"{what}: tracebacks / actions", f"{errors}", f"{actions}", errors / actions, "0", errors == 0))
    return made


def walked(served: Served, minutes: int) -> tuple[list[Minute], int]:
    """Minutes of visitors who walk, and how many exceptions they saw."""
    waits: list[tuple[float, float]] = []
    errors: list[str] = []
    end = time.monotonic() + 60 * minutes

    def walk(number: int) -> None:
        chance = random.Random(number)
        with Visitor(served.url, PATIENCE) as visitor:
            while time.monotonic() < end:
                waits.append((time.monotonic(), _act(visitor, chance)))
                time.sleep(max(0.0, min(chance.uniform(*PAUSE), end - time.monotonic())))
        errors.extend(visitor.errors)

    threads = [threading.Thread(target=walk, args=(number,)) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()
    found = []
    for minute in range(minutes):
        until = end - 60 * (minutes - 1 - minute)
        held = _samples(served.process, until)
        own = np.array([seconds for when, seconds in waits if until - 60 <= when < until])
        found.append(Minute(held, own))
        megabytes, running, files = held
        print(
            f"minute {minute + 1}: {megabytes:.0f} MB, {running:.1f} threads, {files:.1f} files, {len(own)} actions, "
            f"p95 {found[-1].p95:.2f} s",
            flush=True,
        )
    for thread in threads:
        thread.join()
    for error in errors:
        print(error)
    return found, len(errors)


def _act(visitor: Visitor, chance: random.Random) -> float:
    """Another page with a new sentence, as a link leads there -> seconds until it is complete."""
    sentence = " ".join(chance.sample(SENTENCES, 2))
    return visitor.open(urllib.parse.urlencode({"sentence": sentence}), chance.choice(PAGES))


def _samples(process: int, until: float) -> Sample:
    """What a process holds in the mean, from now until a moment."""
    seen: list[Sample] = []
    while (left := until - time.monotonic()) > 0 or not seen:
        time.sleep(max(0.0, min(LOOK_EVERY, left)))
        seen.append(sample(process))
    return Sample(*np.mean(seen, axis=0).tolist())


def sample(process: int) -> Sample:
    """What a process holds now, as Linux tells."""
    folder = Path("/proc") / str(process)
    status = dict(line.split(":", 1) for line in (folder / "status").read_text(encoding="utf-8").splitlines())
    files = len(list((folder / "fd").iterdir()))
    return Sample(int(status["VmRSS"].split()[0]) / 1024, int(status["Threads"]), files)
