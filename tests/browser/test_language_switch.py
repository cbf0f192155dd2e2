"""The language switched in the running page, then one action more: the page is the one that a reload brings."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Page, expect

from attenscope.language import SOURCE_LANGUAGE
from tests.browser.steps import LOADING, choose_language, click, enter, open_page, settle
from tests.browser.views import GIVEN, PAGES, VIEWS, open_view
from tests.browser.words import english
from tests.messages import TRANSLATED
from tests.samples import slow_after

pytestmark = pytest.mark.timeout(400)
SUN = "The sun shines."
EXPLORE = "/?sentence=He+turned+the+offer+down.&view=heatmap"
CONTROLS = "[data-testid=stMain] [data-testid=stButtonGroup] button:not([data-selected]):visible"
ERRORS = '[data-testid="stException"], [data-testid="stAlertContentError"]'
DOUBLED = """() => {
  const keys = [...document.querySelectorAll('[class*="st-key-"]')]
    .flatMap((one) => [...one.classList].filter((name) => name.startsWith("st-key-")));
  const views = [...document.querySelectorAll('[data-testid="stBidiComponentIsolated"]')]
    .filter((one) => one.shadowRoot.childElementCount > 2) // Its style sheet and its view.
    .map((one) => one.closest('[class*="st-key-"]').className);
  return [...keys.filter((key, at) => keys.indexOf(key) !== at), ...views];
}"""
TEXTS = """() => {
  const found = [];
  const look = (root) => { for (const one of root.children) {
    if (one.matches("script, style, template, noscript, .st-key-earlier")) continue;
    found.push(...[...one.classList].filter((name) => name.startsWith("st-key-")));
    for (const name of ["aria-label", "placeholder"]) if (one.hasAttribute(name)) found.push(one.getAttribute(name));
    for (const node of one.childNodes) if (node.nodeType === Node.TEXT_NODE && node.data.trim()) found.push(node.data);
    if (one.matches("input, textarea")) found.push(one.value);
    if (one.shadowRoot) look(one.shadowRoot);
    look(one);
  } };
  look(document.querySelector('[data-testid="stMain"]'));
  return found.map((text) => text.replace(/\\s+/g, " ").replace(/\\d+([.,]\\d+)? m?s\\b/, ""));
}"""
"""Keys and texts in their order, without how long something took and without the sentences of before."""


def switch(page: Page, language: str) -> None:
    settle(page)
    choose_language(page, language)
    expect(page.locator("html")).to_have_attribute("lang", re.compile(f"^{language}\\b"))
    settle(page)


def act(page: Page) -> None:
    """Type a sentence where there is a box for it, else press a control, else choose another scene."""
    box, scenes = page.locator(".st-key-sentence textarea"), page.locator(".st-key-scene-choice label")
    if box.is_visible():
        enter(box, SUN)
    elif scenes.count():
        click(scenes.last)
    else:
        click(page.locator(CONTROLS).last)
    settle(page)


def whole(page: Page, language: str) -> None:
    """Nothing stands twice, nothing is wrong, and all is in the language, once pictures of scenes are taken."""
    assert page.evaluate(DOUBLED) == []
    expect(page.locator(ERRORS)).to_have_count(0)
    if language == SOURCE_LANGUAGE:
        return
    until = time.monotonic() + LOADING / 1000
    while (left := english(page, language, (*GIVEN, SUN))) and time.monotonic() < until:
        page.wait_for_timeout(500)
    assert left == []


def as_reloaded(page: Page) -> None:
    """The page says what it says after a reload, once all of it has come."""
    switched = None
    while switched != (switched := page.evaluate(TEXTS)):
        page.wait_for_timeout(400)
        settle(page)
    page.reload()
    until = time.monotonic() + LOADING / 1000
    while (fresh := page.evaluate(TEXTS)) != switched and time.monotonic() < until:
        settle(page)
        page.wait_for_timeout(200)
    assert switched == fresh


FIRST = {address for page, views in PAGES.items() for address in [f"{page}{next(iter(views))}"]}
"""A view of each page; another view of it has the same sentence box and the same frame."""


@pytest.mark.parametrize("address", slow_after(len(FIRST), sorted(VIEWS, key=lambda one: one not in FIRST)))
def test_a_view_in_another_language(page: Page, address: str) -> None:
    language = TRANSLATED[list(VIEWS).index(address) % len(TRANSLATED)]
    open_view(page, address)
    switch(page, language)
    expect(page.locator(VIEWS[address]).first).to_be_visible(timeout=LOADING)
    whole(page, language)
    if address in FIRST:
        act(page)
        whole(page, language)
        if not address.startswith("/talk"):  # Its address does not say which scene is edited.
            as_reloaded(page)


def test_back_and_forth(page: Page) -> None:
    open_page(page, EXPLORE)
    for language in (*TRANSLATED, SOURCE_LANGUAGE):
        switch(page, language)
    act(page)
    whole(page, SOURCE_LANGUAGE)
    as_reloaded(page)


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_choice_made_before_stays(page: Page, language: str) -> None:
    open_page(page, f"{EXPLORE.replace('heatmap', 'links')}&threshold=0.1")
    lines = page.locator(".st-key-threshold input")
    expect(lines).to_have_value("from a weight of 0.1")
    switch(page, language)
    expect(lines).not_to_have_value("from a weight of 0.1")
    chosen = lines.input_value()
    assert "0" in chosen
    act(page)
    expect(lines).to_have_value(chosen)
    assert "threshold=0.1" in page.url
