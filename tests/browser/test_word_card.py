"""The card of a word: on Explore and on Decode, and the ways from it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import choose, click, expect_title, open_page, settle

SENTENCE = "Where+did+you+buy+this+red+bicycle%3F"


def card(page: Page) -> Locator:
    return page.get_by_role("article", name=re.compile("^The word "))


def open_card(page: Page, word: str) -> None:
    page.locator(".st-key-translation .target").get_by_role("button", name=word, exact=True).click()
    settle(page)
    expect(card(page).locator(".word")).to_have_text(word)


def test_a_word_of_the_translation_has_a_card(page: Page) -> None:
    open_page(page, f"/?layer=1&sentence={SENTENCE}")
    expect(card(page)).to_have_count(0)
    open_card(page, "Fahrrad")
    expect(card(page)).to_contain_text("the most probable token")
    parts = card(page).locator("section")
    expect(parts.locator("h4")).to_contain_text(["Instead of it", "It looked at", "Heads that matter"])
    expect(parts.nth(1).locator(".row .text").first).to_have_text("bicycle")
    card(page).get_by_role("button", name="Close this card").click()
    settle(page)
    expect(card(page)).to_have_count(0)


def test_the_picture_leads_to_a_card_that_stands_below_the_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_page(page, f"/?layer=1&sentence={SENTENCE}")
    leads = page.locator(".st-key-translation .says button")
    expect(leads).to_be_hidden()
    open_card(page, "Fahrrad")
    expect(card(page)).not_to_be_in_viewport()
    leads.click()
    expect(card(page)).to_be_in_viewport(ratio=0.9)


def test_a_head_of_the_card_opens_in_the_picture(page: Page) -> None:
    open_page(page, f"/?sentence={SENTENCE}")
    open_card(page, "Fahrrad")
    head = card(page).locator("section").nth(2).get_by_role("button").first
    kind, layer, number = re.split(r"[ .]", head.locator(".text").inner_text())
    head.click()
    settle(page)
    name = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}[kind]
    expect_title(page, f"{name} · layer {layer}, head {number}")
    expect(card(page).locator(".word")).to_have_text("Fahrrad")


def test_another_candidate_goes_on_in_decode_with_its_card(page: Page) -> None:
    open_page(page, f"/?sentence={SENTENCE}")
    open_card(page, "Fahrrad")
    other = card(page).locator("section").first.get_by_role("button").first
    name = other.locator(".text").inner_text()
    other.click()
    expect(page).to_have_url(re.compile(r"/decode\?.*branch="))
    settle(page)
    expect(card(page).locator(".word")).to_have_text(name)
    expect(page.locator(".decode-player")).to_have_attribute("data-step", "6")


def test_a_word_pressed_on_decode_has_the_same_card(page: Page) -> None:
    open_page(page, f"/?sentence={SENTENCE}")
    open_card(page, "Fahrrad")
    said = card(page).inner_text().replace("Open in Decode", "")
    card(page).get_by_role("button", name="Open in Decode").click()
    expect(page).to_have_url(re.compile(r"/decode\?sentence=.*step=6"))
    settle(page)
    assert card(page).inner_text().split() == said.split()
    page.locator(".decode-player .target .piece", has_text="hast").click()
    settle(page)
    expect(card(page).locator(".word")).to_have_text("hast")
    expect(page.locator(".decode-player")).to_have_attribute("data-step", "2")
    card(page).locator("section").nth(2).get_by_role("button").first.click()
    expect(page).to_have_url(re.compile(r"^[^?]*//[^/]*/\?"))
    settle(page)
    expect(card(page).locator(".word")).to_have_text("hast")


def same_word(page: Page, word: str) -> None:
    """The player is at this word, and the card that is open is of it."""
    expect(page.locator(".decode-player .legend .predicted")).to_have_text(word)
    expect(card(page).locator(".word")).to_have_text(word)
    expect(card(page)).not_to_have_class(re.compile("waits"))


def test_the_card_on_decode_is_of_the_word_that_the_player_is_at(page: Page) -> None:
    open_page(page, f"/decode?sentence={SENTENCE}&step=1")
    open_page(page, f"/?sentence={SENTENCE}")
    open_card(page, "Fahrrad")
    click(page.get_by_role("link", name="Decode", exact=True))
    settle(page)
    same_word(page, "Fahrrad")
    page.get_by_label("Decoding step").focus()
    page.keyboard.press("Home")
    expect(card(page)).to_have_class(re.compile("waits"))  # It is of another word until that of this one is there.
    same_word(page, "Wo")
    choose(page, "Strategy", "beam")
    settle(page)
    same_word(page, "Wo")
    page.locator(".decode-player .target .piece", has_text="hast").click()
    settle(page)
    same_word(page, "hast")
    page.go_back()
    settle(page)
    same_word(page, "Wo")


@pytest.mark.parametrize("step", ["&step=1", ""])
def test_a_link_opens_decode_at_the_word_of_its_card(page: Page, step: str) -> None:
    open_page(page, f"/decode?sentence={SENTENCE}&pin=target.6{step}")
    same_word(page, "Fahrrad")
