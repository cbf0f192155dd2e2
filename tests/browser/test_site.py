"""The site as it is built: light enough, readable by all, live with the reader's own sentence, and from a disk too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from tests.browser.conftest import ROOT, visit
from tests.browser.steps import LOADING
from tests.browser.test_accessibility import AXE
from tests.docs.test_pages import TEXTS
from tests.samples import slow_after

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(900)]
LIGHT_ENOUGH = 600_000
"""Bytes of the first page before the model is asked for."""
SENTENCE = "The cat sleeps on the table."
AXE_PAGES = ("index.md", "explore.md", "presets.md", "python.md", "command-line.md", "debug-a-mask.md")
"""A page of each kind: live, with pictures, a wide table, generated, with much code."""
PHONE = "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Mobile Safari/537.36"
VIOLATIONS = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.flatMap(
  ({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id} ${target}: ${failureSummary}`))"""


class Handler(SimpleHTTPRequestHandler):
    """A host of static files, in silence."""

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site below a path of its own, as a project has it on GitHub Pages; warnings end the build."""
    place = tmp_path_factory.mktemp("host") / "some" / "path"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(place)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.fixture(scope="module")
def host(folder: Path) -> Iterator[str]:
    """The address of the site's host."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder.parents[1])) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def ask(page: Page, sentence: str) -> None:
    """Type a sentence into the box of a page and ask the model."""
    page.get_by_label("Your English sentence, to be translated into German").fill(sentence)
    page.get_by_role("button", name="Translate").click()


def test_every_page_is_there(folder: Path) -> None:
    assert {path.stem for path in folder.glob("*.html")} == {name.removesuffix(".md") for name in TEXTS} | {"404"}


@pytest.mark.parametrize("phone", [False, True])
def test_the_first_page_is_light_and_translates_the_readers_sentence(
    host: str, folder: Path, chromium: Browser, phone: bool
) -> None:
    settings = {"user_agent": PHONE, "is_mobile": True, "viewport": {"width": 390, "height": 800}} if phone else {}
    with visit(chromium, host, **settings) as page:
        sent: list[Response] = []
        page.on("response", lambda one: sent.append(one))
        page.goto(f"{host}/some/path/index.html", wait_until="networkidle")
        assert sum(len(one.body()) for one in sent) < LIGHT_ENOUGH
        assert not any("/live/" in one.url for one in sent)
        sizes = sorted(path.stat().st_size for path in (folder / "live").glob("*.bin"))
        small, large = (f"{size / 1e6:.0f} MB" for size in sizes)
        expect(page.locator(".live-model [role=status]")).to_contain_text(f"about {large}, on a phone {small}")
        ask(page, SENTENCE)
        live = page.frame_locator(".live-model iframe")
        expect(live.locator("body")).to_have_attribute("data-drawn", "1", timeout=LOADING)
        expect(live.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)
        expect(live.locator(".tokens")).to_contain_text("Katze")
        (model,) = (one.url for one in sent if one.url.endswith(".bin"))
        assert (folder / "live" / model.rpartition("/")[2]).stat().st_size == sizes[0 if phone else -1]


def test_from_a_disk_it_is_read_and_searched_and_says_that_the_model_cannot_be_fetched(
    folder: Path, disk: Page
) -> None:
    disk.goto((folder / "index.html").as_uri())
    ask(disk, SENTENCE)
    expect(disk.locator(".live-model [role=status]")).to_contain_text("This page was opened from a disk")
    disk.get_by_role("textbox", name="Search").click()
    disk.get_by_role("textbox", name="Search").press_sequentially("unpickled")
    expect(disk.locator(".md-search-result__link").first).to_be_visible()
    disk.locator(".md-search-result__link").first.click()
    expect(disk.locator("article")).to_contain_text("unpickled")


@pytest.mark.parametrize("scheme", slow_after(1, ["light", "dark"]))
def test_axe_finds_nothing(host: str, chromium: Browser, scheme: str) -> None:
    found = {}
    with visit(chromium, host, color_scheme=scheme, reduced_motion="reduce") as page:
        for name in AXE_PAGES:
            page.goto(f"{host}/some/path/{name.removesuffix('.md')}.html")
            expect(page.locator("body")).to_have_attribute(
                "data-md-color-scheme", "slate" if scheme == "dark" else "default"
            )
            page.wait_for_timeout(200)
            page.evaluate(AXE.read_text(encoding="utf-8") + "\n;0")
            found[name] = page.evaluate(VIOLATIONS)
    assert {name: faults for name, faults in found.items() if faults} == {}
