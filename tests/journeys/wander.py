"""Wander over the app: ``python -m tests.journeys.wander --seed 7 --steps 1000 [--width 390] [--language de]``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM, serving
from tests.journeys.hands import make_files
from tests.journeys.wanderer import FRESH_EVERY, HEIGHT, LOCALES, Failure, Fault, Wanderer, told

LAST = 4
"""Steps before a failure that are printed when it is met."""


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.journeys.wander", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--width", type=int, default=1440, help=f"of the window, which is {HEIGHT} high")
    parser.add_argument("--language", choices=sorted(LOCALES), default="en", help="of the browser")
    parser.add_argument("--begin", default="/", help="the address that every visitor opens first")
    parser.add_argument("--fresh-every", type=int, default=FRESH_EVERY, help="steps between two looks by a stranger")
    parser.add_argument("--ignore", action="append", default=[], metavar="PATTERN", help="leave out faults so named")
    parser.add_argument(
        "--avoid", action="append", default=[], metavar="KEY", help="leave controls so keyed alone, or back"
    )
    parser.add_argument("--url", help="of an app that runs already, with its --log; else one is started")
    parser.add_argument("--log", type=Path, help="what that app writes")
    parser.add_argument("--tries", type=int, default=24, help="walks to shorten a failure; 0 leaves it as it is")
    parser.add_argument("--replay", metavar="STEPS", help="walk these steps, as they were printed, and nothing else")
    return parser.parse_args(given)


@contextlib.contextmanager
def app(url: str | None, log: Path | None) -> Iterator[tuple[str, Path | None]]:
    """The address of the app and the file it writes to."""
    if url:
        yield url, log
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(AssertionError), serving(Path(folder)) as own:
        yield own, Path(folder) / "app.log"  # A traceback at the end has been told by the walk.


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield opened
        opened.close()


def main(given: Sequence[str] | None = None) -> int:
    """Walk and print the failures; the number of their names."""
    asked = arguments(given)
    ignore = [re.compile(one) for one in asked.ignore]
    ignored = lambda fault: any(one.search(fault.name) for one in ignore)  # noqa: E731
    with tempfile.TemporaryDirectory() as files, app(asked.url, asked.log) as (url, log), browser() as chromium:
        make_files(Path(files))
        look = {
            "language": asked.language,
            "width": asked.width,
            "fresh_every": asked.fresh_every,
            "avoided": asked.avoid,
        }
        wanderer = Wanderer(chromium, url, log, Path(files), **look)
        try:
            return replay(wanderer, asked.replay) if asked.replay else walk(wanderer, asked, ignored)
        finally:
            wanderer.close()


def replay(wanderer: Wanderer, steps: str) -> int:
    """Walk steps that were printed; 1 where they still fail."""
    visitor, fails = wanderer.visitor(), 0
    walked = json.loads(steps)
    for number, step in enumerate(walked, start=1):
        print(f"{number}. {told(step)}")
        for fault in wanderer.step(visitor, step, fresh=number == len(walked)):
            fails = 1
            print(f"   {fault.name} {fault.detail}")
    visitor.close()
    return fails


def tell(failure: Failure) -> None:
    """Print a failure when it is met: a long walk may be ended before it prints its count."""
    print(f"step {failure.at}: {failure.fault.name}\n  {failure.fault.detail}")
    print(*(f"  … {told(step)}" for step in failure.tail(LAST)), sep="\n", flush=True)


def walk(wanderer: Wanderer, asked: argparse.Namespace, ignored: object) -> int:
    """Walk from a seed, and tell the failures by name."""
    wanderer.tell = tell
    began = time.monotonic()
    failures: list[Failure] = wanderer.walk(asked.seed, asked.steps, ignored, asked.begin)  # type: ignore[arg-type]
    took = time.monotonic() - began
    print(
        f"{wanderer.steps_walked} steps in {took:.0f} s, {took / max(1, wanderer.steps_walked):.2f} s a step", end="; "
    )
    print(f"{wanderer.fresh_looks} looks by a stranger; not reached: {wanderer.unreachable or 'none'}", flush=True)
    counts: Counter[str] = Counter(one.fault.name for one in failures)
    for name, count in counts.most_common():
        print(f"{count:4} {name}")
    seen: Counter[str] = Counter()
    for failure in failures:
        seen[failure.fault.name] += 1
        if seen[failure.fault.name] == 1:
            print("\n" + (wanderer.shrink(failure, asked.tries) if asked.tries else failure).told(), flush=True)
    return len(counts)


__all__ = ["Fault", "main"]

if __name__ == "__main__":
    sys.exit(main())
