"""Every page held against the rules of axe-core, in light and dark: nothing serious, and the tree by keyboard."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LOADING, open_page, settle
from tests.browser.views import VIEWS, open_view

AXE = files("axe_playwright_python") / "axe.min.js"
ENDS = (
    "view=heatmap",
    "view=text",
    "method=beam",
    "why=source+words",
    "why=heads",
    "plot=table",
    "training=snapshots",
    "from=paste",
    "/talk",
)


def findings(page: Page) -> list[str]:
    """What axe finds serious or critical: rule, selector, what is wrong."""
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;0")
    found: dict[str, Any] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']} {node['target']}: {node['failureSummary']}\n  {node['html'][:200]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("address", [address for address in VIEWS if address.endswith(ENDS)])
def test_no_serious_finding_in_light_and_dark(page: Page, address: str) -> None:
    open_view(page, address)
    expect(page.get_by_test_id("stMainBlockContainer")).to_have_css("padding-left", "40px")  # The style sheet is there.
    assert findings(page) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator(".stApp")).to_have_css("color-scheme", "dark")
    settle(page)
    expect(page.locator(VIEWS[address]).first).to_be_visible()
    assert findings(page) == []


def test_the_beam_tree_is_walked_by_keys(page: Page) -> None:
    open_page(page, "/decode?method=beam&sentence=He+turned+the+offer+down.&step=1")
    expect(page.get_by_text("The attention weights agree")).to_be_visible()
    expect(page.locator(".st-key-tree .node").first).to_be_visible(timeout=LOADING)
    tree = page.get_by_role("group", name="The beam search as a tree")
    first = tree.get_by_role("button").first
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    there = tree.get_by_role("button", name=re.compile(r"^Step 2, place 2:"))
    expect(there).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"way=\d+\.\d+(&|$)"))
    expect(page.locator(".decode-player")).to_have_attribute("data-step", "2")
