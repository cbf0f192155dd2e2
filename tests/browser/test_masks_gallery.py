"""Masks: the gallery, a mask tried on the model, and the converter, used as a visitor uses them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect

from tests.browser.steps import choose, click, download, enter, open_menu, open_page, settle


def test_a_symptom_leads_to_a_fault_shown_broken_and_fixed(page: Page) -> None:
    open_page(page, "/masks?part=gallery")
    box = page.get_by_label("What do you see?")
    enter(box, "copies next token")
    expect(page.get_by_text(re.compile(r"^\d+ of \d+$"))).to_be_visible()  # the list is another one now
    click(page.locator(".st-key-fault-list").get_by_text("The causal mask was forgotten"))
    expect(page.get_by_role("heading", name="The causal mask was forgotten")).to_be_visible()
    expect(page.get_by_text("● future-visible")).to_be_visible()
    expect(page.get_by_text("✓ sound")).to_be_visible()
    expect(page.get_by_text("def future_visible_broken")).to_be_visible()
    expect(page.locator(".st-key-fault-pair .gtitle")).to_be_visible()
    settle(page)
    assert "fault=future-visible" in page.url
    enter(box, "xyzzy")
    expect(page.get_by_text("Nothing in the gallery speaks of that.")).to_be_visible()


def test_a_link_opens_an_entry(page: Page) -> None:
    open_page(page, "/masks?part=gallery&fault=observer")
    expect(page.get_by_role("heading", name="Looking changes the result")).to_be_visible()
    expect(page.get_by_text("observer (B6) fault")).to_be_visible()
    expect(page.get_by_text("observer (B6) pass")).to_be_visible()


def test_a_mask_is_tried_on_the_model(page: Page, tmp_path: Path) -> None:
    open_page(page, "/masks?part=try+on+the+model&sentence=He+reads+a+book.&kind=decoder")
    expect(page.locator(".st-key-badge")).to_contain_text("outputs unchanged by looking")
    expect(page.get_by_text("Positions see what comes after them")).to_be_visible()
    expect(page.locator(".st-key-tried-pair .gtitle")).to_contain_text("Decoder self-attention")
    expect(page.locator(".st-key-transformer")).to_have_count(1)  # One drawing to choose from, with the heads.
    expect(page.get_by_label("Which attention of the Transformer is looked at")).to_have_count(1)
    click(page.get_by_role("radio", name="one token", exact=True))
    expect(page.locator(".st-key-poked-bars .gtitle")).to_be_visible()
    expect(page.get_by_text("Own mask: ")).to_be_visible()
    click(page.get_by_role("radio", name="tests", exact=True))
    expect(page.locator(".checks tbody tr")).to_have_count(8)
    _, _, own, tried = page.locator(".checks tr").filter(has_text="future-token (B1)").locator("td").all()
    expect(own).to_contain_text("✓ pass")
    expect(tried).to_contain_text("● fault")
    menu = open_menu(page, "share")
    file = download(menu.get_by_role("button", name="Interactive page (HTML)"), tmp_path)
    assert "Decoder self-attention: No causal mask" in file.read_text()
    assert "future-token" in download(menu.get_by_role("button", name="Numbers (CSV)"), tmp_path).read_text()


def test_a_mask_is_converted_and_a_loss_is_said(page: Page, tmp_path: Path) -> None:
    open_page(page, "/masks?part=convert")
    expect(page.get_by_text("attn_mask = mask")).to_be_visible()
    expect(page.get_by_text("shape (2, 5, 5), bool")).to_be_visible()
    rule = page.get_by_label("A query may attend where")
    enter(rule, "sideways")
    expect(page.locator('[data-testid="stAlert"]')).to_contain_text("“sideways” is not a kind of mask")
    enter(rule, "padding")
    expect(page.locator('[data-testid="stAlert"]')).to_have_count(0)
    choose(page, "To", "Hugging Face: attention_mask, two axes")
    expect(page.get_by_text("attention_mask = key_keep.long()")).to_be_visible()
    expect(page.get_by_text("shape (2, 5), int64")).to_be_visible()
    expect(page.get_by_text("Lost: which queries are padding")).to_be_visible()
    file = download(open_menu(page, "share").get_by_role("button", name="The converted mask (NPY)"), tmp_path)
    assert np.load(file).tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
