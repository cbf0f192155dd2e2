"""What a person takes from page to page: by Back, in two tabs, over a reload, in another look, by keys, on a phone."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import visit
from tests.browser.steps import (
    choose_language,
    choose_page_view,
    click,
    expect_head,
    open_menu,
    settle,
    tile,
    type_sentence,
)
from tests.journeys.stops import (
    LINKS,
    OWN,
    TRANSLATED,
    WELCOME,
    WELCOMED,
    arrive,
    check_stop,
    go,
    link,
    opened_tab,
    path_of,
    same,
    word,
)

pytestmark = pytest.mark.timeout(400)
SUN = "The sun shines."
READS_NO_SENTENCE = {"heads", "masks", "talk"}


def sentence_of(name: str, own: str = OWN) -> str:
    return "" if name in READS_NO_SENTENCE else own


@pytest.mark.journey
def test_back_and_forward_go_over_all_pages_and_an_own_sentence(traveller: Page) -> None:
    page = traveller
    page.goto("/")
    trail: list[tuple[str, str, dict[str, Any]]] = [("explore", WELCOME, check_stop(page, "explore", sentence=WELCOME))]
    type_sentence(page, OWN)
    trail.append(("explore", OWN, check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)))
    click(tile(page, 2, 4))
    trail.append(("explore", OWN, check_stop(page, "explore", sentence=OWN, layer="2", head="4")))
    trail += [(name, sentence_of(name), go(page, name, sentence=sentence_of(name))) for name in LINKS[1:]]
    entries = page.evaluate("history.length")
    for way, stops in (("go_back", trail[-2::-1]), ("go_forward", trail[1:])):
        for name, sentence, seen in stops:
            getattr(page, way)(wait_until="commit")
            same(seen, check_stop(page, name, sentence=sentence))
    assert page.evaluate("history.length") == entries


def test_a_page_left_by_a_link_while_one_types_shows_what_was_typed_on_the_way_back(
    traveller: Page, stranger: Page
) -> None:
    """The box is left by the click itself; nothing of the sentence before is said of the new one."""
    page = traveller
    page.goto("/")
    check_stop(page, "explore", sentence=WELCOME, pin="target.7")
    ways = (
        ("explore", "decode", SUN),
        ("explore", "why", "He reads a book."),
        ("why", "explore", "I see a dog."),
        ("decode", "explore", "She has a red car."),
        ("explore", "heads", OWN),
    )
    for here, there, sentence in ways:
        if path_of(here) != urlsplit(page.url).path:
            go(page, here)
        settle(page)
        page.get_by_label("Sentence", exact=True).fill(sentence)
        link(page, there).click()
        left = check_stop(page, there, sentence=sentence_of(there, sentence))
        page.go_back(wait_until="commit")
        seen = check_stop(page, here, sentence=sentence)
        stranger.goto(page.url)
        same(seen, check_stop(stranger, here, sentence=sentence))
        page.go_forward(wait_until="commit")
        same(left, check_stop(page, there, sentence=sentence_of(there, sentence)))


@pytest.mark.parametrize(
    ("page_name", "address", "view"),
    [
        ("training", "/training?sentence=", "architecture"),
        ("positions", "/positions?sentence=", "waves"),
        ("heads", "/heads?heads=pruning&sentence=", "map"),
    ],
)
def test_a_view_that_needs_no_sentence_ends_in_the_next_step_also_after_one_that_does(
    traveller: Page, stranger: Page, page_name: str, address: str, view: str
) -> None:
    """A view alone is drawn anew; without a sentence, the one before had stopped the whole page."""
    page = traveller
    page.goto(address)
    check_stop(page, page_name)
    choose_page_view(page, view)
    seen = check_stop(page, page_name)
    expect(page.locator(".st-key-next-step a")).to_be_visible()
    stranger.goto(page.url)
    same(seen, check_stop(stranger, page_name))


@pytest.mark.journey
def test_two_tabs_know_nothing_of_each_other(traveller: Page) -> None:
    page = traveller
    page.goto("/")
    check_stop(page, "explore", sentence=WELCOME)
    with opened_tab(page) as tab:
        tab.goto("/")
        check_stop(tab, "explore", sentence=WELCOME, translation=WELCOMED)
        type_sentence(page, OWN)
        click(tile(page, 2, 4))
        type_sentence(tab, SUN)
        click(tile(tab, 3, 1))
        expect_head(page, 2, 4)
        check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")
        choose_language(tab, "de")
        check_stop(tab, "explore", sentence=SUN, layer="3", head="1", lang="de")
        assert go(page, "decode", sentence=OWN, lang=None)["language"].startswith("en")
        go(tab, "why", sentence=SUN, lang="de")
        expect(page.locator(".decode-player .source .piece").first).to_have_text("My")
        page.go_back()
        check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4", lang=None)
        tab.go_back()
        check_stop(tab, "explore", sentence=SUN, layer="3", head="1", lang="de")
        tab.reload()
        check_stop(tab, "explore", sentence=SUN, layer="3", head="1", lang="de")
    page.reload()
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")


@pytest.mark.journey
def test_a_reload_leaves_every_page_as_it_was(traveller: Page) -> None:
    page = traveller
    page.goto("/")
    type_sentence(page, OWN)
    click(tile(page, 2, 4))
    seen = check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")
    for name in LINKS:
        if name != "explore":
            seen = go(page, name, sentence=sentence_of(name))
        page.reload()
        same(seen, check_stop(page, name, sentence=sentence_of(name)))


def test_language_and_colours_stay_on_a_link_after_back(traveller: Page) -> None:
    """Pages that show no colours hand them on."""
    page = traveller
    page.goto("/?lang=zh&colours=viridis")
    check_stop(page, "explore", lang="zh", colours="viridis")
    go(page, "masks", lang="zh")
    for name in (*LINKS[1:6], "talk", "explore"):
        colours = {"colours": "viridis"} if name in ("decode", "explore") else {}
        seen = go(page, name, lang="zh", **colours)
        assert seen["language"] == "zh-Hans"
        page.go_back(wait_until="commit")
        assert check_stop(page, "masks", lang="zh")["language"] == "zh-Hans"


def test_dark_and_another_width_on_the_way_change_neither_sentence_nor_head(traveller: Page) -> None:
    page = traveller
    page.goto("/")
    type_sentence(page, OWN)
    click(tile(page, 2, 4))
    light = check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")
    ground = page.locator(".stApp").evaluate("one => getComputedStyle(one).backgroundColor")
    open_menu(page, "settings").get_by_label("Theme").select_option("Dark")
    expect(page.locator(".stApp")).not_to_have_css("background-color", ground)
    page.keyboard.press("Escape")
    dark = check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")
    assert dark["fingerprint"]["texts"] == light["fingerprint"]["texts"]
    assert dark["fingerprint"]["sketches"] != light["fingerprint"]["sketches"]
    go(page, "decode", sentence=OWN)
    page.set_viewport_size({"width": 800, "height": 1000})
    check_stop(page, "decode", sentence=OWN)
    go(page, "why", sentence=OWN)
    page.go_back()
    check_stop(page, "decode", sentence=OWN)
    go(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")
    expect_head(page, 2, 4)
    expect(page.locator(".stApp")).not_to_have_css("background-color", ground)
    page.set_viewport_size({"width": 1440, "height": 900})
    same(dark, check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4"))
    go(page, "heads")  # Chosen on another page, which was the first that was loaded.
    page.reload()
    check_stop(page, "heads")
    expect(page.locator(".stApp")).not_to_have_css("background-color", ground)
    expect(open_menu(page, "settings").get_by_label("Theme")).to_have_value("Dark")


def press(page: Page, *keys: str) -> None:
    settle(page)
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, css: str, most: int = 80) -> None:
    """Press Tab until what has the focus matches, as a person does who has no mouse."""
    settle(page)
    found = """(css) => {
      let at = document.activeElement;
      while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
      return Boolean(at?.matches(css));
    }"""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(found, css):
            return
    raise AssertionError(f"Tab does not lead to {css}")


@pytest.mark.journey
def test_all_of_a_way_is_gone_by_keyboard_alone(traveller: Page) -> None:
    page = traveller
    page.goto("/")
    check_stop(page, "explore", sentence=WELCOME)
    tab_to(page, "textarea")
    press(page, "Control+a")
    page.keyboard.type(OWN)
    press(page, "Enter")
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)
    tab_to(page, ".target button, button.word, [data-side=target]")
    press(page, "ArrowRight", "Enter")
    at = check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)
    assert "pin=target" in at["url"]
    tab_to(page, ".tile")
    press(page, "Home", "ArrowRight", "ArrowDown", "Enter")
    expect_head(page, 2, 2)
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="2")
    press(page, "x")
    check_stop(page, "explore", sentence=OWN, changes="cross.2.2:off")
    expect(page.locator(".st-key-again")).to_contain_text("cross layer 2 head 2 off")
    press(page, "x")
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, changes=None)
    page.evaluate("document.activeElement.blur()")
    tab_to(page, "[data-testid=stTopNavLink][href$='/decode']")
    press(page, "Enter")
    check_stop(page, "decode", sentence=OWN)
    player = page.locator(".decode-player")
    press(page, "Home")  # The link still has the focus.
    expect(player).to_have_attribute("data-step", "1")
    press(page, "ArrowRight", "ArrowRight")
    expect(player).to_have_attribute("data-step", "3")
    check_stop(page, "decode", sentence=OWN, step="3")
    page.go_back()  # Its keys belong to the browser's window, which is not there.
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="2")


def tap(page: Page, name: str) -> None:
    """Open the side bar, where a phone has the links, and tap a page: the bar closes behind it."""
    settle(page)
    page.get_by_test_id("stExpandSidebarButton").tap()
    page.get_by_test_id("stSidebarNavLink").nth(LINKS.index(name)).tap()
    page.wait_for_url(lambda url: urlsplit(url).path == path_of(name))
    expect(page.get_by_test_id("stSidebarNavLink").first).not_to_be_in_viewport()
    settle(page)


@pytest.mark.journey
def test_a_phone_goes_over_all_pages_by_touch(server: str, chromium: Browser) -> None:
    look: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with visit(chromium, server, base_url=server, reduced_motion="reduce", **look) as visitor:
        page = arrive(visitor)
        page.goto("/")
        check_stop(page, "explore", sentence=WELCOME, translation=WELCOMED)
        type_sentence(page, OWN)
        check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)
        word(page, "Auto").tap()
        check_stop(page, "explore", sentence=OWN, pin="target.8")
        tile(page, 2, 4).tap()
        expect_head(page, 2, 4)
        check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")
        for name in LINKS[1:]:
            tap(page, name)
            check_stop(page, name, sentence=sentence_of(name))
        tap(page, "explore")
        check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")
