"""A random walk over the running app breaks nothing; `WANDER_STEPS` and `WANDER_SEED` choose another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from attenscope.checkpoint.load import list_checkpoints
from tests.browser.conftest import missing, serving
from tests.journeys.hands import make_files
from tests.journeys.wanderer import ROOT, Failure, Fault, Step, Wanderer, fewer, told, tracebacks

SEED = int(os.environ.get("WANDER_SEED", "1"))
STEPS = 60
LONG = int(os.environ.get("WANDER_STEPS", "2000"))
"""Of the walk that is marked slow; 10,000 take some hours."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of an app, and the file that it writes to."""
    if not list_checkpoints():
        missing("no checkpoint in checkpoints/: train one with `python -m model train`")
    folder = tmp_path_factory.mktemp("wandered")
    with serving(folder) as url:
        yield url, folder / "app.log"


def walked(chromium: Browser, app: tuple[str, Path], folder: Path, steps: int, **look: object) -> list[Failure]:
    """The failures of a walk, each with as few steps as were found."""
    wanderer = Wanderer(chromium, *app, make_files(folder), **look)  # type: ignore[arg-type]
    try:
        return [wanderer.shrink(one, tries=12) for one in wanderer.walk(SEED, steps, lambda fault: False)]
    finally:
        wanderer.close()


def told_all(failures: list[Failure]) -> str:
    return "\n\n".join(one.told() for one in failures)


@pytest.mark.journey
@pytest.mark.timeout(900)
def test_a_walk_breaks_nothing(chromium: Browser, app: tuple[str, Path], tmp_path: Path) -> None:
    failures = walked(chromium, app, tmp_path, STEPS)
    assert not failures, told_all(failures)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("look", [{}, {"width": 390, "language": "de"}, {"language": "zh"}], ids=str)
def test_a_long_walk_breaks_nothing(
    chromium: Browser, app: tuple[str, Path], tmp_path: Path, look: dict[str, object]
) -> None:
    failures = walked(chromium, app, tmp_path, LONG, **look)
    assert not failures, told_all(failures)


def test_a_failure_is_shrunk_to_the_steps_that_it_needs() -> None:
    steps: list[Step] = [{"do": "open", "value": "/"}, *({"do": "key", "value": str(at)} for at in range(20))]

    def fails(tried: list[Step]) -> bool:
        pressed = [one["value"] for one in tried]
        return "3" in pressed and "17" in pressed

    assert [one["value"] for one in fewer(steps, fails)] == ["/", "3", "17"]


def test_steps_are_told_in_words() -> None:
    step = {"do": "select", "key": "preferences", "kind": "select", "n": 0, "name": "Language", "value": 1}
    assert told(step) == "choose option 1 of “Language” [preferences · select 0]"
    failure = Failure(Fault("drawn twice", "view overview", "", "/"), [{"do": "open", "value": "/"}, step], 7, 31, True)
    assert "2. choose option 1" in failure.told()
    assert '--replay \'[{"do": "open"' in failure.told()


PLAIN = """Traceback (most recent call last):
  File "{root}/viz/page_setup.py", line 29, in begin
KeyError: 'vorhergesagt'
"""
RICH = (
    "\x1b[31m─ \x1b[1mTraceback (most recent call last) ─\x1b[0m\n"
    "\x1b[31m \x1b[2m{root}/viz/\x1b[0m\x1b[1mpage_setup.py\x1b[0m"
    ":29 in begin  \x1b[31m \x1b[0m\n\x1b[1;91mKeyError: \x1b[0m\x1b[32m'vorhergesagt'\x1b[0m\n"
)


@pytest.mark.parametrize("log", [PLAIN, RICH], ids=["python", "rich"])
def test_tracebacks_of_the_project_are_read_from_a_log(log: str) -> None:
    assert tracebacks(log.format(root=ROOT)) == [
        Fault("traceback", "viz/page_setup.py:begin", "KeyError: 'vorhergesagt'")
    ]
    assert tracebacks(log.format(root="/usr/lib/python3/streamlit")) == []
