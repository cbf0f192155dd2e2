"""Explore: two sides compared, a given translation, and the attention of a changed model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import (
    LONG,
    caption,
    choose,
    choose_view,
    click,
    click_at,
    close_menu,
    compare,
    download,
    enter,
    expect_head,
    open_menu,
    open_page,
    settle,
    tile,
    try_something,
)
from tests.samples import slow_after

HEAD = f"/?layer=3&head=1&sentence={LONG}"


def panel(page: Page, number: int) -> Locator:
    """One map of the comparison, from 1: first, second, difference."""
    axes = "xy" if number == 1 else f"x{number}y{number}"
    return page.locator(f".st-key-compare .draglayer .{axes} .nsewdrag")


def titles(page: Page) -> Locator:
    return page.locator(".st-key-compare .annotation")


def outlines(page: Page) -> Locator:
    return page.locator(".st-key-compare .shapelayer path")


def test_two_heads_with_one_selection(page: Page) -> None:
    open_page(page, HEAD)
    expect_head(page, 3, 1)
    compare(page)
    expect(titles(page).filter(has_text="Cross, layer 3, head 1")).to_be_visible()
    expect(titles(page).filter(has_text="Cross, layer 3, head 2")).to_be_visible()
    expect(caption(page, re.compile("On average .* The greatest change"))).to_be_visible()
    expect(outlines(page)).to_have_count(0)
    # A pair clicked in the second map is marked in the first and in the difference too.
    click_at(page, panel(page, 2), 0.02, 0.02)
    expect(outlines(page)).to_have_count(6)
    expect(page.locator(".st-key-translation .target button").first).to_have_attribute("aria-pressed", "true")
    expect(caption(page, re.compile("Pinned: .* in the second"))).to_be_visible()
    expect(page).to_have_url(re.compile("pin=target.1"))
    page.reload()
    expect(outlines(page)).to_have_count(6)


def test_a_head_of_another_kind_and_another_sentence(page: Page) -> None:
    open_page(page, HEAD + "&view=compare&pin=target.2")
    expect(outlines(page)).to_have_count(3)
    choose(page, "Its kind", "decoder")
    expect(caption(page, "Both have the same rows but other columns")).to_be_visible()
    expect(outlines(page)).to_have_count(2)
    expect(page).to_have_url(re.compile("with-kind=decoder"))
    choose(page, "Compare with", "another sentence")
    box = page.get_by_placeholder("Type a second sentence")
    enter(box, "The old woman reads a letter in the garden.")
    expect(caption(page, "Both share")).to_be_visible()
    expect(titles(page).filter(has_text="The old woman reads")).to_be_visible()
    expect(page).to_have_url(re.compile("with=sentence&?"))


def test_a_given_translation_on_every_view(page: Page) -> None:
    open_page(page, HEAD + "&view=text")
    expect(page.locator(".st-key-text button").first).to_be_visible()
    own = page.locator(".st-key-translation").inner_text()
    try_something(page, lambda menu: click(menu.get_by_text("Given translation", exact=True)))
    box = page.get_by_label("Given", exact=True)
    expect(box).to_have_value(re.compile(r"\w+"))  # the model's own, to be changed
    enter(box, "Der alte Mann liest ein Buch.")
    expect(caption(page, "perplexity")).to_be_visible()
    expect(page.locator(".st-key-translation")).to_contain_text("liest ein Buch")
    expect(page.locator(".st-key-text section").first).to_contain_text("liest")
    expect(page.locator(".st-key-text section").first).not_to_contain_text("Garten")
    for view, painted in (("flow", ".st-key-flow-map .hm image"), ("layers", ".st-key-lens .hm image")):
        choose_view(page, view)
        expect(page.locator(painted).first).to_be_attached()
    expect(page.locator(".st-key-lens .xaxislayer-above")).not_to_contain_text("Garten")
    expect(page).to_have_url(re.compile("forced=true"))
    page.reload()
    expect(page.locator(".st-key-translation")).to_contain_text("liest ein Buch")
    click(page.get_by_role("button", name="Back to the model's own"))
    expect(page.locator(".st-key-translation")).to_have_text(own, use_inner_text=True)


def test_the_pictures_show_the_changed_model_or_the_unchanged(page: Page) -> None:
    open_page(
        page,
        f"/?layer=1&head=1&kind=encoder&changes=encoder.1.1:uniform&view=pipeline&words=false&hide=false&sentence={LONG}",
    )
    expect(caption(page, "This head is made uniform")).to_be_visible()
    expect(page.get_by_role("radio", name="changed model", exact=True)).to_be_checked()
    choose_view(page, "heatmap")
    level = caption(page, re.compile(r"\d+ links tie as its strongest, 0\.06;"))  # 1/18, as on all 18 tokens
    expect(level).to_be_visible()
    click(page.get_by_role("radio", name="unchanged model"))
    expect(level).to_have_count(0)
    expect(caption(page, "This head is made uniform")).to_have_count(0)
    expect(page).to_have_url(re.compile("pictures=unchanged"))
    click(page.get_by_role("radio", name="changed model", exact=True))
    expect(level).to_be_visible()
    compare(page)
    choose(page, "Compare with", "the model's own")
    expect(titles(page).filter(has_text="Changed model")).to_be_visible()
    expect(caption(page, re.compile(r"On average [1-9]\d?%"))).to_be_visible()


def test_joint_merges_words_pins_and_is_saved(page: Page, tmp_path: Path) -> None:
    open_page(page, HEAD + "&view=joint&words=false")
    ticks = page.locator(".st-key-joint .yaxislayer-above .ytick")
    expect(ticks.first).to_be_attached()
    before = ticks.count()
    click(open_menu(page, "settings").get_by_text("Merge pieces into words"))
    expect(page.get_by_text("Pieces are merged into words")).to_be_visible()
    expect(ticks.nth(before - 2)).not_to_be_attached()
    close_menu(page)
    click_at(page, page.locator(".st-key-joint .nsewdrag"), 0.02, 0.98)
    expect(page).to_have_url(re.compile(r"pin=target\.\d+%2Csource\.1"))
    path = download(open_menu(page, "share").get_by_role("button", name=re.compile("CSV")), tmp_path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + ticks.count()


@pytest.mark.parametrize(
    ("view", "drawn"),
    slow_after(
        2,
        [
            ("links", ".lines path"),
            ("flow", ".hm image"),
            ("text", "button"),
            ("pipeline", "[aria-current]"),
            ("layers", ".hm image"),
            ("joint", ".hm image"),
        ],
    ),
)
def test_every_view_has_two_sides(page: Page, view: str, drawn: str) -> None:
    key = {"flow": "flow-map", "layers": "lens"}.get(view, view)
    open_page(page, f"{HEAD}&view={view}")
    compare(page)
    expect(page).to_have_url(re.compile(rf"view=compare.*compared={view}|compared={view}.*view=compare"))
    choose(page, "Compare with", "another sentence")
    enter(page.get_by_placeholder("Type a second sentence"), "The old woman reads a letter.")
    for side in (f".st-key-{key}", f".st-key-{key}-second"):
        expect(page.locator(f"{side} {drawn}").first).to_be_attached()
    page.reload()
    expect(page.locator(f".st-key-{key}-second {drawn}").first).to_be_attached()
    compare(page)
    expect(page.locator(f".st-key-{key}-second")).to_have_count(0)
    expect(page).to_have_url(re.compile(rf"view={view}\b"))
    expect(page).not_to_have_url(re.compile("compared="))


@pytest.mark.parametrize(("view", "drawing"), [("links", "svg"), ("text", ".texts")])
def test_the_second_side_stays_with_its_head(page: Page, view: str, drawing: str) -> None:
    open_page(page, f"{HEAD}&view=compare&compared={view}&with=head&with-layer=2&with-head=3")
    first, second = (page.locator(f".st-key-{key} {drawing}").first for key in (view, f"{view}-second"))
    expect(second).to_have_attribute("aria-label", re.compile("layer 2.*Head 3 of layer 2"))
    before = second.inner_html()
    click(tile(page, 4, 5))
    expect(first).to_have_attribute("aria-label", re.compile("layer 4.*Head 5 of layer 4"))
    settle(page)
    expect(second).to_have_attribute("aria-label", re.compile("layer 2.*Head 3 of layer 2"))
    assert second.inner_html() == before
