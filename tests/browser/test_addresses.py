"""Addresses that anybody typed: what makes no sense is gone before a control reads it, also on the way back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import click, expect_head, open_menu, open_page, settle

SENTENCE = "sentence=He+reads+a+book."
NINES = "9" * 309
"""More than the greatest number has digits."""


@pytest.mark.parametrize(
    ("address", "label", "value", "left"),
    [
        (f"/decode?{SENTENCE}&method=sample&seed=1e999", "Seed", "0", "method=sample"),
        (
            f"/positions?{SENTENCE}&positions={NINES}&plot=table&table=sinusoidal",
            "Positions",
            "128",
            "table=sinusoidal",
        ),
        ("/masks?from=build&queries=-1e999&rule=causal", "Queries", "6", "rule=causal"),
        (f"/masks?part=try+on+the+model&{SENTENCE}&pads=nan&tried=tests", "Padding", "3", "tried=tests"),
    ],
)
def test_an_infinite_number_is_left_out_and_the_rest_kept(
    page: Page, address: str, label: str, value: str, left: str
) -> None:
    open_page(page, address)
    if label == "Seed":
        open_menu(page, "more-numbers")
    field = page.get_by_label(label, exact=True)
    expect(field).to_have_value(value)
    expect(page).to_have_url(re.compile(re.escape(left)))
    expect(page).not_to_have_url(re.compile(r"1e999|9{9}|nan"))
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_the_way_back_leads_over_nonsense(page: Page) -> None:
    open_page(page, f"/decode?{SENTENCE}&method=sample&seed=1e999")
    expect(page).not_to_have_url(re.compile("seed"))
    click(page.get_by_role("link", name="Heads"))
    settle(page)
    page.go_back()
    settle(page)
    expect(page).to_have_url(re.compile("decode"))
    expect(page).not_to_have_url(re.compile("seed"))
    expect(open_menu(page, "more-numbers").get_by_label("Seed", exact=True)).to_have_value("0")
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_back_and_forward_bring_what_a_click_has_chosen(page: Page) -> None:
    open_page(page, f"/masks?part=gallery&{SENTENCE}&fault=inverted")
    chosen = page.get_by_role("radio", name="The causal mask was forgotten")
    click(chosen.locator("xpath=ancestor::label"))
    expect(page).to_have_url(re.compile("fault=future-visible"))
    settle(page)
    page.go_back()
    expect(page).to_have_url(re.compile("fault=inverted"))
    expect(page.get_by_role("heading", name="The mask is upside down")).to_be_visible()


def test_the_first_page_answers_to_its_name(page: Page) -> None:
    open_page(page, f"/explore?{SENTENCE}&layer=2&head=3")
    expect_head(page, 2, 3)
    expect(page).to_have_url(re.compile(r":\d+/\?.*layer=2"))
    expect(page.get_by_role("link", name="Explore")).to_have_count(1)
