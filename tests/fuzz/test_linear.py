"""Reading takes time in proportion to the length of what is read, whatever it is."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fuzz.readers import FRAMES, LONGEST, READERS, UNITS

ROOT = Path(__file__).parents[2]
SECONDS = 2.0
"""For the longest text that may be pasted."""
LARGER = 2.5
"""The most that twice the text may take of the time of once."""
FLOOR = 0.02
"""Seconds below which two times are not compared."""
SURE = 8
"""Attempts where one did not show that twice the text takes twice the time."""
CHECKED_BEFORE = {"model/masks/rule.py": "MAX_RULE_CHARACTERS", "model/atlas/query.py": "MAX_QUESTION_LENGTH"}
"""Modules whose patterns may go back, since the length of the text is checked before: the name of the limit."""


def seconds(name: str, text: str, attempts: int = 1) -> float:
    """Processor time of this thread, of the best of some attempts, without the garbage collector, as timeit does.

    How often that walks over all objects depends on what else the process holds.
    """
    found = []
    gc.disable()
    try:
        for _ in range(attempts):
            start = time.thread_time()
            with suppress(ValueError):
                READERS[name].read(text)
            found.append(time.thread_time() - start)
    finally:
        gc.enable()
    return min(found)


def texts(length: int) -> Iterator[tuple[str, str]]:
    """Each unit repeated in each frame, with what it is called."""
    for before, after in FRAMES:
        for unit in UNITS:
            repeated = unit * ((length - len(before + after)) // len(unit))
            yield f"{before!r} {unit!r} {after!r}", before + repeated + after


def too_slow(name: str, length: int) -> list[str]:
    """What takes more than in proportion from a length to its double, or more than may be waited for."""

    def time_if_slow(short: str, long: str, attempts: int) -> float | None:
        twice = seconds(name, long, attempts)
        slow = twice > FLOOR and (twice > SECONDS or twice > LARGER * seconds(name, short, attempts))
        return twice if slow else None

    found = []
    for (what, short), (_, long) in zip(texts(length), texts(2 * length), strict=True):
        # Measured once, a text may be slow because of what ran beside it.
        if time_if_slow(short, long, 1) and (took := time_if_slow(short, long, SURE)):
            found.append(f"{what}: {took:.2f} s")
    return found


def test_there_are_enough_texts() -> None:
    assert len(set(UNITS)) >= 40
    assert len(set(FRAMES)) >= 10


@pytest.mark.parametrize("name", READERS)
def test_twice_the_text_takes_twice_the_time(name: str) -> None:
    """At 15,000 characters what grows with the square takes a second, and what does not a millisecond."""
    assert not too_slow(name, 7_500)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", READERS)
def test_the_longest_text_is_read_in_time(name: str) -> None:
    assert not too_slow(name, LONGEST // 2)


def test_every_pattern_of_a_reader_reads_forwards_or_a_limit_stands_before_it() -> None:
    """The list of readers is held to the code: a module of patterns that reads a person's text is in it."""
    modules = {module for reader in READERS.values() for module in reader.modules}
    for module in modules:
        source = (ROOT / module).read_text(encoding="utf-8")
        if module in CHECKED_BEFORE:
            assert re.search(rf"> {CHECKED_BEFORE[module]}\b", source), module
    rooms = ("model/masks", "model/interventions", "viz/talk", "viz/ui")
    here = {
        path.relative_to(ROOT).as_posix()
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if "re.compile(" in path.read_text(encoding="utf-8")
    }
    others = {
        "model/masks/softmax.py": "names of tokens of a trace, cut before",
        "viz/ui/captions.py": "texts as they are shown, read by a reader above",
        "viz/talk/attachments.py": "a name of a file, whose repetitions are bounded",
        "viz/talk/scenes.py": "a head as it is chosen, bounded",
    }
    assert here - modules == set(others)
