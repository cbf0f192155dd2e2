"""What can be done with any page: it is presented, its link is copied, its keys are listed."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.steps import choose_language, close_menu, expect_head, open_menu, open_page


def test_a_page_is_presented_and_its_link_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, "/?layer=3&head=2")
    expect_head(page, 3, 2)
    open_menu(page, "page-help").get_by_text("Keyboard", exact=True).click()
    expect(page.get_by_text("the view full screen, and back")).to_be_visible()
    close_menu(page)
    open_menu(page, "share").get_by_role("button", name="Copy the link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.get_by_role("button", name="Full screen").click()
    expect(page.locator("dialog.show iframe").first).to_be_attached()
    page.wait_for_function("document.fullscreenElement !== null")
    page.keyboard.press("Escape")  # Also before the picture is ready.
    expect(page.locator("dialog.show")).to_have_count(0)
    page.wait_for_function("document.fullscreenElement === null")
    page.wait_for_timeout(1500)
    page.wait_for_url(re.compile("layer=3"))


def test_another_language_is_chosen_and_kept(page: Page) -> None:
    open_page(page, "/?layer=3&head=2")
    choose_language(page, "de")
    expect(page.get_by_role("link", name="Erkunden")).to_be_visible()
    page.wait_for_url(re.compile("lang=de"))
    chosen = page.get_by_role("button", name="Schicht 3, Head 2", exact=True)
    expect(chosen).to_have_count(1)
    expect(chosen).to_have_attribute("aria-pressed", "true")
    page.reload()
    choose_language(page, "zh")
    expect(page.get_by_role("link", name="探索")).to_be_visible()
    page.wait_for_url(re.compile("lang=zh"))
