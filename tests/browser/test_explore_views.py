"""Every view of Explore, used by clicking."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from model.analysis.alignment import EXPLAINED as ALIGNMENT_EXPLAINED
from model.trace import AttentionTrace

from .steps import boxes_at_rest, expect_head, open_menu, open_page, settle, tile

CROSS = "/?layer=3&head=1"


def choose_view(page: Page, name: str) -> None:
    page.locator(".st-key-view").get_by_role("radio", name=name).click()
    settle(page)


def link_token(page: Page, side: str, index: int) -> Locator:
    return page.locator(f'.st-key-links .token[data-side="{side}"][data-index="{index}"]')


def test_links_by_keyboard_and_laid_out_in_lines(page: Page) -> None:
    open_page(page, "/?layer=3&head=1&view=links&layout=horizontal")
    first = link_token(page, "query", 0)
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(link_token(page, "query", 1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    pinned = page.locator('.st-key-links .token[data-side="key"][aria-pressed="true"]')
    expect(pinned).to_have_count(1)
    expect(pinned).to_be_focused()
    tops = boxes_at_rest(page, [link_token(page, "query", index) for index in (0, 1)])
    assert tops[0]
    assert tops[1]
    assert tops[0]["y"] == pytest.approx(tops[1]["y"], abs=1)


def test_which_head_aligns(page: Page) -> None:
    open_page(page, "/?kind=encoder")
    expect_head(page, 1, 1)
    page.get_by_role("button", name="Which head aligns?").click()
    expect(page.get_by_text(re.compile(r"Place 1 of \d+"))).to_be_visible()
    expect(page.get_by_text(ALIGNMENT_EXPLAINED)).to_be_visible()
    values = [float(text.split()[-1]) for text in page.locator(".st-key-overview .value").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    tiles = page.locator(".st-key-overview .tile")
    expect(tiles.first).to_have_attribute("aria-pressed", "true")


def test_clicking_a_tile_changes_every_view(page: Page) -> None:
    open_page(page, "/?view=links")
    drawing = page.locator(".st-key-links svg")
    expect(drawing).to_have_attribute("data-painted", re.compile("layer 1, as lines"))
    tile(page, 4, 2).click()
    expect(drawing).to_have_attribute("data-painted", re.compile("layer 4, as lines"))


@pytest.mark.walk
def test_every_view_explains_itself(page: Page) -> None:
    open_page(page, CROSS)
    expect_head(page, 3, 1)
    for view in ("heatmap", "layers", "joint"):
        choose_view(page, view)
        about = open_menu(page, "about")
        if view != "joint":  # Which has no equation of its own.
            expect(about.locator(".katex").first).to_be_visible()
        expect(about).to_contain_text(re.compile(r".{60}"))
        page.keyboard.press("Escape")
        expect(about).to_have_count(0)


def saved(page: Page, button: str, folder: Path) -> Path:
    """What a button of the menu Save hands out."""
    with page.expect_download() as download:
        page.get_by_test_id("stPopoverBody").get_by_role("button", name=button).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_weights_and_trace_are_saved(page: Page, tmp_path: Path) -> None:
    open_page(page, CROSS)
    expect_head(page, 3, 1)
    page.locator(".st-key-save button").click()
    trace = AttentionTrace.load(saved(page, "The whole trace", tmp_path))
    lines = saved(page, "Numbers (CSV)", tmp_path).read_text(encoding="utf-8").splitlines()
    assert trace.cross is not None
    assert len(lines) == 1 + len(trace.cross.query_tokens)
    assert float(lines[1].split(",")[1]) == pytest.approx(float(trace.cross.weights[2, 0, 0, 0]), rel=1e-4)
    assert saved(page, "Save as PNG", tmp_path).read_bytes().startswith(b"\x89PNG")
