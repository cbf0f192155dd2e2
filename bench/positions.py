"""The page Positions at 512 dimensions and 512 positions: milliseconds from a click on a control until all is painted.

The app itself is served and used in headless Chromium; each figure is held against the limit the page has set itself.
Beside each stands a click in an app that shows one number, made in turn with it: what Streamlit costs by itself.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from playwright.sync_api import Browser

from attenscope.positions.table import make_formula_table
from attenscope.viz.positions.controls import TableChoice
from attenscope.viz.positions.views import build_table_matrix
from attenscope.viz.web.maps import encode_matrix
from bench.browser import chromium
from bench.timing import Row

ROOT = Path(__file__).resolve().parents[1]
SIZE = 512
LIMIT, BYTES = 150.0, 1.5  # milliseconds; bytes a value
REPETITIONS = 11
STARTS_WITHIN = 90  # seconds
CONTROLS = {
    "table": "Positions",
    "waves": "Positions",
    "similarity": "Positions",
    "rotation": "Shift k",
    "precision": "Base",
}
"""The number that is stepped down in each view, so that every picture of it changes."""
SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
STEP = """(label) => new Promise((resolve) => {
  const frame = document.querySelector(".st-key-picture");
  const roots = () => [...frame.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
  const drawings = () => roots().flatMap((one) => [...one.querySelectorAll(":is(canvas, svg):not(.bar *)")]);
  const looks = (one) => one.tagName === "svg" ? one.innerHTML
    : [...one.getContext("2d").getImageData(0, one.height >> 1, one.width, 1).data].join() + one.height;
  const before = drawings().map(looks);
  const changed = () => {
    const now = drawings();
    return now.length === before.length && now.every((one, at) => looks(one) !== before[at]);
  };
  const input = document.querySelector(`input[aria-label="${label}"]`).closest('[data-testid="stNumberInput"]');
  const start = performance.now();
  input.querySelector('[data-testid="stNumberInputStepDown"]').click();
  const end = () => requestAnimationFrame((now) => resolve(now - start));
  const look = () => requestAnimationFrame(() => changed() ? end() : look());
  look();
})"""

CLICK = """() => new Promise((resolve) => {
  const said = () => document.querySelector('[data-testid="stText"]')?.textContent;
  const before = said();
  const start = performance.now();
  document.querySelector('[data-testid="stButton"] button').click();
  const look = () => requestAnimationFrame((now) => said() !== before ? resolve(now - start) : look());
  look();
})"""


def measure() -> list[Row]:
    table = make_formula_table(SIZE, SIZE)
    shown = build_table_matrix(TableChoice(table, "sinusoidal", False, "float64", table.real, None), np.arange(SIZE))
    size = len(encode_matrix(shown)) / shown.values.size
    rows = [_row("bytes a value of the table, ours / the limit", size, BYTES, f"{size:.2f}", f"{BYTES}")]
    with app() as url, app("bench/empty.py") as empty, chromium() as browser:
        for view, control in CONTROLS.items():
            address = f"{url}/positions?plot={view}&table=sinusoidal&d_model={SIZE}&positions={SIZE}"
            found, floor = redraw(browser, address, control, empty)
            what = f"{view} redrawn, ms from click to painted"
            rows.append(_row(f"{what}, ours / the limit", found, LIMIT, f"{found:.0f}", f"{LIMIT:.0f}"))
            rows.append(_beside(f"{what}, ours / a click in an empty app", found, floor))
    return rows


def redraw(browser: Browser, address: str, control: str, empty: str) -> tuple[float, float]:
    """Median milliseconds from a step of `control` until every picture of the view has changed and is painted.

    And those of a click in the app `empty` until its number has changed, made in turn.
    """
    page, nothing = (browser.new_page(viewport={"width": 1440, "height": 900}) for _ in range(2))
    page.goto(address)
    nothing.goto(empty)
    page.get_by_label(control, exact=True).wait_for(timeout=1000 * STARTS_WITHIN)
    nothing.get_by_text("clicks: 0").wait_for()
    for one in (page, nothing):
        one.locator(SETTLED).wait_for()
        one.wait_for_timeout(2000)
    times: list[float] = []
    floors: list[float] = []
    for _ in range(REPETITIONS + 1):
        for one, code, what, found in ((page, STEP, control, times), (nothing, CLICK, None, floors)):
            one.bring_to_front()
            found.append(float(one.evaluate(code, what)))
            one.locator(SETTLED).wait_for()
            one.wait_for_timeout(300)
    page.close()
    nothing.close()
    return median(times[1:]), median(floors[1:])


class Served(NamedTuple):
    """A server that runs."""

    url: str
    process: int
    """Its number."""
    log: Path
    """What it prints."""


@contextlib.contextmanager
def app(script: str = "app.py") -> Iterator[str]:
    """Serve a script -> its address."""
    with serving(script) as served:
        yield served.url


@contextlib.contextmanager
def serving(script: str = "app.py") -> Iterator[Served]:
    """The app, or another script of Streamlit, served to this machine alone -> its address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    served = ["viz"] if script == "app.py" else ["streamlit", "run", script]
    command = [sys.executable, "-m", *served, "--server.port", str(port)]
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(
            [*command, "--server.fileWatcherType", "none"], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(f"{url}/_stcore/health")
            yield Served(url, process.pid, Path(log.name))
        finally:
            process.terminate()
            process.wait()


def _wait(address: str) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit(f"The app was not ready after {STARTS_WITHIN} s.")


def _row(what: str, ours: float, limit: float, shown: str, allowed: str) -> Row:
    return Row(f"positions: {what}", shown, allowed, ours / limit, "at most 1", ours <= limit)


def _beside(what: str, ours: float, floor: float) -> Row:
    return Row(f"positions: {what}", f"{ours:.0f}", f"{floor:.0f}", ours / floor, "none", True)
