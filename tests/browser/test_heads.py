"""Heads in a browser: from a dot to sentences, a search that stands in the address, and nothing cut off on a phone."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from .steps import LOADING, open_page


def test_a_dot_leads_to_its_head_and_to_sentences(page: Page) -> None:
    open_page(page, "/heads")
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
