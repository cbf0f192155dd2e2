"""Back and Forward: one action of a visitor is one step, and scrubbing is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from .steps import choose, open_page, settle, tile, type_sentence

BICYCLE = "Where did you buy this red bicycle?"
BOOK = "He reads a book."
AT = "/?sentence=He+reads+a+book."


def entries(page: Page) -> int:
    return int(page.evaluate("history.length"))


def sentence(page: Page, text: str) -> None:
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(text)


def press(page: Page, name: str) -> None:
    page.get_by_role("radio", name=name, exact=True).click()


def chosen(page: Page, layer: int, head: int) -> None:
    expect(tile(page, layer, head)).to_have_attribute("aria-pressed", "true")


def pressed(page: Page, name: str) -> None:
    expect(page.get_by_role("radio", name=name, exact=True)).to_be_checked()


ACTIONS: dict[str, tuple[Callable[[Page], None], Callable[[Page], None], Callable[[Page], None]]] = {
    "sentence": (
        lambda page: type_sentence(page, BICYCLE),
        lambda page: sentence(page, BICYCLE),
        lambda page: sentence(page, BOOK),
    ),
    "model": (
        lambda page: choose(page, "Model", "multi30k-en-de"),
        lambda page: expect(page.get_by_role("combobox", name="Model")).to_have_value("multi30k-en-de"),
        lambda page: expect(page.get_by_role("combobox", name="Model")).to_have_value("everyday-en-de"),
    ),
    "view": (
        lambda page: press(page, "links"),
        lambda page: pressed(page, "links"),
        lambda page: pressed(page, "heatmap"),
    ),
    "map": (
        lambda page: press(page, "encoder"),
        lambda page: pressed(page, "encoder"),
        lambda page: pressed(page, "cross"),
    ),
    "head": (
        lambda page: tile(page, 2, 3).click(),
        lambda page: chosen(page, 2, 3),
        lambda page: chosen(page, 1, 1),
    ),
}


@pytest.mark.walk
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


@pytest.mark.walk
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


@pytest.mark.walk
def test_another_page_is_one_step(page: Page) -> None:
    open_page(page, f"{AT}&layer=2&view=links")
    count = entries(page)
    page.get_by_role("link", name="Decode").click()
    expect(page.locator(".decode-player")).to_be_visible()
    settle(page)
    assert entries(page) == count + 1
