"""What is typed is translated before Enter; the page then says the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LOADING, open_page, settle, type_sentence

PREVIEWED = ""
OPACITY = """(one) => {
  let all = 1;
  for (; one; one = one.parentElement) all *= Number(getComputedStyle(one).opacity);
  return all;
}"""
"""How opaque an element is painted, 0 to 1."""


@pytest.fixture
def explore(page: Page) -> Page:
    open_page(page, "/?sentence=He+reads+a+book.")
    expect(page.locator(".st-key-translation .target")).to_contain_text("Buch", timeout=LOADING)
    settle(page)
    return page


def test_a_sentence_is_translated_while_it_is_typed(explore: Page) -> None:
    box, target = explore.locator(".st-key-sentence textarea"), explore.locator(".st-key-translation .target")
    says, root = explore.locator(".st-key-translation .says"), explore.locator(":root")
    said = says.locator("span")
    before, entries = explore.url, explore.evaluate("history.length")
    box.click()
    explore.keyboard.press("Control+a")
    explore.keyboard.type("The children are singing", delay=20)
    expect(target).to_contain_text("Kinder")
    expect(root).to_have_attribute("data-previewed", "")
    assert (explore.url, explore.evaluate("history.length")) == (before, entries)
    # The rest is of the sentence before, and looks so.
    assert explore.locator(".st-key-tiles").evaluate(OPACITY) < 0.5
    told, note = said.inner_text(), says.locator("small")
    expect(note).to_have_text("Press Enter to see its heads below.")
    explore.keyboard.press("Enter")
    explore.wait_for_url(re.compile("children"))
    settle(explore)
    expect(target).to_contain_text("Kinder")
    expect(root).not_to_have_attribute("data-previewed", PREVIEWED)
    assert said.inner_text() == told
    expect(note).to_have_text("")


def test_what_is_taken_back_leaves_what_the_page_has_drawn(explore: Page) -> None:
    target, root = explore.locator(".st-key-translation .target"), explore.locator(":root")
    explore.locator(".st-key-sentence textarea").click()
    explore.keyboard.press("End")
    explore.keyboard.type(" She reads a letter.", delay=10)
    expect(target).to_contain_text("Brief")
    for _ in " She reads a letter.":
        explore.keyboard.press("Backspace")
    expect(target).not_to_contain_text("Brief")
    expect(root).not_to_have_attribute("data-previewed", PREVIEWED)


def test_a_click_on_a_previewed_word_pins_it_in_its_sentence(explore: Page) -> None:
    explore.locator(".st-key-sentence textarea").click()
    explore.keyboard.press("Control+a")
    explore.keyboard.type("We saw two small birds", delay=10)
    word = explore.locator(".st-key-translation .target button", has_text="zwei")
    word.click()  # The box loses the focus, so the page runs with what was typed.
    explore.wait_for_url(re.compile("birds"))
    expect(word).to_have_attribute("aria-pressed", "true")
    settle(explore)
    row = int(word.get_attribute("data-index") or -1)
    expect(explore).to_have_url(re.compile(rf"pin=target\.{row + 1}\b"))
    expect(explore.get_by_role("article", name="The word zwei")).to_be_attached()


def test_nothing_is_asked_while_heads_are_switched_off(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if "translation-preview" in one.url else None)
    open_page(page, "/?sentence=He+reads+a+book.&changes=cross.1.1%3Aoff")
    expect(page.locator(".st-key-translation .target")).to_contain_text("Buch", timeout=LOADING)
    settle(page)
    page.locator(".st-key-sentence textarea").click()
    page.keyboard.press("End")
    page.keyboard.type(" She sleeps.", delay=10)
    page.wait_for_timeout(700)
    assert asked == []


@pytest.mark.parametrize(
    "answer", [{"status": 204}, {"status": 200, "body": "<html></html>", "content_type": "text/html"}]
)
def test_a_sentence_is_submitted_where_there_is_no_preview(explore: Page, answer: dict[str, Any]) -> None:
    explore.route(re.compile("translation-preview"), lambda route: route.fulfill(**answer))
    type_sentence(explore, "We saw two small birds.")
    settle(explore)
    expect(explore.locator(".st-key-translation .target")).to_contain_text("zwei")
    expect(explore.locator(":root")).not_to_have_attribute("data-previewed", PREVIEWED)


def test_a_sentence_is_submitted_soon_where_the_preview_does_not_come(explore: Page) -> None:
    explore.route(re.compile("translation-preview"), lambda route: None)
    type_sentence(explore, "We saw two small birds.")
    explore.wait_for_url(re.compile("birds"), timeout=5_000)
