"""What an address that shows nothing opens on, and which sentence comes with a model: gone as a visitor goes."""

from __future__ import annotations

import re
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from attenscope.viz.ui.current_sentence import EXAMPLE_SENTENCES
from tests.browser.steps import choose, click, enter, expect_head, open_page, settle, try_something, type_sentence
from tests.samples import slow_after

WELCOME, LIBRARY = EXAMPLE_SENTENCES["en"][0], EXAMPLE_SENTENCES["zh"][0]
OWN = "My neighbour has a small blue car."
SHOWING_NOTHING = ("/", "/?lang=de", "/?lang=zh", "/?theme=dark", "/?view=links", "/?model=everyday-en-de", "/?utm=1")


def reads(page: Page, text: str) -> None:
    expect(page.locator(".st-key-sentence textarea")).to_have_value(text)
    settle(page)


def go_to(page: Page, name: str) -> None:
    click(page.get_by_role("link", name=name, exact=True))
    page.wait_for_url(re.compile(name.lower()) if name != "Explore" else re.compile(r"/(\?.*)?$"))
    settle(page)


@pytest.mark.parametrize("address", slow_after(3, SHOWING_NOTHING))
def test_an_address_that_shows_nothing_opens_on_the_welcome(page: Page, address: str) -> None:
    open_page(page, address)
    reads(page, WELCOME)
    expect(page.locator(".st-key-translation .target button[aria-pressed=true]")).to_have_text("gekauft")
    expect(page.locator("[class*='st-key-card-of']").first).to_be_visible()
    assert {"sentence", "layer", "pin"} <= set(re.findall(r"[?&](\w+)=", page.url))


def test_the_welcome_of_a_model_that_the_address_names(page: Page) -> None:
    open_page(page, "/?model=everyday-zh-en")
    reads(page, LIBRARY)
    expect(page.locator(".st-key-translation .target button[aria-pressed=true]")).to_have_count(1)


def test_what_an_address_shows_is_left_as_it_is(page: Page) -> None:
    open_page(page, "/?layer=2&head=3")
    reads(page, WELCOME)
    expect_head(page, 2, 3)
    expect(page.locator(".st-key-translation .target button[aria-pressed=true]")).to_have_count(0)
    open_page(page, "/?sentence=He+reads+a+book.")
    reads(page, "He reads a book.")
    expect(page.locator(".st-key-translation .target button[aria-pressed=true]")).to_have_count(1)


def test_the_first_head_of_the_welcome_without_a_pin_is_an_address_too(page: Page) -> None:
    open_page(page, "/")
    try_something(page, lambda menu: enter(menu.get_by_label("Head", exact=True), "1.1"))
    click(page.locator(".st-key-translation .target button[aria-pressed=true]"))
    expect_head(page, 1, 1)
    page.reload()
    settle(page)
    reads(page, WELCOME)
    expect_head(page, 1, 1)


@pytest.mark.parametrize("name", slow_after(3, ["decode", "training", "talk", "why", "heads", "positions", "masks"]))
def test_another_page_before_chooses_no_head(page: Page, name: str) -> None:
    open_page(page, f"/{name}")
    settle(page)
    go_to(page, "Explore")
    reads(page, WELCOME)
    expect(page.locator(".st-key-translation .target button[aria-pressed=true]")).to_have_text("gekauft")


@pytest.mark.parametrize("name", ["decode", "why", "positions", "heads?heads=pruning"])
def test_every_page_begins_with_the_welcome(page: Page, name: str) -> None:
    open_page(page, f"/{name}")
    reads(page, WELCOME)


def test_a_sentence_comes_back_with_a_model_of_its_language(page: Page) -> None:
    open_page(page, "/")
    type_sentence(page, OWN)
    choose(page, "Model", "everyday-zh-en")
    reads(page, LIBRARY)
    expect(page.get_by_role("button", name="Earlier")).to_be_visible()
    choose(page, "Model", "everyday-en-de")
    reads(page, OWN)
    choose(page, "Model", "preset-original")
    reads(page, OWN)


def test_a_welcome_goes_with_its_model_and_comes_back_on_the_way_back(page: Page) -> None:
    open_page(page, "/")
    choose(page, "Model", "everyday-zh-en")
    reads(page, LIBRARY)
    page.go_back()
    reads(page, WELCOME)


def test_a_sentence_typed_for_another_model_is_read_by_that_one(page: Page) -> None:
    open_page(page, "/?model=everyday-zh-en")
    type_sentence(page, OWN)
    click(page.get_by_role("button", name="Use everyday-en-de"))
    expect(page.get_by_role("combobox", name="Model")).to_have_value("everyday-en-de")
    reads(page, OWN)


# The welcome in the first paint, before Streamlit has begun.


CONNECTING = re.compile(r"/_stcore/(health|host-config)")
"""What Streamlit asks for before it connects to its server."""
PLACES = """(root) => [root, ...root.querySelectorAll("button:not(.says *), path")].map((one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  return [x, y, width, height].map(Math.round);
})"""


@pytest.mark.parametrize(
    ("width", "height", "language"),
    slow_after(2, [(390, 844, "de-DE"), (1440, 900, "en-GB"), (1280, 720, "de-DE"), (800, 900, "zh-CN")]),
)
def test_the_first_paint_of_the_welcome_is_what_the_page_then_shows(
    chromium: Browser, server: str, width: int, height: int, language: str
) -> None:
    with chromium.new_context(viewport={"width": width, "height": height}, locale=language) as context:
        page = context.new_page()
        page.goto(f"{server}/")
        page.locator(":root[data-arrived]").wait_for(state="attached")  # Now the server has drawn the welcome.
        page.route(CONNECTING, lambda _: None)  # The first paint stands there until it was looked at.
        page.goto(f"{server}/", wait_until="commit")
        early = page.locator("[data-welcome] .sentence")
        early.locator("path").first.wait_for()
        page.evaluate("""document.fonts.load('1em "Source Sans"')""")
        before = early.evaluate(PLACES), early.inner_text(), page.locator("[data-welcome] > p").bounding_box()
        page.unroute(CONNECTING)
        page.locator(":root[data-arrived]").wait_for(state="attached")
        expect(page.locator("[data-welcome]")).to_have_count(0)
        box, there = page.get_by_test_id("stTextAreaRootElement").first, page.locator(".st-key-translation .sentence")
        assert (there.evaluate(PLACES), there.inner_text(), box.bounding_box()) == before


def test_only_a_page_that_opens_with_the_welcome_begins_with_it(server: str) -> None:
    def begins_with_it(path: str) -> bool:
        with urlopen(Request(f"{server}{path}", headers={"Accept": "text/html"})) as reply:
            return "<div data-welcome=" in reply.read().decode()

    assert begins_with_it("/")
    assert not any(map(begins_with_it, ("/?sentence=He+reads.", "/?model=everyday-zh-en", "/why", "/masks", "/talk")))
