"""The stops of a journey: a page at rest, what it must show there, and that nothing is wrong with it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Locator, Page, expect

from attenscope.viz.ui.addresses.page_registry import PAGES
from tests.browser.steps import LOADING, PATIENCE, click
from tests.journeys.wanderer import SCRIPT, differences, find_faults, letters, look_at_rest

OWN, TRANSLATED = "My neighbour has a small blue car.", "Mein Nachbar hat ein kleines blaues Auto."
"""A sentence of a traveller's own, and what the model that the app begins with makes of it."""
WELCOME, WELCOMED = "Where did you buy this red bicycle?", "Wo hast du dieses rote Fahrrad gekauft?"
LINKS = (*PAGES, "talk")
"""The pages in the order of their links, whose names depend on the language."""


def arrive(page: Page) -> Page:
    """Let the wanderer's script look at this page, whatever it opens."""
    page.add_init_script(SCRIPT)
    return page


def path_of(name: str) -> str:
    return "/" if name == "explore" else f"/{name}"


def check_stop(
    page: Page, name: str, *, sentence: str | None = None, translation: str | None = None, **address: str | None
) -> dict[str, Any]:
    """What stands on a page of this name, that rests and has nothing wrong.

    In the box stands the `sentence`, or there is no such box in sight (""). Rows and columns of the map of
    cross-attention are the words of the `translation` and of the sentence. The `address` holds these values, and
    nothing under the names whose value is None.
    """
    until = time.monotonic() + PATIENCE / 1000
    while True:
        seen = look_at_rest(page)
        wrong = [f"{one.name} {one.detail}" for one in find_faults(seen)]
        wrong += list(_missed(seen, path_of(name), sentence, translation, address))
        if not wrong:
            return seen
        assert time.monotonic() < until, (seen["url"], wrong)
        page.wait_for_timeout(200)


def _missed(
    seen: dict[str, Any], path: str, sentence: str | None, translation: str | None, address: dict[str, str | None]
) -> Iterator[str]:
    """What is not as it must be, in words."""
    url = urlsplit(seen["url"])
    if url.path != path:
        yield f"the page is {url.path}, not {path}"
    held = dict(parse_qsl(url.query))
    for name, value in address.items():
        if held.get(name) != value:
            yield f"the address holds {name}={held.get(name)}, not {value}"
    box = seen["box"]
    if sentence is not None and (box["text"] if box["visible"] else "") != sentence:
        yield f"in the box stands {box}, not {sentence}"
    if translation is not None:
        wanted = {"row": letters(translation), "column": letters(sentence or "")}
        if seen["tokens"]["axes"] != wanted:
            yield f"the map names {seen['tokens']['axes']}, not {wanted}"


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two looks show the same words and the same pictures."""
    apart = differences(one["fingerprint"], other["fingerprint"])
    assert not apart, apart


def link(page: Page, name: str) -> Locator:
    """The link to a page, in any language; a phone has it in the side bar."""
    top = page.get_by_test_id("stTopNavLink")
    return (top if top.count() else page.get_by_test_id("stSidebarNavLink")).nth(LINKS.index(name))


def go(page: Page, name: str, **stop: Any) -> dict[str, Any]:
    """Follow the link to a page, and stop there."""
    click(link(page, name))
    return check_stop(page, name, **stop)


def word(page: Page, text: str) -> Locator:
    """A word of the translation under the sentence box."""
    return page.locator(".st-key-translation .target").get_by_role("button", name=text, exact=True)


@contextmanager
def opened_tab(page: Page) -> Iterator[Page]:
    """Another tab of the same browser."""
    tab = arrive(page.context.new_page())
    yield tab
    tab.close()


def stage(page: Page) -> Locator:
    return page.locator("dialog.show")


def on_scene(page: Page, number: int, title: str) -> None:
    """This scene, from 1, stands on the stage, and can be seen."""
    expect(stage(page)).to_have_attribute("data-scene", str(number), timeout=LOADING)
    expect(stage(page).locator(".title")).to_have_text(title)
    expect(stage(page)).to_have_attribute("aria-busy", "false", timeout=LOADING)


def kept_heads(page: Page) -> Sequence[str]:
    """The names of the heads that are marked on the page."""
    return page.locator("[data-testid=stMain] [aria-pressed=true][aria-label*=' head ']").evaluate_all(
        "all => all.filter((one) => one.checkVisibility()).map((one) => one.getAttribute('aria-label'))"
    )
