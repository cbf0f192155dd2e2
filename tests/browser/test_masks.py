"""Masks, used as a visitor uses it."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser.steps import (
    LOADING,
    boxes_at_rest,
    choose,
    click,
    close_menu,
    download,
    enter,
    open_menu,
    open_page,
    settle,
)
from tests.model.masks.readers.hostile_files import special

LEFT, TOP = 30, 22
"""Pixels between a picture's edge and its first cell, as in mask_editor.js."""
FILES = 20


def plot(page: Page, name: str) -> Locator:
    return page.locator(f'.st-key-mask-pictures .plot[data-panel="{name}"]')


def readout(page: Page) -> Locator:
    return page.locator(".st-key-mask-pictures .readout")


def verdict(page: Page, words: str) -> None:
    expect(page.locator(".st-key-verdict-line")).to_contain_text(words, timeout=LOADING)


def note(page: Page, name: str) -> Locator:
    drawn = page.locator(f'.plot[data-panel="{name}"]')
    return page.locator(".st-key-mask-pictures section").filter(has=drawn).locator("p").first


def click_cell(page: Page, name: str, query: int, key: int, size: int = 6) -> None:
    """Click a cell, counted from 1, of a picture of size x size cells."""
    expect(plot(page, name)).to_be_visible()
    plot(page, name).scroll_into_view_if_needed()
    (box,) = boxes_at_rest(page, [plot(page, name)])
    cell = (box["height"] - 2 * TOP) / size
    page.mouse.click(box["x"] + LEFT + (key - 0.5) * cell, box["y"] + TOP + (query - 0.5) * cell)
    settle(page)


def test_the_page_opens_on_a_broken_mask_beside_its_fixed_twin(page: Page) -> None:
    open_page(page, "/masks")
    expect(page.locator(".st-key-opening-pair .hm image").first).to_be_visible()
    expect(page.get_by_text("of the attention of its 4 words goes to words that are still to be")).to_be_visible()
    expect(page.get_by_role("radio", name="backends")).to_have_count(0)
    click(page.get_by_role("button", name="Padding is seen", exact=True))
    verdict(page, "Faulty: 1 error")
    expect(page.locator(".st-key-opening-pair")).to_have_count(0)
    click(page.get_by_role("button", name="Write a mask for another library"))
    expect(page).to_have_url(re.compile("part=convert"))
    open_page(page, "/masks")
    click(page.get_by_role("button", name="Why this happens, and the line that mends it"))
    expect(page.locator(".st-key-fault-pair")).to_be_visible()
    expect(page).to_have_url(re.compile("fault=future-visible"))


def test_an_example_is_judged_mended_and_judged_again(page: Page, tmp_path: Path) -> None:
    open_page(page, "/masks")
    expect(page.get_by_text("start from an example")).to_be_visible()
    click(page.get_by_role("button", name="Padding is seen", exact=True))
    verdict(page, "Faulty: 1 error")
    expect(page.get_by_text("padding-visible")).to_be_visible()
    expect(note(page, "effect")).to_contain_text("leaks")
    click(page.get_by_role("button", name="Show sample 2"))
    click(page.get_by_role("button", name="Apply this fix"))
    verdict(page, "Mended: no contradiction left")
    expect(page.get_by_text("the padding keys were blocked")).to_be_visible()
    expect(note(page, "effect")).not_to_contain_text("leaks")
    click(page.get_by_role("button", name="Undo the last fix"))
    verdict(page, "Faulty: 1 error")
    assert "padding-visible" in download(page.get_by_role("button", name="Findings (JSON)"), tmp_path).read_text()
    click(page.get_by_text("Step by step"))
    expect(page.locator(".st-key-mask-steps .hm").first).to_be_visible()


@pytest.mark.slow
def test_sizes_that_nobody_chose_follow_those_they_depend_on(page: Page) -> None:
    """What stands in the boxes is what the address shows to somebody else."""
    open_page(page, "/masks?from=build")
    sizes = {name: page.get_by_label(name, exact=True) for name in ("Queries", "Keys", "Real keys a sample")}

    def stands(*values: str) -> None:
        for box, value in zip(sizes.values(), values, strict=True):
            expect(box).to_have_value(value)

    stands("6", "6", "6, 4")
    enter(sizes["Queries"], "7")
    stands("7", "7", "7, 5")
    enter(sizes["Keys"], "9")
    stands("7", "9", "9, 7")
    enter(sizes["Real keys a sample"], "3, 2")
    enter(sizes["Queries"], "8")
    stands("8", "9", "3, 2")
    settle(page)
    page.reload()
    stands("8", "9", "3, 2")
    enter(sizes["Keys"], "8")
    enter(sizes["Queries"], "7")
    settle(page)
    shown = [box.input_value() for box in sizes.values()]
    page.reload()
    stands(*shown)


