"""Nothing jumps: how far the parts of a page move while it loads and as another head is chosen.

Layout shift as browsers measure it (https://web.dev/articles/cls): the share of the window that moves times how far.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LOADING, open_page, settle, tile
from tests.samples import slow_after

MOST = 0.02
PATHS = ("/", "/decode", "/why", "/positions", "/training", "/masks")
SIZES = ((1440, 900), (1280, 720), (800, 1000), (390, 844))
PLACES = [(path, *SIZES[(turn + at) % len(SIZES)]) for turn in range(len(SIZES)) for at, path in enumerate(PATHS)]
"""Every page at every size, each size first at some of the pages."""
OBSERVE = """
    window.shifts = [];
    new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map(({ value }) => value)))
      .observe({ type: "layout-shift", buffered: true });
"""


HEADS_CHOSEN = [("/", 4), ("/?layer=1", 1), ("/training", 4), ("/", 1), ("/?layer=1", 4), ("/training", 1)]
"""Pages with tiles, and by how much the browser is slowed."""


def shifted(page: Page) -> float:
    return float(page.evaluate("shifts.reduce((sum, one) => sum + one, 0)"))


def arrive(page: Page, path: str) -> None:
    """Open a page and wait until it is in sight and at rest."""
    open_page(page, path)
    page.locator(":root[data-arrived]").wait_for(state="attached")
    page.wait_for_timeout(600)


@pytest.mark.parametrize(("path", "width", "height"), slow_after(2 * len(PATHS), PLACES))
def test_nothing_jumps_while_a_page_loads(other: Page, path: str, width: int, height: int) -> None:
    """With nothing of the app in the browser's cache yet."""
    other.set_viewport_size({"width": width, "height": height})
    other.add_init_script(OBSERVE)
    arrive(other, path)
    assert shifted(other) < MOST


@pytest.mark.parametrize(("path", "speed"), slow_after(3, HEADS_CHOSEN))
def test_nothing_jumps_as_another_head_is_chosen(page: Page, path: str, speed: int) -> None:
    page.add_init_script(OBSERVE)
    arrive(page, path)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": speed})
    page.evaluate("shifts.length = 0")
    for layer, head in ((2, 3), (1, 2), (2, 1)):
        tile(page, layer, head).click()
        expect(tile(page, layer, head)).to_have_attribute("aria-pressed", "true")
        settle(page)
        page.wait_for_timeout(300)
    assert shifted(page) < MOST


@pytest.mark.parametrize(("width", "height"), slow_after(2, SIZES[::-1]))
def test_nothing_jumps_as_heads_are_switched_off_and_on(page: Page, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.add_init_script(OBSERVE)
    arrive(page, "/")
    tile(page, 2, 3).scroll_into_view_if_needed()
    for keys in ("x", "Shift+X", "Shift+X", "Shift+X"):  # One head, then its layer: off, on, off.
        page.evaluate("shifts.length = 0")
        tile(page, 2, 3).focus()
        page.keyboard.press(keys)
        settle(page)
        page.wait_for_timeout(300)
        assert shifted(page) < MOST, keys
    expect(page.locator(".st-key-again")).to_contain_text("cross layer 2 heads 1 to 8 off")


def test_nothing_jumps_as_another_head_is_chosen_on_decode(page: Page) -> None:
    page.add_init_script(OBSERVE)
    arrive(page, "/decode")
    page.evaluate("shifts.length = 0")
    for label, head in (("Cross-attention head", "2.3"), ("Decoder self-attention head", "1.2")):
        page.get_by_label(label).select_option(head)
        settle(page)
        page.wait_for_timeout(300)
    assert shifted(page) < MOST


@pytest.mark.slow
def test_a_page_shows_even_where_it_never_comes_to_rest(page: Page) -> None:
    page.add_init_script("Object.defineProperty(document.fonts, 'status', { value: 'loading' })")
    page.goto("/masks")
    expect(page.get_by_text("Paste what torch")).to_be_visible(timeout=LOADING)
    expect(page.locator(":root[data-arrived]")).to_have_count(0)
    assert page.evaluate("getComputedStyle(document.body, '::after').visibility") == "hidden"


def test_a_page_is_never_white(page: Page) -> None:
    """Its name and the shape of what comes are there before any script of Streamlit, and while another page is made."""
    shape = "getComputedStyle(document.body, '::after').content"
    page.route("**/static/js/**", lambda _: None)
    page.goto("/", wait_until="commit")
    page.wait_for_function(f"() => document.body && {shape} === '\"\"'")
    assert page.evaluate("getComputedStyle(document.body, '::before').content") == '"Attenscope"'
    page.unroute("**/static/js/**")  # Sends on what waited.
    page.locator(":root[data-arrived]").wait_for(state="attached", timeout=LOADING)
    assert page.evaluate(shape) == "none"
    page.get_by_role("link", name="Heads").first.click()
    page.wait_for_function(f"() => {shape} === '\"\"'")
    page.wait_for_function(f"() => {shape} === 'none'")
    expect(page.locator(".st-key-habits")).to_be_visible()
