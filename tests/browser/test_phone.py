"""A phone, 390 pixels wide: nothing covers anything, and labels can be read. And the whole screen, at any size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import visit
from tests.browser.steps import LOADING, click, open_menu, open_page, settle
from tests.samples import slow_after

PHONE: ViewportSize = {"width": 390, "height": 844}
SIZES = ((390, 844), (1280, 720), (800, 900), (1440, 900))
LONG = "sentence=The+old+man+who+lives+next+door+reads+a+book+in+the+garden+every+evening."
HEADER = [".st-key-badge", ".st-key-header-actions", '[data-testid="stHeader"]']

# Where the words and signs of some parts stand: what is seen of an element without children, by the number of its part.
LEAVES = """(parts) => parts.flatMap((part, at) => [...document.querySelectorAll(`${part} :not([fill=none])`)]
  .filter((one) => !one.childElementCount || one.title)
  .filter((one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
  .map((one) => one.getBoundingClientRect()).filter(({ width, height }) => width > 1 && height > 1)
  .map(({ left, right }) => [at, { left, right }]))"""

# Whether two labels of a heatmap lie on each other, and the smallest of their letters, in pixels of the screen.
LABELS = """(root) => {
  const labels = [...root.querySelectorAll("text.column")];
  const turned = labels.map((label) => label.transform.baseVal.consolidate().matrix);
  const scale = root.getBoundingClientRect().width / root.clientWidth;
  const sizes = labels.map((label) => parseFloat(label.getAttribute("font-size")));
  const gaps = turned.slice(1).map((one, at) => Math.abs((one.e - turned[at].e) * one.b));
  const overlap = gaps.some((gap, at) => gap < sizes[at]);
  return { overlap, smallest: Math.min(...sizes) * scale, count: labels.length };
}"""


@pytest.fixture
def phone(page: Page) -> Page:
    page.set_viewport_size(PHONE)
    return page


@pytest.fixture
def hand(server: str, chromium: Browser) -> Iterator[Page]:
    """A visitor with a finger and no keyboard."""
    touched = {"viewport": PHONE, "has_touch": True, "is_mobile": True, "reduced_motion": "reduce"}
    with visit(chromium, server, base_url=server, **touched) as visitor:
        yield visitor


def test_the_drawer_lies_over_the_header_and_closes_behind_a_page(hand: Page) -> None:
    open_page(hand, "/why")
    drawer, closes = hand.get_by_test_id("stSidebar"), hand.get_by_test_id("stSidebarCollapseButton").locator("button")
    for page in ("Positions", "Masks"):
        settle(hand)
        hand.get_by_test_id("stExpandSidebarButton").tap()
        closes.tap(trial=True)  # Nothing lies over it.
        drawer.get_by_role("link", name=page).tap()
        expect(hand).to_have_url(re.compile(page.lower()))
        expect(drawer.get_by_role("link", name=page)).not_to_be_in_viewport()


def test_a_finger_goes_through_a_talk_and_leaves_it(hand: Page) -> None:
    open_page(hand, "/talk")
    settle(hand)
    hand.locator("button.start").tap()
    show = hand.locator("dialog.show")
    expect(show).to_have_attribute("data-scene", "1", timeout=LOADING)
    show.get_by_role("button", name="Next").tap()
    expect(show).to_have_attribute("data-scene", "2", timeout=LOADING)
    show.get_by_role("button", name="Back").tap()
    expect(show).to_have_attribute("data-scene", "1")
    show.get_by_role("button", name="Leave full screen").tap()
    expect(show).to_have_count(0)


@pytest.mark.slow
def test_a_finger_leaves_a_page_that_is_presented(hand: Page) -> None:
    open_page(hand)
    click(open_menu(hand, "share").get_by_role("button", name="Full screen"))
    leave = hand.locator("dialog.show").get_by_role("button", name="Leave full screen")
    expect(hand.locator("dialog.show:not(.waiting)")).to_be_visible(timeout=LOADING)
    leave.tap()
    expect(hand.locator("dialog.show")).to_have_count(0)


@pytest.mark.parametrize("path", slow_after(3, ["/", "/masks", "/talk", "/decode", "/why", "/training", "/positions"]))
def test_nothing_covers_the_status_line(phone: Page, path: str) -> None:
    open_page(phone, path)
    phone.locator(":root[data-arrived]").wait_for(state="attached")
    boxes = phone.evaluate(LEAVES, HEADER)
    assert len(boxes) > 1
    for (part, one), (other_part, other) in combinations(boxes, 2):
        assert part == other_part or one["right"] <= other["left"] or other["right"] <= one["left"], (one, other)
    assert not [box for _, box in boxes if box["left"] < 0 or box["right"] > PHONE["width"]]


@pytest.mark.parametrize(("width", "height"), slow_after(2, SIZES))
def test_column_labels_can_be_read(page: Page, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    open_page(page, f"/?layer=1&{LONG}&kind=encoder&words=false&hide=false")
    heatmap = page.locator(".st-key-heatmap .heatmap")
    expect(heatmap.locator("text.column").first).to_be_attached()
    labels = heatmap.evaluate(LABELS)
    assert not labels["overlap"]
    assert labels["smallest"] >= 9
    assert labels["count"] == 17


def test_no_curve_of_decode_crosses_a_word(phone: Page) -> None:
    open_page(phone, f"/decode?{LONG}&step=3")
    player = phone.locator(".decode-player")
    expect(player).to_have_attribute("data-step", "3")
    crossed = """(root) => {
      const words = [...root.querySelectorAll(".text .piece")].map((word) => word.getBoundingClientRect());
      const origin = root.querySelector(".text").getBoundingClientRect();
      const isIn = (word, x, y) => x > word.left && x < word.right && y > word.top && y < word.bottom;
      const inside = ({ x, y }) => words.some((word) => isIn(word, x + origin.left, y + origin.top));
      const at = (path, share) => path.getPointAtLength(path.getTotalLength() * share);
      const places = (path) => Array.from({ length: 41 }, (_, i) => at(path, i / 40));
      return [...root.querySelectorAll(".text path")].filter((path) => path.style.display !== "none")
        .some((path) => places(path).some(inside));
    }"""
    steps = int(phone.get_by_label("Decoding step").get_attribute("max") or 0) + 1
    for step in range(3, steps):
        assert not player.evaluate(crossed), step
        phone.keyboard.press("ArrowRight")
        expect(player).to_have_attribute("data-step", str(step + 1))


@pytest.mark.parametrize(("width", "height"), slow_after(1, SIZES))
def test_presented_the_picture_stays_shaded_until_the_large_one_is_there(page: Page, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    open_page(page, f"/?layer=1&{LONG}")
    expect(page.locator(".st-key-heatmap .heatmap")).to_have_attribute(
        "data-painted", "Cross-attention · layer 1, head 1"
    )
    page.locator(":root[data-arrived]").wait_for(state="attached")
    page.keyboard.press("p")
    show = page.locator("dialog.show")
    show.wait_for(state="attached")
    seen = """() => {
      const roots = [...document.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
      const show = roots.map((root) => root.querySelector("dialog.show")).find(Boolean);
      if (!show) return "page";
      const frame = show.querySelector("iframe.seen");
      const shade = Number(getComputedStyle(show).opacity);
      if (shade < 0.5) return shade > 0.3 ? "page" : "no sign";
      return frame?.contentDocument?.querySelector(".st-key-heatmap") ? "picture" : "blank";
    }"""
    states = [page.evaluate(seen)]
    while states[-1] != "picture" and len(states) < LOADING / 50:
        page.wait_for_timeout(50)
        states.append(page.evaluate(seen))
    assert set(states) <= {"page", "picture"}
    heatmap = page.frame_locator("iframe.seen").locator(".st-key-heatmap .heatmap")
    labels = heatmap.evaluate(LABELS)
    assert not labels["overlap"]
    assert labels["smallest"] >= 7
    canvas = page.frame_locator("iframe.seen").locator(".st-key-heatmap canvas")
    assert canvas.evaluate("canvas => canvas.clientWidth / innerWidth") >= 0.33
    assert canvas.evaluate("canvas => canvas.getBoundingClientRect().bottom <= innerHeight + 1")


@pytest.mark.slow
def test_a_number_stands_in_its_cell_or_is_left_out(page: Page) -> None:
    """In the picture of a fault: with room the numbers are there, on a phone none stands on the next."""
    widest = """(labels) => Math.max(0, ...labels.filter((one) => one.checkVisibility())
        .map((one) => one.getBoundingClientRect().width))"""
    for width, shown in ((1280, True), (390, False), (1280, True)):
        page.set_viewport_size({"width": width, "height": 844})
        open_page(page, "/masks")
        labels = page.locator(".st-key-opening-pair .heatmap-label")
        expect(labels).not_to_have_count(0)
        assert bool(labels.evaluate_all(widest)) == shown


@pytest.mark.parametrize(("width", "height"), slow_after(2, SIZES))
def test_what_the_tour_says_stays_in_sight(page: Page, width: int, height: int) -> None:
    """Where the window is narrow the picture that a step speaks of comes under its words; elsewhere nothing moves."""
    page.set_viewport_size({"width": width, "height": height})
    open_page(page, "/")
    click(page.get_by_role("button", name="Start here"))
    tour, picture = page.locator(".st-key-tour"), page.locator(".st-key-head-picture")
    for step in (2, 3):
        click(page.get_by_role("button", name="Next", exact=True))
        expect(tour).to_contain_text(f"{step}/")
        settle(page)
        expect(tour).to_be_in_viewport(ratio=0.99)
        if width <= 1000:
            under = "([one, other]) => other.getBoundingClientRect().top >= one.getBoundingClientRect().bottom - 1"
            assert page.evaluate(under, [tour.element_handle(), picture.element_handle()])
            expect(picture).to_be_in_viewport()
