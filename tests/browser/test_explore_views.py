"""Every view of Explore, used by clicking."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from model.trace import AttentionTrace

from .steps import boxes_at_rest, click_at, expect_head, open_menu, open_page, settle, tile

CROSS = "/?layer=3&head=1"


def choose_view(page: Page, name: str) -> None:
    page.locator(".st-key-view").get_by_role("radio", name=name).click()
    settle(page)


def link_token(page: Page, side: str, index: int) -> Locator:
    return page.locator(f'.st-key-links .token[data-side="{side}"][data-index="{index}"]')


def text_token(page: Page, side: str, index: int) -> Locator:
    return page.locator(f'.st-key-text button[data-side="{side}"][data-index="{index}"]')


def test_links_hover_pin_and_heads(page: Page) -> None:
    open_page(page, CROSS)
    expect_head(page, 3, 1)
    choose_view(page, "links")
    assert "view=links" in page.url
    lines = page.locator(".st-key-links .lines path")
    expect(lines.first).to_be_attached()
    link_token(page, "query", 0).hover()
    expect(page.locator(".st-key-links .numbers text").first).to_have_text(re.compile(r"\d+%"))
    lit = page.locator(".st-key-links path.on")
    assert 0 < lit.count() < lines.count()
    link_token(page, "query", 2).click()
    expect(link_token(page, "query", 2)).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".st-key-translation button").nth(2)).to_have_attribute("aria-pressed", "true")
    assert "pin=target.3" in page.url
    before = lines.count()
    page.get_by_role("button", name="Draw head 2 too").click()
    expect(page.get_by_role("button", name="Draw head 2 too")).to_have_attribute("aria-pressed", "true")
    assert lines.count() > before
    expect(page).to_have_url(re.compile("beside=2"))


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


def test_text_is_shaded_both_ways(page: Page) -> None:
    open_page(page, CROSS + "&view=text")
    text_token(page, "query", 0).hover()
    heading = page.locator(".st-key-text h3")
    expect(heading.nth(1)).to_contain_text("attends to it")
    expect(text_token(page, "key", 0)).to_have_attribute("title", re.compile(r"\d+%"))
    text_token(page, "key", 0).hover()
    expect(heading.nth(0)).to_contain_text("attends to")
    text_token(page, "key", 1).click()
    expect(text_token(page, "key", 1)).to_have_attribute("aria-pressed", "true")
    assert "pin=source.2" in page.url
    page.reload()
    expect(text_token(page, "key", 1)).to_have_attribute("aria-pressed", "true")


def test_a_masked_pair_is_said_to_be_masked(page: Page) -> None:
    open_page(page, "/?kind=decoder&view=text")
    text_token(page, "query", 0).hover()
    expect(text_token(page, "key", 1)).to_have_attribute("title", "masked")


def test_words_and_special_tokens(page: Page) -> None:
    open_page(page, CROSS)
    expect_head(page, 3, 1)
    ticks = page.locator(".st-key-heatmap .column")
    before = ticks.count()
    page.get_by_role("button", name="Display").click()
    page.get_by_text("Hide special tokens").click()
    expect(page.get_by_text("Renormalised")).to_be_visible()
    expect(ticks).to_have_count(before - 1)
    page.get_by_text("Merge pieces into words").click()
    expect(page.get_by_text("Pieces are merged into words")).to_be_visible()
    assert ticks.count() < before - 1


def test_which_head_aligns(page: Page) -> None:
    open_page(page, "/?kind=encoder")
    expect_head(page, 1, 1)
    page.get_by_role("button", name="Which head aligns?").click()
    expect(page.get_by_text(re.compile(r"Place 1 of \d+"))).to_be_visible()
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


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_pipeline_steps_forward_and_back(page: Page, kind: str) -> None:
    open_page(page, f"/?kind={kind}&view=pipeline")
    frame = page.locator(".st-key-pipeline")
    current = frame.locator("[aria-current]")
    expect(current).to_have_text("Query, keys")
    expect(frame.locator(".bar").first).to_be_hidden()
    frame.get_by_role("button", name="Softmax").click()
    expect(frame.locator(".bar").first).to_be_visible()
    frame.get_by_role("button", name="Next").click()
    expect(current).to_have_text("Values")
    expect(page).to_have_url(re.compile("step=7"))
    frame.get_by_role("button", name="Back").click()
    expect(current).to_have_text("Softmax")
    shares = [text.rstrip("%") for text in frame.locator(".bar").all_inner_texts()]
    assert sum(float(share) for share in shares if share != "masked") == pytest.approx(100, abs=0.5)
    assert ("masked" in shares) == (kind == "decoder")


def test_joint_flow_and_layers(page: Page) -> None:
    open_page(page, CROSS)
    for view, key, says in (
        ("joint", "joint", "All three attentions"),
        ("flow", "flow-map", "rollout through layer 3"),
    ):
        choose_view(page, view)
        expect(page.locator(f".st-key-{key} .gtitle")).to_contain_text(says)
    page.get_by_role("radio", name="mean of layers").click()
    expect(page.locator(".st-key-flow-map .gtitle").first).to_contain_text("mean of layers")
    page.get_by_text("Times value norms").click()
    expect(page.locator(".st-key-flow-map .gtitle").first).to_contain_text("times value norms")
    choose_view(page, "layers")
    expect(page.locator(".st-key-lens .hm image")).to_be_attached()
    click_at(page, page.locator(".st-key-lens .nsewdrag"), 0.02, 0.02)
    expect(page.locator(".st-key-translation button").first).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text(re.compile("^Position 1, "))).to_be_visible()


def test_every_view_explains_itself(page: Page) -> None:
    open_page(page, CROSS)
    expect_head(page, 3, 1)
    expect(open_menu(page, "about").locator(".katex").first).to_be_visible()


def test_a_head_is_turned_off_and_on_again(page: Page) -> None:
    open_page(page, "/?layer=4&head=1")
    expect_head(page, 4, 1)
    page.get_by_role("combobox", name="This head").click()
    page.get_by_role("option", name="off", exact=True).click()
    expect(page.locator(".st-key-again")).to_contain_text(re.compile(r"cross layer 4 head 1 off.*log-probability"))
    expect(page).to_have_url(re.compile(r"changes=cross.4.1"))
    expect(page.locator(".st-key-overview .tile.changed")).to_have_count(1)
    page.get_by_role("button", name="Undo all changes").click()
    expect(page.locator(".st-key-again")).to_have_count(0)
    expect(page.locator(".st-key-overview .tile.changed")).to_have_count(0)


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
