"""At first sight a page shows few controls (bench/controls.py counts them)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from bench.controls import LIMITS, list_controls
from tests.browser.steps import close_menu, open_menu, open_page


def open_at_rest(page: Page, path: str) -> Page:
    """Open a page, and wait until it has faded in."""
    open_page(page, path)
    page.locator(":root[data-arrived]").wait_for(state="attached")
    page.wait_for_timeout(600)
    return page


@pytest.mark.parametrize("path", LIMITS)
def test_a_page_shows_few_controls_at_first(page: Page, path: str) -> None:
    found = list_controls(open_at_rest(page, f"/{path}"))
    assert 3 < len(found) <= LIMITS[path], found


def test_a_closed_menu_is_counted_as_one_control(page: Page) -> None:
    before = list_controls(open_at_rest(page, "/"))
    assert all(any(name in one for one in before) for name in ("Share", "Settings", "Sentence")), before
    menu = open_menu(page, "share")
    expect(menu.get_by_role("button", name="Add to talk")).to_be_visible()
    assert len(list_controls(page)) > len(before) + 2
    close_menu(page)
