"""A talk with a trace and a mask of one's own: on stage, after a reload, as a zip, as one file, and nobody else's."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LOADING, add_to_talk, click, download, open_file, open_page, open_talk, save_talk
from tests.browser.test_opened_trace import bring, recorded

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PAINTED = "Decoder self-attention · layer 2, head 1 · decoder.layers.1.self_attn"
TALK = """title = "My model"
[[scene]]
title = "My decoder"
page = "explore"
trace = "mine.safetensors"
[scene.view]
kind = "decoder"
layer = 2
[[scene]]
title = "My mask"
page = "masks"
arrays = "mask.npy"
"""


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A zip of a talk, a trace and a mask."""
    recorded(tmp_path)
    np.save(tmp_path / "mask.npy", np.tri(5, dtype=bool))
    (tmp_path / "talk.toml").write_text(TALK, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        for name in ("talk.toml", "mine.safetensors", "mask.npy"):
            archive.write(tmp_path / name, f"folder/{name}")
    return tmp_path / "mine.zip"


def shown(page: Page, number: int) -> None:
    """The scene stands on the stage with its file."""
    expect(page.locator("dialog.show")).to_have_attribute("data-scene", str(number), timeout=LOADING)
    expect(page.locator("dialog.show")).to_have_attribute("data-ready", str(number), timeout=LOADING)
    scene = page.frame_locator("dialog.show iframe.seen")
    if number == 1:
        expect(scene.locator(".heatmap")).to_have_attribute("data-painted", PAINTED)
    else:
        expect(scene.locator('.plot[data-panel="given"]')).to_be_visible()


def test_a_talk_with_files_of_ones_own(page: Page, other: Page, disk: Page, packed: Path, tmp_path: Path) -> None:
    open_page(page, "/talk")
    open_talk(page, packed)
    expect(page.get_by_label("Title of the talk")).to_have_value("My model")
    page.reload()
    expect(page.get_by_label("Title of the talk")).to_have_value("My model", timeout=LOADING)
    click(page.get_by_role("button", name="Start the talk"))
    shown(page, 1)
    page.keyboard.press("PageDown")
    shown(page, 2)
    address = page.locator("dialog.show iframe.seen").get_attribute("src") or ""
    page.keyboard.press("Escape")

    assert "kept=" in address
    other.goto(f"/masks?from=upload&present=1&embed=true&kept={'A' * 32}")
    expect(other.get_by_text("no longer kept")).to_have_count(0)  # Not on the stage, so no file is asked for.
    expect(other.locator('.plot[data-panel="given"]')).to_have_count(0)

    again = save_talk(page, tmp_path)
    with zipfile.ZipFile(again) as archive:
        assert set(archive.namelist()) == {"talk.toml", "mine.safetensors", "mask.npy"}
    open_file(disk, download(page.get_by_role("button", name="One file"), tmp_path))
    expect(disk.locator(".heatmap")).to_have_attribute("data-painted", PAINTED)
    disk.keyboard.press("PageDown")
    expect(disk.locator('.plot[data-panel="given"]')).to_be_visible()


def test_a_talk_opened_without_its_file_names_the_line(page: Page, tmp_path: Path) -> None:
    (tmp_path / "talk.toml").write_text(TALK, encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, tmp_path / "talk.toml")
    alert = page.get_by_test_id("stAlert")
    expect(alert).to_contain_text("Line 5: There is no file 'mine.safetensors' beside the talk")
    expect(alert).to_contain_text("Line 12: There is no file 'mask.npy' beside the talk")


def test_an_opened_trace_is_shown_alone_and_becomes_a_scene(page: Page, tmp_path: Path) -> None:
    open_page(page)
    bring(page, recorded(tmp_path))
    expect(page.get_by_text("an opened trace of Transformer")).to_be_visible(timeout=LOADING)
    page.keyboard.press("Escape")
    page.mouse.click(5, 500)
    page.keyboard.press("p")
    scene = page.frame_locator("dialog.show iframe.seen")
    expect(scene.get_by_text("Where did you buy it", exact=True)).to_be_visible(timeout=LOADING)
    page.keyboard.press("Escape")
    add_to_talk(page)
    expect(page.get_by_text("mine.safetensors is kept beside it")).to_be_visible()
    click(page.get_by_role("link", name="Talk", exact=True))
    expect(page.get_by_text("Scene 1 of 1")).to_be_visible(timeout=LOADING)
    click(page.get_by_role("button", name="Start the talk"))
    expect(scene.locator(".heatmap .plot")).to_be_visible(timeout=LOADING)


def test_a_pasted_mask_is_shown_alone_with_its_verdict(page: Page) -> None:
    open_page(page, "/masks")
    click(page.get_by_role("button", name="The future shows"))
    expect(page.get_by_text("Faulty: 1 error")).to_be_visible()
    page.mouse.click(5, 500)
    page.keyboard.press("p")
    scene = page.frame_locator("dialog.show iframe.seen")
    expect(scene.get_by_text("Faulty: 1 error")).to_be_visible(timeout=LOADING)
    expect(scene.get_by_text("future-visible")).to_be_visible()
