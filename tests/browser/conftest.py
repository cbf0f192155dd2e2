"""A running app and a real Chromium for the tests of the pages."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from attenscope.checkpoint.load import list_checkpoints
from tests.browser.coverage import counted
from tests.browser.modules import ADDRESS
from tests.browser.steps import PATIENCE, TRAFFIC

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    "--process-per-site",  # So that a visitor's scripts need not be compiled again for the next one, see `household`.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",  # No request leaves the machine.
)
STARTS_WITHIN = 60
SCREEN: ViewportSize = {"width": 1440, "height": 900}
expect.set_options(timeout=PATIENCE)


def missing(what: str) -> None:
    """Skip with the reason; in continuous integration nothing may be skipped quietly."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"The app ended with {process.returncode}:\n{log.read_text(errors='replace')}")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"The app was not ready after {STARTS_WITHIN} s:\n{log.read_text(errors='replace')}")


@contextmanager
def serving(folder: Path, *arguments: str, command: Sequence[str] = ()) -> Iterator[str]:
    """The address of the app, served by a process of its own, whose command line ends in `arguments`.

    With a `command` it is that one, run in the folder, to which the port is added.
    """
    port = free_port()
    log = folder / "app.log"
    run = [sys.executable, "-m", "viz", "--server.port", str(port)]
    ours = [*run, "--server.fileWatcherType", "none", "--", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port)] if command else ours,
            cwd=folder if command else ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_healthy(url, process, log)
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    # Streamlit itself leaves a traceback of its own files when a visitor goes in the middle of a reply.
    said = log.read_text(errors="replace")
    assert not any(f'File "{ROOT / part}' in said for part in ("app.py", "model", "viz")), said


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app with the released checkpoints."""
    if not list_checkpoints():
        missing("no checkpoint in checkpoints/: train one with `python -m model train`")
    with serving(tmp_path_factory.mktemp("server")) as url:
        yield url


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Chromium, driven by Playwright, which runs once in a process (the fixture `chromium`)."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        missing("no Chromium found: install it (apt install chromium) or name it in $CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def visit(chromium: Browser, *allowed: str, **settings: Any) -> Iterator[Page]:
    """A visitor with a browser of his own, in whose cache is nothing; otherwise as :func:`watch`."""
    context = chromium.new_context(**settings)
    context.add_init_script(TRAFFIC)
    with watch(context, *allowed) as visitor:
        with counted(visitor):
            yield visitor
        context.close()


@contextmanager
def watch(context: BrowserContext, *allowed: str) -> Iterator[Page]:
    """A new page that may ask for addresses that begin as `allowed`.

    Afterwards: no error on the console, no dialog, no request to elsewhere. Such a request fails (`ARGUMENTS`): to be
    told of failed ones alone spares a twentieth of what opening a page costs.
    """
    visitor = context.new_page()
    faults: list[str] = []

    def console(message: ConsoleMessage) -> None:
        # Below a page's own path Streamlit first looks for its server there, and is told that there is none.
        if message.type == "error" and "/_stcore/" not in message.location.get("url", ""):
            faults.append(f"console: {message.text}")

    def request(sent: Request) -> None:
        if not sent.url.startswith((*allowed, "data:", "blob:")):
            faults.append(f"request: {sent.url}")

    def dialog(opened: Dialog) -> None:
        faults.append(f"dialog: {opened.message}")
        opened.dismiss()

    visitor.on("console", console)
    visitor.on("requestfailed", request)
    visitor.on("dialog", dialog)
    visitor.on("pageerror", lambda error: faults.append(f"error: {error}"))
    yield visitor
    assert not faults, faults


@pytest.fixture(scope="session")
def household(server: str, chromium: Browser) -> Iterator[BrowserContext]:
    """What the visitors of a process share: a browser that has the scripts of the app, compiled.

    Its first page is never closed: with the last page Chromium forgets what it has compiled, and a page that is opened
    takes twice the time.
    """
    context = chromium.new_context(base_url=server, viewport=SCREEN, reduced_motion="reduce")
    context.add_init_script(TRAFFIC)
    context.new_page().goto("/_stcore/health")
    yield context
    context.close()


@contextmanager
def visit_household(household: BrowserContext, server: str) -> Iterator[Page]:
    """A visitor whose browser knows the app's scripts and nothing else of it; what he leaves is removed."""
    try:
        with watch(household, server) as visitor:
            yield visitor
            for page in household.pages[1:]:
                page.close()
    finally:  # A fault of this visitor is not to be the next one's.
        household.set_offline(False)
        household.clear_permissions()
        household.clear_cookies()
        stored = {"origin": server, "storageTypes": "local_storage,indexeddb,cache_storage,service_workers"}
        session = household.new_cdp_session(household.pages[0])
        session.send("Storage.clearDataForOrigin", stored)
        session.detach()


@pytest.fixture
def page(server: str, household: BrowserContext) -> Iterator[Page]:
    """A visitor of the app, whose requests do not leave the machine."""
    with visit_household(household, server) as visitor:
        yield visitor


@pytest.fixture
def other(server: str, chromium: Browser) -> Iterator[Page]:
    """A second visitor, or one whose browser has never seen the app."""
    with visit(chromium, server, base_url=server, viewport=SCREEN, reduced_motion="reduce") as visitor:
        yield visitor


@pytest.fixture
def disk(chromium: Browser) -> Iterator[Page]:
    """A visitor without a network, who opens a file and nothing else but scripts of the sources (modules.py)."""
    with visit(chromium, "file:", ADDRESS, offline=True, viewport={"width": 1280, "height": 720}) as visitor:
        yield visitor
