"""What the running app survives: a talk made from scratch before it is given, and requests that are none of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.browser.conftest import ROOT, SCREEN, free_port, wait_until_healthy
from tests.browser.steps import (
    LOADING,
    TRAFFIC,
    add_to_talk,
    click,
    download,
    enter,
    open_file,
    open_page,
    open_talk,
    save_talk,
    settle,
)
from tests.browser.test_opened_trace import INPUT, bring, recorded

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
SHOTS = os.environ.get("SHOTS")
"""A folder for a picture of each stop, to be looked at."""
SENTENCE = "sentence=He+turned+the+offer+down."
TRACE, MASK = 3, 4
"""Which of the scenes show files of one's own, from 1."""


class Served:
    """The app in a process that can be killed, and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        run = [sys.executable, "-m", "viz", "--server.port", str(self._port), "--server.fileWatcherType", "none"]
        log = self._folder / "app.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(run, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        wait_until_healthy(self.url, self._process, log)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    app = Served(tmp_path)
    yield app
    app.kill()


@pytest.fixture
def speaker(chromium: Browser, served: Served) -> Iterator[BrowserContext]:
    """The browser of somebody who prepares a talk; that its server dies is no fault of its pages."""
    context = chromium.new_context(base_url=served.url, viewport=SCREEN, reduced_motion="reduce")
    context.add_init_script(TRAFFIC)
    yield context
    context.close()


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png")


def made(page: Page, folder: Path) -> None:
    """Six scenes, each added where it stands, the third and the fourth from files."""

    def add(path: str, prepare: Callable[[], None] = lambda: None) -> None:
        open_page(page, path)
        prepare()
        add_to_talk(page)
        expect(page.get_by_text(re.compile(r"Scene \d of your talk"))).to_be_visible()
        settle(page)

    def trace() -> None:
        bring(page, recorded(folder))
        expect(page.get_by_text("an opened trace of Transformer")).to_be_visible(timeout=LOADING)
        page.keyboard.press("Escape")

    def mask() -> None:
        np.save(folder / "my mask.npy", np.tri(5, dtype=bool))
        page.locator(INPUT).set_input_files(folder / "my mask.npy")
        expect(page.locator('.plot[data-panel="given"]')).to_be_visible(timeout=LOADING)

    add(f"/?{SENTENCE}&layer=2")
    add(f"/decode?{SENTENCE}&step=3")
    add("/", trace)
    add("/masks?from=upload", mask)
    add(f"/positions?{SENTENCE}&plot=waves")
    add("/masks?part=gallery&fault=future-visible")


def in_editor(page: Page) -> None:
    """All six scenes are there, with their files and what was said to them."""
    expect(page.get_by_label("Title of the talk")).to_have_value("My six scenes", timeout=LOADING)
    expect(page.locator(".st-key-scene-choice [role=radiogroup] input")).to_have_count(6)
    expect(page.get_by_test_id("stAlert")).to_have_count(0, timeout=LOADING)
    settle(page)


def on_stage(page: Page, number: int) -> None:
    stage = page.locator("dialog.show")
    expect(stage).to_have_attribute("data-scene", str(number), timeout=LOADING)
    expect(stage.locator(".place")).to_contain_text(f"{number} / 6")
    expect(stage).to_have_attribute("data-ready", str(number), timeout=2 * LOADING)
    scene = page.frame_locator("dialog.show iframe.seen")
    if number == TRACE:
        expect(scene.locator(".heatmap")).to_have_attribute("data-painted", re.compile(r"\.layers\.\d"))
    if number == MASK:
        expect(scene.locator('.plot[data-panel="given"]')).to_be_visible()


def test_a_talk_of_six_scenes_survives(speaker: BrowserContext, served: Served, disk: Page, tmp_path: Path) -> None:
    page = speaker.new_page()
    made(page, tmp_path)
    open_page(page, "/talk")
    enter(page.get_by_label("Title of the talk"), "My six scenes")
    in_editor(page)
    shot(page, "made")

    page.reload()
    in_editor(page)
    click(page.get_by_role("link", name="Positions", exact=True))
    settle(page)
    page.go_back()
    in_editor(page)
    second = speaker.new_page()
    open_page(second, "/talk")
    in_editor(second)
    second.close()

    click(page.get_by_role("button", name="Start the talk"))
    for number in range(1, 7):
        on_stage(page, number)
        shot(page, f"stage-{number}")
        page.keyboard.press("PageDown")
    page.keyboard.press(str(TRACE))
    on_stage(page, TRACE)
    page.reload()
    on_stage(page, TRACE)

    served.kill()
    served.start()
    page.keyboard.press("PageDown")  # It was built before the server died.
    expect(page.locator("dialog.show")).to_have_attribute("data-scene", str(MASK))
    page.reload()
    on_stage(page, MASK)
    shot(page, "stage-after-restart")
    page.keyboard.press("Escape")
    in_editor(page)
    served.kill()
    served.start()  # while the editor is open
    in_editor(page)
    shot(page, "editor-after-restart")
    page.reload()  # Streamlit 1.67 hands no file to a page that it did not serve itself ("session ID mismatch").
    in_editor(page)

    again = save_talk(page, tmp_path)
    file = download(page.get_by_role("button", name="One file"), tmp_path)
    open_file(disk, file)
    for number in range(1, 7):
        expect(disk.locator("body")).to_have_attribute("data-slide", str(number), timeout=LOADING)
        expect(disk.locator(".missing")).to_have_count(0)
        shot(disk, f"file-{number}")
        disk.keyboard.press("PageDown")
    sheets = disk.pdf(prefer_css_page_size=True, print_background=True)
    if SHOTS:
        (Path(SHOTS) / "handout.pdf").write_bytes(sheets)
    assert len(re.findall(rb"/Type\s*/Page[^s]", sheets)) == 6

    stranger = speaker.browser.new_context(base_url=served.url, viewport=SCREEN) if speaker.browser else None
    assert stranger
    stranger.add_init_script(TRAFFIC)
    other = stranger.new_page()  # another computer, with what was saved
    open_page(other, "/talk")
    open_talk(other, again)
    in_editor(other)
    stranger.close()


def test_the_running_app_serves_no_page_under_the_name_of_another_site(server: str) -> None:
    request = urllib.request.Request(server, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    with refused.value as answer:
        assert answer.code == 403
    with urllib.request.urlopen(server) as served:
        assert served.status == 200


def test_the_running_app_ends_a_connection_of_text_and_serves_the_next(server: str) -> None:
    """What it writes to its log is held to have no traceback by the fixture."""
    address = f"{server.replace('http', 'ws', 1)}/_stcore/stream"
    for _ in range(2):
        with connect(address, origin=Origin(server)) as socket:
            socket.send("hello")
            with pytest.raises(ConnectionClosed):
                socket.recv(timeout=10)
