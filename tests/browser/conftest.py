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
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from model.checkpoint.load import available

from .steps import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "app.py"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
STARTS_WITHIN = 60
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A busy machine can starve a browser for seconds: a failed test of a page is tried again, which is reported."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.flaky(reruns=2))


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


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app, served by a process of its own with the released checkpoints."""
    if not available():
        missing("no checkpoint in checkpoints/: train one with `python -m model train`")
    port = free_port()
    log = tmp_path_factory.mktemp("server") / "app.log"
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--server.fileWatcherType", "none"],
            cwd=ROOT,
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
def chromium() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        missing("no Chromium found: install it (apt install chromium) or name it in $CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def page(server: str, chromium: Browser) -> Iterator[Page]:
    """A fresh visitor. Afterwards: no error on the console, and no request has left the machine."""
    context = chromium.new_context(base_url=server, viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    visitor = context.new_page()
    faults: list[str] = []

    def console(message: ConsoleMessage) -> None:
        # Below a page's own path Streamlit first looks for its server there, and is told that there is none.
        if message.type == "error" and "/_stcore/" not in message.location.get("url", ""):
            faults.append(f"console: {message.text}")

    def request(sent: Request) -> None:
        if not sent.url.startswith((server, "data:", "blob:")):
            faults.append(f"request: {sent.url}")

    visitor.on("console", console)
    visitor.on("request", request)
    visitor.on("pageerror", lambda error: faults.append(f"error: {error}"))
    yield visitor
    context.close()
    assert not faults, faults


@pytest.fixture
def disk(chromium: Browser) -> Iterator[Page]:
    """A visitor without a network. Afterwards: nothing was asked for but the file, and nothing went wrong."""
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 720})
    alone = context.new_page()
    faults: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            faults.append(request.url)

    alone.on("request", asked)
    alone.on("dialog", lambda dialog: faults.append("a dialog was opened"))
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    yield alone
    context.close()
    assert not faults, faults
