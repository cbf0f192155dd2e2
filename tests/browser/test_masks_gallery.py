"""Masks: the gallery, a mask tried on the model, and the converter, used as a visitor uses them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect

from .steps import boxes_at_rest, open_menu, open_page, settle


def test_a_symptom_leads_to_a_fault_shown_broken_and_fixed(page: Page) -> None:
    open_page(page, "/masks?part=gallery")
    box = page.get_by_label("What do you see?")
    box.fill("copies next token")
    box.press("Enter")
    expect(page.get_by_text(re.compile(r"^\d+ of \d+$"))).to_be_visible()  # the list is another one now
    settle(page)
    page.locator(".st-key-fault-list").get_by_text("The causal mask was forgotten").click()
    expect(page.get_by_role("heading", name="The causal mask was forgotten")).to_be_visible()
    expect(page.get_by_text("● future-visible")).to_be_visible()
    expect(page.get_by_text("✓ sound")).to_be_visible()
    expect(page.get_by_text("def future_visible_broken")).to_be_visible()
    expect(page.locator(".st-key-fault-pair .gtitle")).to_be_visible()
    settle(page)
    assert "fault=future-visible" in page.url
    box.fill("xyzzy")
    box.press("Enter")
    expect(page.get_by_text("Nothing in the gallery speaks of that.")).to_be_visible()


def test_a_link_opens_an_entry_and_nothing_is_cut_off(page: Page) -> None:
    page.set_viewport_size({"width": 800, "height": 900})
    open_page(page, "/masks?part=gallery&fault=observer")
    expect(page.get_by_role("heading", name="Looking changes the result")).to_be_visible()
    expect(page.get_by_text("observer (B6) fault")).to_be_visible()
    expect(page.get_by_text("observer (B6) pass")).to_be_visible()
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 800
    for box in boxes_at_rest(page, (".st-key-fault-lead", ".st-key-fault-pair-frame")):
        assert box is not None
        assert box["x"] + box["width"] <= 800


def test_a_mask_is_tried_on_the_model(page: Page) -> None:
    open_page(page, "/masks?part=try+on+the+model&sentence=He+reads+a+book.&kind=decoder")
    expect(page.locator(".st-key-badge")).to_contain_text("outputs unchanged by looking")
    expect(page.get_by_text("Positions see what comes after them")).to_be_visible()
    expect(page.locator(".st-key-tried-pair .gtitle")).to_contain_text("Decoder self-attention")
    page.get_by_role("radio", name="one token", exact=True).click()
    expect(page.locator(".st-key-poked-bars .gtitle")).to_be_visible()
    expect(page.get_by_text("Own mask: ")).to_be_visible()
    page.get_by_role("radio", name="tests", exact=True).click()
    expect(page.locator(".checks tbody tr")).to_have_count(8)
    expect(page.locator(".checks tr").filter(has_text="future-token (B1)")).to_contain_text("● fault")
    expect(page.locator(".checks tr").filter(has_text="future-token (B1)")).to_contain_text("✓ pass")
    settle(page)
    menu = open_menu(page, "save")
    with page.expect_download() as saved:
        menu.get_by_role("button", name="Interactive page (HTML)").click()
    assert "Decoder self-attention: no causal mask" in Path(saved.value.path()).read_text()
    with page.expect_download() as saved:
        menu.get_by_role("button", name="Numbers (CSV)").click()
    assert "future-token" in Path(saved.value.path()).read_text()


def test_a_mask_is_converted_and_a_loss_is_said(page: Page) -> None:
    open_page(page, "/masks?part=convert")
    expect(page.get_by_text("attn_mask = mask")).to_be_visible()
    expect(page.get_by_text("shape (2, 5, 5), bool")).to_be_visible()
    rule = page.get_by_label("A query may attend where")
    rule.fill("sideways")
    rule.press("Enter")
    expect(page.locator('[data-testid="stAlert"]')).to_be_visible()
    rule.fill("padding")
    rule.press("Enter")
    expect(page.locator('[data-testid="stAlert"]')).to_have_count(0)
    settle(page)
    page.get_by_role("combobox", name="To").click()
    page.get_by_role("option", name="Hugging Face: attention_mask, two axes").click()
    expect(page.get_by_text("attention_mask = key_keep.long()")).to_be_visible()
    expect(page.get_by_text("shape (2, 5), int64")).to_be_visible()
    expect(page.get_by_text("Lost: which queries are padding")).to_be_visible()
    settle(page)
    with page.expect_download() as saved:
        open_menu(page, "save").get_by_role("button", name="The converted mask (NPY)").click()
    assert np.load(saved.value.path()).tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
