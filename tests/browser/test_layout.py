"""Nothing is cut off nor left in English: every page and every main view, from a projector down to a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from attenscope.language import COMPLETE_LANGUAGES, PSEUDO_LANGUAGE
from tests.browser.conftest import visit_household
from tests.browser.steps import LOADING, boxes_at_rest, open_page, settle
from tests.browser.views import GIVEN, VIEWS, open_view
from tests.browser.words import english, without_accents
from tests.messages import TRANSLATED

PHONE = 390
WIDTHS = (1440, 1280, 800)


def layouts() -> Iterator[Any]:
    """Every view on a phone and at another width, in words two fifths longer than English; all other pairs are slow."""
    for language in (PSEUDO_LANGUAGE, *COMPLETE_LANGUAGES):
        for at, address in enumerate(VIEWS):
            for width in (PHONE, *WIDTHS):
                quick = language == PSEUDO_LANGUAGE and width in (PHONE, WIDTHS[at % len(WIDTHS)])
                name = f"{language}-{address}-{width}"
                yield pytest.param((language, address), width, marks=() if quick else pytest.mark.slow, id=name)


OUTSIDE = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  const width = document.documentElement.clientWidth;
  const parent = (one) => one.parentElement ?? one.getRootNode().host;
  const inside = ({ left, right }) => left >= -1 && right <= width + 1;
  const scrolls = (one) => {
    for (let up = parent(one); up && up !== main; up = parent(up))
      if (/auto|scroll/.test(getComputedStyle(up).overflowX)) return inside(up.getBoundingClientRect());
    return false;
  };
  const shows = (one) => /^(canvas|svg|img|input|button|textarea)$/i.test(one.tagName)
    || [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const seen = { visibilityProperty: true, opacityProperty: true };
  const outside = main.scrollWidth > width ? [`the page is ${main.scrollWidth} wide`] : [];
  let shape = 0;
  const look = (root) => root.querySelectorAll("*").forEach((one) => {
    if (one.shadowRoot) look(one.shadowRoot);
    const box = one.getBoundingClientRect();
    shape += 3 * box.left + 5 * box.right + 7 * box.top + 11 * box.bottom;
    if (box.width <= 1 || box.height <= 1 || inside(box) || !shows(one) || !one.checkVisibility(seen)) return;
    const words = one.textContent.trim() || one.getAttribute("aria-label");
    if (!scrolls(one)) outside.push(`${one.tagName} “${words}” from ${box.left} to ${box.right}`);
  });
  look(main);
  return { outside, shape };
}"""
"""What can be seen of the page, stands outside the window and is in no part that scrolls; and a sum over all places."""


@pytest.fixture(scope="module")
def view(request: pytest.FixtureRequest, server: str, household: BrowserContext) -> Iterator[Page]:
    """A view in a language, opened once for all widths."""
    language, address = request.param
    with visit_household(household, server) as visitor:
        open_view(visitor, address, language)
        yield visitor


def outside(page: Page) -> list[str]:
    """What stands outside the window once nothing moves any more."""
    seen: list[dict] = []
    settle(page)
    for _ in range(50):
        seen.append(page.evaluate(OUTSIDE))
        if seen[-3:] == [seen[-1]] * 3:
            return seen[-1]["outside"]
        page.wait_for_timeout(100)
    raise AssertionError(f"The page did not come to rest: {seen[-2:]}")


@pytest.mark.parametrize(("view", "width"), list(layouts()), indirect=["view"])
def test_nothing_is_cut_off(view: Page, width: int) -> None:
    view.set_viewport_size({"width": width, "height": 900})
    assert outside(view) == []


@pytest.mark.parametrize("view", [(PSEUDO_LANGUAGE, address) for address in VIEWS], indirect=True)
def test_every_word_is_said(view: Page) -> None:
    assert without_accents(view, GIVEN) == []


@pytest.mark.slow
@pytest.mark.parametrize("view", [(language, address) for language in TRANSLATED for address in VIEWS], indirect=True)
def test_no_word_is_english(view: Page, request: pytest.FixtureRequest) -> None:
    language = request.node.callspec.params["view"][0]
    assert english(view, language, GIVEN) == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_badge_stands_between_the_navigation_and_the_button(page: Page, language: str) -> None:
    open_page(page, f"/?layer=1&lang={language}")
    expect(page.locator(".st-key-badge")).to_be_visible(timeout=LOADING)
    last = page.locator('[data-testid="stTopNavLink"], [data-testid="stExpandSidebarButton"]').last  # Or their arrow.
    for width in (1440, 1351, 1280, 1081, 1001, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        name, badge, button = boxes_at_rest(page, [last, ".st-key-badge", ".st-key-header-actions"])
        assert name["x"] + name["width"] < badge["x"], width
        assert badge["x"] + badge["width"] < button["x"], width
