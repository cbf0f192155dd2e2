"""Heads in a browser: from a dot to sentences, a search that stands in the address, and nothing cut off on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LOADING, click, open_page, settle


@pytest.mark.parametrize("at", ["name", "sentence"])
def test_the_page_opens_on_habits_and_a_press_on_one_opens_its_head(page: Page, at: str) -> None:
    open_page(page, "/heads")
    name = page.get_by_role("button", name="Looks one back")
    sentences = page.locator("[class*=st-key-card-of-habit-]").filter(has=name).locator("ol.shaded li")
    expect(sentences).to_have_count(3, timeout=LOADING)
    settle(page)
    pressed = name if at == "name" else sentences.nth(1)
    box = pressed.bounding_box()
    assert box
    page.mouse.click(box["x"] + 20, box["y"] + box["height"] / 2)
    expect(page).to_have_url(re.compile("heads=head"))
    expect(page.get_by_text("previous token").first).to_be_visible(timeout=LOADING)


def test_a_question_in_words_is_asked(page: Page) -> None:
    open_page(page, "/heads?heads=search")
    click(page.get_by_role("button", name="A verb looks for a noun"))
    expect(page.get_by_text("from a token tagged VERB to a token tagged NOUN")).to_be_visible(timeout=LOADING)


def test_a_dot_leads_to_its_head_and_to_sentences(page: Page) -> None:
    open_page(page, "/heads?heads=map")
    plot = page.locator(".st-key-head-map .plot").first
    expect(plot).to_be_visible(timeout=LOADING)
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    rows = page.locator("ol.shaded li")
    expect(rows.first).to_be_visible(timeout=LOADING)
    expect(rows).to_have_count(51)
    expect(page).to_have_url(re.compile("heads=head"))
    page.get_by_role("button", name="Open on Explore").click()
    expect(page.locator(".st-key-heatmap .plot").first).to_be_visible(timeout=LOADING)


def test_a_search_stands_in_the_address_and_a_bar_leads_to_its_head(page: Page) -> None:
    open_page(page, "/heads?heads=search")
    box = page.get_by_label("Search", exact=True)
    box.fill("pos=NOUN -> pos=ADJ distance=-1 map=encoder")
    box.press("Enter")
    expect(page.get_by_text("from a token tagged NOUN to a token tagged ADJ, 1 token before")).to_be_visible(
        timeout=LOADING
    )
    expect(page).to_have_url(re.compile(r"ask=pos.*ADJ"))
    expect(page.locator("ol.shaded li").first).to_be_visible(timeout=LOADING)


def test_a_box_on_the_map_lists_its_heads_and_stands_in_the_address(page: Page) -> None:
    open_page(page, "/heads?heads=map")
    plot = page.locator(".st-key-head-map .plot").first
    expect(plot).to_be_visible(timeout=LOADING)
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.4 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.6 * box["height"])
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.85 * box["height"])
    page.mouse.up()
    expect(page.get_by_text(re.compile(r"\d+ of 96 .* in the box"))).to_be_visible(timeout=LOADING)
    expect(page).to_have_url(re.compile("brush="))
    page.get_by_role("button", name=re.compile(r"^(encoder|decoder|cross) \d\.\d: ")).first.click()
    expect(page.locator("ol.shaded li").first).to_be_visible(timeout=LOADING)


def test_a_second_model_stands_beside_and_its_dot_opens_it(page: Page) -> None:
    open_page(page, "/heads?heads=map&second_model=preset-original")
    plot = page.locator(".st-key-head-map-beside .plot").first
    expect(plot).to_be_visible(timeout=LOADING)
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(
        re.compile("model=preset-original.*heads=head|heads=head.*model=preset-original"), timeout=LOADING
    )


def test_a_dot_of_the_projection_leads_to_sentences(page: Page) -> None:
    open_page(page, "/heads?heads=projection&plane=encoder+outputs&marked=time")
    plot = page.locator(".st-key-projection .plot")
    expect(plot).to_be_visible(timeout=LOADING)
    plot.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".st-key-projection .readout")).to_contain_text(re.compile("“time”", re.IGNORECASE))
    page.keyboard.press("Enter")
    expect(page.locator("ol.shaded .attends").first).to_contain_text(re.compile("time", re.IGNORECASE), timeout=LOADING)
    expect(page).to_have_url(re.compile("brush="))
    page.get_by_role("button", name="No box").click()
    expect(page.locator("ol.shaded")).to_have_count(0)


def test_pruning_goes_through_its_points(page: Page) -> None:
    open_page(page, "/heads?heads=pruning&sentence=He+turned+the+offer+down.")
    rows = page.locator(".st-key-pruned")
    expect(rows).to_be_visible(timeout=LOADING)
    page.locator(".st-key-away input").press("ArrowRight")
    expect(page).to_have_url(re.compile("away=8"), timeout=LOADING)
