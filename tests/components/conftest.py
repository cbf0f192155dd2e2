"""A bare page for each test, in one browser with one cache of compiled scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ViewportSize

from tests.browser.conftest import watch
from tests.browser.coverage import counted
from tests.components.bare_page import ADDRESS, BarePage

FORGET = """async () => {
  localStorage.clear();
  for (const { name } of await indexedDB.databases()) indexedDB.deleteDatabase(name);
}"""
SIZE: ViewportSize = {"width": 1000, "height": 800}


@pytest.fixture(scope="session")
def room(chromium: Browser) -> Iterator[BrowserContext]:
    """What all bare pages of a process share. Its first page stays: a page that is opened takes longer without one."""
    context = chromium.new_context(viewport=SIZE, reduced_motion="reduce")
    context.new_page()
    yield context
    context.close()


@pytest.fixture
def bare(room: BrowserContext) -> Iterator[BarePage]:
    """An empty page, in which nothing may go wrong and which asks nobody for anything."""
    with watch(room, ADDRESS) as page, counted(page):
        yield BarePage(page)
        page.evaluate(FORGET)
    page.close()
