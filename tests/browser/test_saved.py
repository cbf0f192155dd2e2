"""What is saved, opened from disk with the network cut off: small, interactive, and safe whatever a token says."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import (
    LOADING,
    click,
    download,
    open_file,
    open_menu,
    open_page,
    open_talk,
    point,
    saved,
    settle,
    tile,
)
from tests.browser.test_accessibility import findings
from tests.samples import slow_after

AWKWARD = "The book </script><img src=x onerror=alert(1)> مرحبا"
VIEW, TALK = 3_000_000, 12_000_000
"""Bytes that a file of either kind may have."""
SCENES = """title = "Two views"
[[scene]]
title = "Who looks at whom?"
page = "explore"
point = "Follow the dark cells."
notes = "Say this first."
hide = ["heads"]
[scene.view]
sentence = "He turned the offer down."
[[scene]]
title = "Step by step"
page = "decode"
hide = ["next token"]
[scene.view]
sentence = "He turned the offer down."
step = "3"
"""


def test_a_heatmap_with_all_its_heads(page: Page, disk: Page, tmp_path: Path) -> None:
    open_page(page, f"/?{urlencode({'sentence': AWKWARD, 'layer': '1'})}")
    open_menu(page, "share").get_by_label("Notes in the file").fill("Look at <b>the first</b> row.")
    page.get_by_label("Notes in the file").press("Control+Enter")
    expect(page.get_by_text("In the file, the key n shows them.")).to_be_visible()
    file = saved(page, "Interactive page", tmp_path)
    assert file.stat().st_size < VIEW
    open_file(disk, file)
    expect(disk.locator(".words.large")).to_have_text(AWKWARD)
    tile(disk, 2, 3).click()
    expect(disk.get_by_role("img", name="Cross-attention · layer 2, head 3")).to_be_visible()
    expect(tile(disk, 2, 3)).to_have_attribute("aria-pressed", "true")
    point(disk, disk.locator(".heatmap .plot"), 0.3, 0.3)
    expect(disk.locator(".tip b")).to_have_text(re.compile(r"^\d\.\d\d$"))  # As far as the overview's bytes know it.
    expect(disk.get_by_label("Notes", exact=True)).to_be_hidden()
    disk.keyboard.press("n")
    expect(disk.get_by_label("Notes", exact=True)).to_have_text("Look at <b>the first</b> row.")
    disk.get_by_text("What this was made from").click()
    expect(disk.locator("dl")).to_contain_text(re.compile(r"everyday-en-de.*hash[0-9a-f]{8}", re.DOTALL))
    assert not findings(disk)


@pytest.mark.parametrize("view", slow_after(1, ["links", "text", "pipeline"]))
def test_the_other_views_of_a_head(page: Page, disk: Page, tmp_path: Path, view: str) -> None:
    open_page(page, f"/?layer=1&sentence=He+turned+the+offer+down.&view={view}&step=7")
    open_file(disk, saved(page, "Interactive page", tmp_path))
    if view == "links":
        disk.locator(".token").first.hover()
        expect(disk.locator(".numbers text").first).to_have_text(re.compile(r"\d+%"))
        tile(disk, 3, 2).click()
        expect(disk.get_by_role("group", name="Cross-attention, layer 3")).to_be_visible()
        expect(disk.locator(".legend .chosen")).to_have_text("h2")
    elif view == "text":
        disk.locator(".texts button").first.hover()
        expect(disk.locator("h3").last).to_contain_text("attends to it")
    else:
        disk.get_by_role("button", name="Back").click()
        expect(disk.locator("[aria-current]")).to_have_text("Softmax")


def test_the_player_scrubs_and_plays(page: Page, disk: Page, tmp_path: Path) -> None:
    open_page(page, "/decode?sentence=He+turned+the+offer+down.&step=2")
    expect(page.get_by_text("The attention weights agree")).to_be_visible(timeout=LOADING)
    click(open_menu(page, "share").get_by_role("radio", name="dark"))
    svg = saved(page, "Save as SVG", tmp_path).read_text(encoding="utf-8")
    assert 'fill="rgb(19, 18, 24)"' in svg
    assert svg.count("<text") > 12
    png = saved(page, "Save as PNG", tmp_path).read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 2 * (1280 + 24)
    file = saved(page, "Interactive page", tmp_path)
    assert file.stat().st_size < VIEW
    open_file(disk, file)
    player = disk.locator(".decode-player")
    expect(player).to_have_attribute("data-step", "2")
    disk.keyboard.press("ArrowRight")
    expect(player).to_have_attribute("data-step", "3")
    last = int(disk.get_by_label("Decoding step").get_attribute("max") or 0) + 1
    disk.get_by_label("Speed").select_option("10 a second")
    disk.get_by_role("button", name="Play", exact=True).click()
    expect(player).to_have_attribute("data-step", str(last))
    disk.locator(".candidate .name").nth(2).click()
    expect(disk.get_by_role("status").filter(has_text="needs the running model")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("path", slow_after(1, ["/masks?part=gallery&fault=future-visible", "/training"]))
def test_pages_of_other_kinds(page: Page, disk: Page, tmp_path: Path, path: str) -> None:
    open_page(page, path)
    expect(page.locator(".st-key-share button").first).to_be_visible(timeout=LOADING)
    settle(page)
    file = saved(page, "Interactive page", tmp_path)
    assert file.stat().st_size < VIEW
    open_file(disk, file)
    if path.startswith("/masks"):
        expect(disk.get_by_role("heading", level=1)).to_have_text("The causal mask was forgotten")
        expect(disk.locator(".js-plotly-plot .main-svg").first).to_be_visible()
        expect(disk.get_by_text("future-visible:")).to_be_visible()
    else:
        slider = disk.locator("input[type=range]")
        expect(disk.locator(".tick.now .name")).to_have_text("released")
        slider.press("Home")
        expect(disk.locator(".tick.now .name")).to_have_text("random")


def test_a_whole_talk(page: Page, disk: Page, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(SCENES, encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, tmp_path / "two.toml")
    expect(page.get_by_label("Title of the talk")).to_have_value("Two views")
    file = download(page.get_by_role("button", name="One file"), tmp_path)
    assert file.stat().st_size < TALK
    open_file(disk, file)
    heading = disk.get_by_role("heading", level=1)
    expect(heading).to_have_text("Who looks at whom?")
    expect(disk.get_by_text("Follow the dark cells.")).to_be_in_viewport(ratio=1)
    expect(disk.locator(".heatmap .plot")).to_be_in_viewport(ratio=1)
    expect(disk.get_by_text("Each row is", exact=False)).to_have_count(0)
    expect(tile(disk, 1, 2)).to_be_hidden()
    disk.keyboard.press("PageDown")
    expect(tile(disk, 1, 2)).to_be_visible()
    disk.keyboard.press("Shift+N")
    expect(disk.get_by_label("Notes", exact=True)).to_have_text("Say this first.")
    disk.keyboard.press("ArrowRight")
    expect(heading).to_have_text("Step by step")
    expect(disk.locator(".candidates .name").first).to_be_hidden()
    disk.emulate_media(forced_colors="active")
    for state in ("predicted", "unwritten"):
        expect(disk.locator(f".text [data-state={state}]").first).to_have_css("color", "rgba(0, 0, 0, 0)")
    disk.keyboard.press("PageDown")
    expect(disk.locator(".candidates .name").first).to_be_visible()
    disk.keyboard.press("Home")
    expect(heading).to_have_text("Who looks at whom?")
    disk.keyboard.press("2")
    expect(heading).to_have_text("Step by step")
    expect(disk.locator(".decode-player")).to_have_attribute("data-step", "3")