def test_a_built_mask_is_changed_cell_by_cell_and_stays_in_the_address(page: Page) -> None:
    open_page(page, "/masks?from=build&rule=causal")
    verdict(page, "Nothing wrong found")
    click_cell(page, "given", 2, 5)
    verdict(page, "Faulty")
    expect(note(page, "effect")).to_contain_text("1 leak")
    assert "cells=1.2.5" in page.url
    page.reload()
    verdict(page, "Faulty")
    given = plot(page, "given")
    expect(given).to_be_visible()
    boxes_at_rest(page, [given])
    given.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(readout(page)).to_contain_text("query 2 → key 5")
    expect(readout(page)).to_contain_text("Took effect: leak")
    page.keyboard.press("Enter")
    verdict(page, "Nothing wrong found")
    rule = page.get_by_label("A query may attend where")
    enter(rule, "causal and (window")
    expect(page.locator('[data-testid="stAlert"]')).to_contain_text("kind of mask")
    expect(rule).to_have_value("causal and (window")


def test_a_mask_written_for_one_interface_and_read_by_another(page: Page) -> None:
    open_page(page, "/masks?from=build&reader=nn.MultiheadAttention")
    verdict(page, "Faulty")
    expect(page.get_by_text("inverted").first).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


def test_what_is_pasted_is_judged_at_once(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, "/masks")
    page.evaluate("text => navigator.clipboard.writeText(text)", repr(torch.ones(5, 5).tril().bool()))
    box = page.get_by_label("Printed tensor")
    box.focus()
    box.press("Control+A")
    box.press("Control+V")
    verdict(page, "What was meant? No contradiction so far.")


def test_what_is_pasted_is_there_after_another_page_and_a_new_start_is_a_new_judgement(page: Page) -> None:
    open_page(page, "/masks?meant=causal")
    box, future = page.get_by_label("Printed tensor"), "[[1,1,1,1],[1,1,0,0],[1,1,1,0],[1,1,1,1]]"
    write(box, future)
    verdict(page, "1 error")
    click(page.get_by_role("button", name="Apply this fix"))
    verdict(page, "Sound, once mended")
    settle(page)
    click(page.get_by_role("link", name="Explore", exact=True))
    settle(page)
    click(page.get_by_role("link", name="Masks", exact=True))
    expect(box).to_have_value(future)
    verdict(page, "Sound, once mended")
    settle(page)
    write(box, "")
    expect(page.locator(".st-key-verdict-line")).to_have_count(0)
    settle(page)
    write(box, future)
    verdict(page, "1 error")


def write(box: Locator, text: str) -> None:
    settle(box.page)
    box.fill(text)
    box.press("Control+Enter")
    settle(box.page)


def test_a_pasted_mask_is_read_flipped_and_refused(page: Page) -> None:
    open_page(page, "/masks")
    box = page.get_by_label("Printed tensor")
    box.fill(repr(torch.ones(5, 5).tril().bool()))
    box.press("Control+Enter")
    verdict(page, "What was meant? No contradiction so far.")
    share = open_menu(page, "share")
    expect(share.get_by_text("The link opens this page without what you pasted or uploaded")).to_be_visible()
    close_menu(page)
    click(page.get_by_role("button", name="Yes: causal"))
    verdict(page, "Nothing wrong found")
    expect(page.locator(".st-key-read-as")).to_contain_text("5 queries × 5 keys")
    expect(page.locator(".st-key-read-as")).to_contain_text("% sure")
    choose(page, "Read as", "mask, True = blocked")
    verdict(page, "Faulty")
    box.fill("tensor([[1., ..., 0.]])")
    box.press("Control+Enter")
    expect(page.locator('[data-testid="stAlert"]')).to_contain_text("set_printoptions")
    expect(box).to_have_value("tensor([[1., ..., 0.]])")


@pytest.mark.slow
def test_twenty_hostile_files_get_a_sentence_each_and_a_good_one_is_judged(page: Page, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    heavy = ("bomb.npz", "quote.csv", "string.json")
    chosen = {name: data for name, data in special(mark).items() if data and name not in heavy}
    names = [*list(chosen)[: FILES - 1], "model.pt"]
    files: list[FilePayload] = [
        {"name": name, "mimeType": "application/octet-stream", "buffer": chosen[name]} for name in names
    ]
    good = io.BytesIO()
    torch.save({"weights": torch.full((4, 4), 0.25), "meant": torch.tensor(np.tri(4)).bool()}, good)
    open_page(page, "/masks?from=upload")
    chooser = page.locator('input[type="file"]')
    files.append({"name": "good.pt", "mimeType": "application/octet-stream", "buffer": good.getvalue()})
    chooser.set_input_files(files)
    verdict(page, "Faulty")
    alert = page.locator('[data-testid="stAlert"]')
    for name in names:
        expect(alert).to_contain_text(name)
    expect(page.get_by_text("future-visible").first).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)
    assert not mark.exists()
