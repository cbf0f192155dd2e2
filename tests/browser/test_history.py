"""Back and Forward: one action of a visitor is one step, an entry is a whole view, and a way leaves nothing behind."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from attenscope.viz.ui.addresses.page_registry import PAGES
from tests.browser.conftest import SCREEN, visit
from tests.browser.steps import (
    choose,
    choose_kind,
    choose_page_view,
    click,
    close_menu,
    enter,
    kind_label,
    open_menu,
    open_page,
    settle,
    tile,
    type_sentence,
)
from tests.samples import slow_after

BICYCLE = "Where did you buy this red bicycle?"
BOOK = "He reads a book."
AT = "/?layer=1&sentence=He+reads+a+book."
OWN = "My neighbour has a small blue car."
ORDERS = (
    ("decode", "why", "heads", "positions", "training", "masks", "explore"),
    ("why", "explore", "talk", "positions", "decode", "masks", "training"),
)
SEEN = """() => {
  const main = document.querySelector('[data-testid="stMainBlockContainer"]');
  const box = main.querySelector(".st-key-sentence textarea");
  const found = (selector) => [...main.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  const views = found('[data-testid="stBidiComponentIsolated"]');
  const pressed = views.flatMap(({ shadowRoot }) => [...(shadowRoot?.querySelectorAll("[aria-pressed=true]") ?? [])]);
  const named = ["stHeading", "stCaptionContainer", "stMarkdownContainer"].map((one) => `[data-testid="${one}"]`);
  const says = [...named, ".table"].join();
  const options = found("input:checked, [aria-checked=true], [data-selected]");
  const texts = found(says).filter((one) => !one.closest(".st-key-earlier, .st-key-badge, .st-key-facts"));
  return {
    path: location.pathname,
    query: [...new URLSearchParams(location.search)].map(String).sort(),
    sentence: box && [box.value, box.checkVisibility()],
    chosen: options.map((one) => (one.closest("label") ?? one).innerText),
    values: found("[role=combobox], input[type=number]").map((one) => [one.getAttribute("aria-label"), one.value]),
    heads: pressed.filter((one) => one.checkVisibility()).map((one) => one.getAttribute("aria-label")),
    text: texts.map((one) => one.innerText),
    failed: main.querySelectorAll('[data-testid="stException"]').length,
  };
}"""
"""What one sees of a page, but for the list of earlier sentences and for how long a translation took."""
SHOWN = """() => [...document.querySelectorAll('[data-testid="stMainBlockContainer"] [class*="st-key-"]')]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.getBoundingClientRect().height > 1)
  .map((one) => [...one.classList].find((name) => name.startsWith("st-key-")))"""
"""The keys of the parts of a page that are visible."""


def entries(page: Page) -> int:
    return int(page.evaluate("history.length"))


def sentence(page: Page, text: str) -> None:
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(text)


def press(page: Page, name: str) -> None:
    page.get_by_role("radio", name=name, exact=True).click()


def chosen(page: Page, layer: int, head: int) -> None:
    expect(tile(page, layer, head)).to_have_attribute("aria-pressed", "true")


def kind_pressed(page: Page, name: str) -> None:
    expect(kind_label(page, name)).to_have_attribute("aria-pressed", "true")


def pressed(page: Page, name: str) -> None:
    expect(page.get_by_role("radio", name=name, exact=True)).to_be_checked()


ACTIONS: dict[str, tuple[Callable[[Page], None], Callable[[Page], None], Callable[[Page], None]]] = {
    "head": (
        lambda page: tile(page, 2, 3).click(),
        lambda page: chosen(page, 2, 3),
        lambda page: chosen(page, 1, 1),
    ),
    "sentence": (
        lambda page: type_sentence(page, BICYCLE),
        lambda page: sentence(page, BICYCLE),
        lambda page: sentence(page, BOOK),
    ),
    "model": (
        lambda page: choose(page, "Model", "preset-original"),
        lambda page: expect(page.get_by_role("combobox", name="Model")).to_have_value("preset-original"),
        lambda page: expect(page.get_by_role("combobox", name="Model")).to_have_value("everyday-en-de"),
    ),
    "view": (
        lambda page: press(page, "links"),
        lambda page: pressed(page, "links"),
        lambda page: pressed(page, "heatmap"),
    ),
    "map": (
        lambda page: choose_kind(page, "encoder"),
        lambda page: kind_pressed(page, "encoder"),
        lambda page: kind_pressed(page, "cross"),
    ),
}


def test_an_action_is_one_step_and_is_taken_back_by_one(page: Page) -> None:
    open_page(page, AT)
    count = entries(page)
    for steps, (act, after, before) in enumerate(ACTIONS.values(), start=1):
        before(page)
        act(page)
        after(page)
        page.wait_for_function("entries => history.length >= entries", arg=count + steps)
        settle(page)
        assert entries(page) == count + steps
    for _, after, before in reversed(ACTIONS.values()):
        after(page)
        page.go_back()
        before(page)
        settle(page)
    for _, after, before in ACTIONS.values():
        before(page)
        page.go_forward()
        after(page)
        settle(page)
    assert entries(page) == count + len(ACTIONS)


def test_scrubbing_makes_no_step(page: Page) -> None:
    open_page(page, f"/decode?sentence={BOOK.replace(' ', '+')}")
    player = page.locator(".decode-player")
    expect(player).to_have_attribute("data-step", "1")
    count = entries(page)
    for step in (2, 3, 4):
        page.keyboard.press("ArrowRight")
        expect(player).to_have_attribute("data-step", str(step))
        page.wait_for_url(f"**step={step}*")
    settle(page)
    assert entries(page) == count


def test_another_page_is_one_step(page: Page) -> None:
    open_page(page, f"{AT}&layer=2&view=links")
    count = entries(page)
    page.get_by_role("link", name="Decode").click()
    expect(page.locator(".decode-player")).to_be_visible()
    settle(page)
    assert entries(page) == count + 1


@pytest.mark.parametrize(
    ("address", "menu"),
    slow_after(2, [(AT, "share"), (AT, "settings"), (AT, "trials"), ("/decode", "what-if"), ("/why", "more-than")]),
)
def test_a_link_leads_to_its_page_from_an_open_menu(page: Page, address: str, menu: str) -> None:
    """That the menu has closed is sent too: after the link it would bring the page back, or leave nothing at all."""
    open_page(page, address)
    count = entries(page)
    click(page.locator(f"[class*='st-key-{menu}'] button").first)
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
    settle(page)
    page.get_by_test_id("stTopNavLink").filter(has_text="Positions").click()
    page.wait_for_function("() => document.documentElement.dataset.arrived === 'positions'")
    settle(page)
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    expect(page.locator(".versions")).to_be_visible()
    assert page.evaluate("() => location.pathname") == "/positions"
    assert entries(page) == count + 1


def go(page: Page, name: str) -> None:
    """Open a page by its link; the names of links depend on the language, their order does not."""
    click(page.get_by_test_id("stTopNavLink").nth([*PAGES, "talk"].index(name)))
    page.wait_for_function("path => location.pathname === path", arg="/" if name == "explore" else f"/{name}")
    settle(page)


def seen(page: Page) -> dict[str, Any]:
    """What is seen once the page rests and says the same twice."""
    found: list[dict[str, Any]] = []
    for _ in range(50):
        settle(page)
        found.append(page.evaluate(SEEN))
        if len(found) > 1 and found[-1] == found[-2]:
            return found[-1]
        page.wait_for_timeout(200)
    raise AssertionError(f"The page did not come to rest: {found[-2:]}")


def walked(page: Page, order: Sequence[str]) -> list[dict[str, Any]]:
    """Open all pages with an own sentence, a head and a view of it chosen on the way: what is seen at each entry."""
    trail = [seen(page)]
    enter(page.locator(".st-key-sentence textarea"), OWN)
    trail.append(seen(page))
    for name in order:
        go(page, name)
        trail.append(seen(page))
        if name == "explore":
            click(page.locator(".st-key-overview [aria-pressed]").nth(10))
            trail.append(seen(page))
    read = [one["sentence"][0] for one in trail[1:] if one["sentence"]]
    assert set(read) == {OWN}
    assert not any(one["failed"] for one in trail)
    return trail


def back_and_forth(page: Page, trail: Sequence[dict[str, Any]], forth: bool = True) -> None:
    """Back to the first entry of the trail, Forward to the last: each shows what it showed."""
    for one in reversed(trail[:-1]):
        page.go_back(wait_until="commit")
        assert seen(page) == one
    for one in trail[1:] if forth else ():
        page.go_forward(wait_until="commit")
        assert seen(page) == one


@pytest.mark.parametrize("order", slow_after(1, [(one,) for one in ORDERS]), ids=lambda order: order[0])
def test_an_entry_is_a_whole_view(page: Page, order: Sequence[str]) -> None:
    open_page(page, "/")
    back_and_forth(page, walked(page, order))


def test_an_own_sentence_comes_back(page: Page) -> None:
    open_page(page, "/")
    first = seen(page)
    type_sentence(page, OWN)
    trail = [first, seen(page)]
    for name in ("decode", "why"):
        go(page, name)
        trail.append(seen(page))
    back_and_forth(page, trail)


@pytest.mark.parametrize("between", ["Masks", "Training"])
def test_back_to_a_page_without_the_own_sentence_does_not_lose_it(page: Page, between: str) -> None:
    open_page(page)
    type_sentence(page, OWN)
    for name in (between, "Talk"):
        click(page.get_by_test_id("stTopNavLink").filter(has_text=name))
        expect(page).to_have_url(re.compile(name.lower()))
    page.go_back()
    expect(page).to_have_url(re.compile(between.lower()))
    settle(page)
    click(page.get_by_test_id("stTopNavLink").filter(has_text="Explore"))
    expect(page.locator(".st-key-sentence textarea")).to_have_value(OWN)
    assert "model=" not in page.url


def test_the_sentence_stays_where_back_brings_another_model(page: Page) -> None:
    """The model before reads another language; with it comes no welcome, as with a model that is chosen."""
    open_page(page, "/why?model=preset-pad_row&sentence=我昨天在图书馆读了一本书。")
    box = page.locator(".st-key-sentence textarea")
    click(page.get_by_role("button", name="Use everyday-zh-en"))
    expect(page).to_have_url(re.compile("model=everyday-zh-en"))
    for go in (page.go_back, page.go_forward, page.go_back):
        go()
        settle(page)
        expect(box).to_have_value("我昨天在图书馆读了一本书。")
    expect(page).to_have_url(re.compile("model=preset-pad_row"))


@pytest.mark.slow
def test_a_reload_keeps_the_entries(page: Page) -> None:
    open_page(page, "/")
    trail = walked(page, ORDERS[0][2:])
    for _ in range(3):
        page.go_back(wait_until="commit")
        settle(page)
    page.reload()
    assert seen(page) == trail[-4]
    for one in trail[-3:]:
        page.go_forward(wait_until="commit")
        assert seen(page) == one
    page.reload()
    back_and_forth(page, trail)


@pytest.mark.slow
def test_two_tabs_have_a_history_each(page: Page) -> None:
    tab = page.context.new_page()
    open_page(page, "/")
    open_page(tab, f"/decode?sentence={BOOK.replace(' ', '+')}")
    one, other = walked(page, ("masks", "explore", "decode")), [seen(tab)]
    for name in ("explore", "heads"):
        go(tab, name)
        other.append(seen(tab))
    back_and_forth(page, one, forth=False)
    back_and_forth(tab, other)


@pytest.mark.slow
def test_the_entries_of_a_german_visitor_are_german(server: str, chromium: Browser) -> None:
    with visit(chromium, server, base_url=server, viewport=SCREEN, locale="de", reduced_motion="reduce") as page:
        open_page(page, "/")
        back_and_forth(page, walked(page, ORDERS[0][:4]))


def test_two_quick_steps_back_leave_the_entries_whole(page: Page) -> None:
    open_page(page, "/")
    trail = walked(page, ORDERS[0][:4])
    for _ in trail[1:]:
        page.evaluate("history.back()")
        page.wait_for_timeout(120)
    assert seen(page) == trail[0]
    for one in trail[1:]:
        page.go_forward(wait_until="commit")
        assert seen(page) == one


@pytest.mark.parametrize("address", ["/", f"/training?sentence={BOOK.replace(' ', '+')}"])
def test_opening_a_page_is_no_step(page: Page, address: str) -> None:
    count = entries(page)
    open_page(page, address)
    assert seen(page)["heads"]
    assert entries(page) == count + 1


def shown(page: Page) -> set[str]:
    """The keys of what is visible, once no more of it comes."""
    seen(page)
    return set(page.evaluate(SHOWN))


def views(page: Page, name: str) -> list[str]:
    """The views of a page that its visitor can choose."""
    if name == "decode":  # They are strategies, in a list.
        return [str(one) for one in PAGES[name].view.options]  # type: ignore[union-attr]
    offered = [page.get_by_role("radio", name=str(one), exact=True) for one in PAGES[name].view.options]  # type: ignore[union-attr]
    return [str(one) for one, at in zip(PAGES[name].view.options, offered, strict=True) if at.count() == 1]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", slow_after(2, PAGES))
def test_what_an_address_shows_is_visible_by_every_way(page: Page, other: Page, name: str) -> None:
    open_page(page, f"/{name}?sentence={BOOK.replace(' ', '+')}")
    rng = random.Random(name)
    offered = views(page, name)
    assert len(offered) > 1
    for _ in offered:
        view = rng.choice(offered)
        if name == "decode":
            choose(page, "Strategy", view)
        else:
            click(page.get_by_role("radio", name=view, exact=True))
        by_way = shown(page)
        open_page(other, page.url)
        assert shown(other) <= by_way, page.url


@pytest.mark.parametrize(
    ("address", "way", "last"),
    [("/positions", ("waves", "similarity"), "experiments"), ("/training", ("curves",), "snapshots")],
)
def test_the_sentence_box_comes_back(page: Page, address: str, way: Sequence[str], last: str) -> None:
    open_page(page, address)
    box = page.get_by_label("Sentence", exact=True)
    expect(box).to_be_visible()
    for view in way:
        choose_page_view(page, view)
        expect(box).to_be_hidden()
    choose_page_view(page, last)
    expect(box).to_be_visible()


@pytest.mark.slow
def test_an_emptied_sentence_box_is_a_view_with_an_address(page: Page) -> None:
    open_page(page, AT)
    trail = [seen(page)]
    enter(page.locator(".st-key-sentence textarea"), "")
    trail.append(seen(page))
    go(page, "decode")
    trail.append(seen(page))
    assert [one["sentence"][0] for one in trail] == [BOOK, "", ""]
    back_and_forth(page, trail)
    page.reload()
    assert seen(page) == trail[-1]


def test_every_page_marks_the_kind_of_attention_that_is_shown(page: Page) -> None:
    open_page(page, AT)
    go(page, "training")
    kind_pressed(page, "cross")
    choose_kind(page, "decoder")
    settle(page)
    go(page, "explore")
    kind_pressed(page, "decoder")
    go(page, "training")
    kind_pressed(page, "decoder")


def test_a_given_translation_begins_with_the_models_own_whenever_it_is_asked_for(page: Page) -> None:
    open_page(page, f"/why?sentence={BOOK.replace(' ', '+')}")
    given = page.get_by_label("Given", exact=True)

    def ask() -> None:
        click(open_menu(page, "more-than-source-words").get_by_text("Given translation", exact=True))
        close_menu(page)

    ask()
    expect(given).not_to_have_value("")
    own = given.input_value()
    settle(page)
    page.go_back(wait_until="commit")
    expect(given).to_have_count(0)
    ask()
    expect(given).to_have_value(own)
    enter(given, "")
    expect(given).to_have_value(own)
