"""Every page held against the rules of axe-core, in light and dark: nothing serious, and the tree by keyboard."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .steps import LOADING, open_page, settle

AXE = files("axe_playwright_python") / "axe.min.js"
PAGES = {
    "explore": ("/", ".st-key-overview .grid"),
    "text": ("/?view=text", ".st-key-text .texts"),
    "decode": ("/decode?method=beam&sentence=He+turned+the+offer+down.", ".st-key-tree-frame .js-plotly-plot"),
    "positions": ("/positions", ".st-key-picture .matrix"),
    "training": ("/training", '[data-testid="stMain"]'),
    "masks": ("/masks", '[data-testid="stMain"]'),
    "talk": ("/talk", '[data-testid="stMain"]'),
}


def findings(page: Page) -> list[str]:
    """What axe finds serious or critical once the page's style sheet is there: rule, selector, what is wrong."""
    for _ in range(10):
        found = found_now(page)
        if not found:
            break
        page.wait_for_timeout(300)
    return found


def found_now(page: Page) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;0")
    found: dict[str, Any] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']} {node['target']}: {node['failureSummary']}\n  {node['html'][:200]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("name", PAGES)
def test_no_serious_finding_in_light_and_dark(page: Page, name: str) -> None:
    address, there = PAGES[name]
    open_page(page, address)
    expect(page.locator(there).first).to_be_visible(timeout=LOADING)
    assert not findings(page)
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".stApp")).to_have_css("color-scheme", "dark")
    settle(page)
    expect(page.locator(there).first).to_be_visible(timeout=LOADING)
    assert not findings(page)


def test_the_beam_tree_is_walked_by_keys(page: Page) -> None:
    open_page(page, "/decode?method=beam&sentence=He+turned+the+offer+down.&step=1")
    expect(page.get_by_text("Three ways agree")).to_be_visible()
    expect(page.locator(".st-key-tree-frame .js-plotly-plot .point").first).to_be_visible(timeout=LOADING)
    tree = page.get_by_role("group", name="The beam search as a tree")
    first = tree.get_by_role("button").first
    expect(first).to_have_attribute("style", re.compile("left: .*px"))
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    there = tree.get_by_role("button", name=re.compile(r"^Step 2, place 2:"))
    expect(there).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"way=\d+\.\d+(&|$)"))
    expect(page.locator(".decode-player")).to_have_attribute("data-step", "2")
