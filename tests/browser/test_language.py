"""No English in errors, saved files and on the stage in another language; test_layout.py walks through the views."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from attenscope.language import say, use_language
from attenscope.viz.talk.file import format_talk
from attenscope.viz.talk.session import load_shipped_talk
from tests.browser.steps import LOADING, download, enter, open_file, open_menu, open_page, settle
from tests.browser.test_talk import on_scene, ready, screen
from tests.browser.views import GIVEN
from tests.browser.words import english
from tests.messages import ROOT, TRANSLATED
from tests.samples import slow_after

__all__ = ["screen"]
pytestmark = [pytest.mark.sweep, pytest.mark.timeout(600), pytest.mark.parametrize("language", TRANSLATED)]
ALERT = '[data-testid="stAlert"]'
NONSENSE = ("/?model=none-such", "/decode?method=none", "/heads?q=1", "/positions?positions=x")
PASTED = ("[[1, 2", "[[0.5, 0.5], [0.5]]", "import os", "tensor([[True, False], [True, True]])")


@pytest.mark.parametrize("address", slow_after(2, NONSENSE))
def test_an_address_that_is_none(page: Page, language: str, address: str) -> None:
    open_page(page, f"{address}&lang={language}")
    assert english(page, language, GIVEN) == []


def test_a_sentence_that_is_too_long(page: Page, language: str) -> None:
    open_page(page, f"/?lang={language}")
    with use_language(language):
        enter(page.get_by_label(say("Sentence"), exact=True), "a " * 4000)
    expect(page.locator(ALERT).first).to_be_visible()
    assert english(page, language, GIVEN) == []


@pytest.mark.parametrize("text", slow_after(2, PASTED))
def test_what_is_pasted(page: Page, language: str, text: str) -> None:
    open_page(page, f"/masks?from=paste&lang={language}")
    box = page.locator("textarea").first
    box.fill(text)
    box.press("Control+Enter")
    settle(page)
    assert english(page, language, GIVEN) == []


def test_a_saved_page(page: Page, disk: Page, language: str, tmp_path: Path) -> None:
    open_page(page, f"/?layer=1&sentence=He+turned+the+offer+down.&lang={language}")
    with use_language(language):
        button = open_menu(page, "share").get_by_role("button", name=say("Interactive page (HTML)"))
    open_file(disk, download(button, tmp_path))
    assert disk.evaluate("document.documentElement.lang").startswith(language)
    assert english(disk, language, (*GIVEN, *sentences(disk, language))) == []


@pytest.mark.parametrize("count", slow_after(1, [2, 4]))
def test_the_stage(screen: Page, language: str, count: int) -> None:
    scenes = load_shipped_talk()[0].scenes
    given = (*GIVEN, *(value for one in scenes for value in one.view.values() if " " in value))
    screen.goto(f"/talk?present=1&lang={language}")
    for number, scene in enumerate(scenes[:count], 1):
        on_scene(screen, number)
        ready(screen, number)
        assert english(screen, language, given) == []
        screen.keyboard.press("PageDown")
        if scene.hide:
            screen.keyboard.press("PageDown")


@pytest.mark.slow
def test_the_talk_as_a_file(disk: Page, language: str, tmp_path: Path) -> None:
    talk, out = tmp_path / "talk.toml", tmp_path / "talk.html"
    with use_language(language):
        talk.write_text(format_talk(load_shipped_talk()[0]), encoding="utf-8")
    command = (sys.executable, "-m", "attenscope.viz.export", "--int8", "--language", language, str(talk), str(out))
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    disk.goto(out.as_uri())
    expect(disk.locator("body")).to_have_attribute("data-ready", "yes", timeout=LOADING)
    assert english(disk, language, (*GIVEN, *sentences(disk, language))) == []


def sentences(page: Page, language: str) -> list[str]:
    """What a saved file says that its model has read and written."""
    with use_language(language):
        names = say("sentence"), say("translation")
    found = [text for name in names for text in page.locator(f"footer dt:text-is('{name}') + dd").all_text_contents()]
    assert found
    return found
