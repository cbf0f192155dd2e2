"""What is projected: nothing covers a picture, nothing that belongs to it is lost, and no button is in the way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import LOADING, boxes_at_rest, download, open_file, open_page, open_talk
from tests.samples import slow_after

FAULT = "The causal mask was forgotten"
TALK = """title = "Projected"
[[scene]]
title = "Who looks at whom?"
page = "explore"
point = "Follow the dark cells."
minutes = 2
notes = "Say this first.\\nAnd this.\\nAnd that."
[scene.view]
sentence = "He turned the offer down."
[[scene]]
title = "Which fault is it?"
page = "masks"
hide = ["verdict"]
[scene.view]
part = "gallery"
fault = "future-visible"
[[scene]]
title = "Where am I?"
page = "positions"
[scene.view]
sentence = "The dog bit the man."
plot = "table"
pos = "12"
dim = "4"
[[scene]]
title = "How they came to be"
page = "training"
[scene.view]
sentence = "A girl is playing in the sand."
"""
CROSSINGS = """(plot) => {
  const boxes = (found) => [...plot.querySelectorAll(found)].map((one) => one.getBoundingClientRect());
  const [titles, maps] = [boxes(".annotation-text"), boxes(".heatmaplayer image")];
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return [titles.length, maps.length, titles.filter((one) => maps.some((map) => meet(one, map))).length];
}"""
TIGHT = """(plot) => {
  const names = [...plot.querySelectorAll(".yaxislayer-above")].map((axis) =>
    [...axis.querySelectorAll(".ytick text")].map((one) => one.getBoundingClientRect()).sort((a, b) => a.top - b.top));
  const overlaps = names.flatMap((axis) => axis.slice(1).map((one, i) => axis[i].bottom - one.top));
  return overlaps.filter((pixels) => pixels > 4).length;
}"""
"""How many names of rows run into the next: a name's box is higher than its letters."""


@pytest.fixture
def talk(page: Page, disk: Page, tmp_path: Path) -> Page:
    """The talk above as one file, opened at its first scene."""
    (tmp_path / "talk.toml").write_text(TALK, encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, tmp_path / "talk.toml")
    expect(page.get_by_label("Title of the talk")).to_have_value("Projected")
    open_file(disk, download(page.get_by_role("button", name="One file"), tmp_path))
    return disk


def turn(file: Page, to: int) -> None:
    file.keyboard.press(str(to))
    expect(file.locator("body")).to_have_attribute("data-slide", str(to), timeout=LOADING)


def stands_above(picture: Locator, below: Locator) -> bool:
    one, other = boxes_at_rest(picture.page, [picture, below])
    return one["y"] + one["height"] <= other["y"]


def test_what_a_talk_projects(talk: Page) -> None:
    plot, buttons = talk.locator(".heatmap .plot"), talk.get_by_role("navigation")
    slide = talk.locator("section")
    point, notes = talk.get_by_text("Follow the dark cells."), talk.get_by_label("Notes", exact=True)
    expect(buttons).to_have_css("opacity", "0")
    talk.keyboard.press("Tab")
    expect(buttons).to_have_css("opacity", "1")
    talk.evaluate("document.activeElement.blur()")
    expect(buttons).to_have_css("opacity", "0")
    (whole,) = boxes_at_rest(talk, [plot])

    talk.keyboard.press("Shift+N")
    expect(notes).to_be_visible()
    assert stands_above(plot, notes)
    assert stands_above(point, notes)
    expect(plot).to_be_in_viewport(ratio=1)
    talk.keyboard.press("Shift+N")
    assert boxes_at_rest(talk, [plot]) == [whole]

    talk.mouse.move(200, 200)
    expect(buttons).to_have_css("opacity", "1")
    talk.get_by_text("What this was made from").click()
    assert stands_above(plot, point)
    expect(talk.locator("dl")).to_be_in_viewport(ratio=1)
    talk.evaluate("document.activeElement.blur()")

    turn(talk, 2)
    expect(buttons).to_have_css("opacity", "0")
    expect(talk.get_by_text(FAULT)).to_be_hidden()
    talk.keyboard.press("PageDown")
    expect(talk.get_by_text(FAULT)).to_be_visible()
    turn(talk, 3)
    expect(slide.get_by_text("The dog bit the man.")).to_be_in_viewport(ratio=1)
    expect(slide.locator("math")).to_be_in_viewport(ratio=1)
    expect(slide.locator("math")).to_contain_text("1.15478")
    turn(talk, 4)
    expect(slide.get_by_text("A girl is playing in the sand.")).to_be_in_viewport(ratio=1)
    assert talk.url.endswith("#scene=4")
    talk.keyboard.press("c")
    expect(talk.locator("main.contrast")).to_have_count(1)

    with talk.expect_popup() as opened:
        talk.keyboard.press("n")
    opened.value.keyboard.press("Home")
    expect(talk.get_by_role("heading", level=1)).to_have_text("Who looks at whom?")
    expect(opened.value.locator(".notes")).to_have_text("Say this first. And this. And that.")
    expect(opened.value.locator(".next")).to_have_text("Next: Which fault is it?")
    expect(opened.value.locator(".aim")).to_have_text(re.compile(r"^\d:\d\d of 2:00 · \d:\d\d (left|behind)"))
    opened.value.close()

    talk.goto(f"{talk.url.partition('#')[0]}#scene=3")
    talk.reload()
    expect(talk.get_by_role("heading", level=1)).to_have_text("Where am I?", timeout=LOADING)
    expect(talk.locator("body")).to_have_attribute("data-ready", "yes", timeout=LOADING)


@pytest.mark.slow
def test_a_talk_is_printed_a_page_a_scene(talk: Page) -> None:
    expect(talk.locator("head script")).to_have_count(1)  # Plotly comes half a second after the first scene.
    sheets = talk.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", sheets)) == 4
    expect(talk.locator(".handout")).to_have_count(0)
    expect(talk.locator(".heatmap .plot")).to_be_in_viewport(ratio=1)

    rows = talk.locator(".heatmap .row").count()
    assert rows >= 6
    talk.evaluate("dispatchEvent(new Event('beforeprint'))")
    pages = talk.locator("article")
    expect(pages).to_have_count(4)
    expect(pages.nth(0).locator(".notes")).to_contain_text("Say this first.")
    expect(pages.nth(0).locator(".heatmap .row")).to_have_count(rows)
    expect(pages.nth(1).locator(".js-plotly-plot .heatmaplayer image").first).to_be_attached()
    expect(pages.nth(1).locator(".covered")).to_have_count(0)
    assert all(height < 720 for height in pages.evaluate_all("all => all.map((one) => one.offsetHeight)"))


@pytest.mark.parametrize("view", slow_after(1, ["compare", "joint"]))
def test_pictures_of_several_maps_are_laid_out_on_the_whole_screen_as_in_a_file(page: Page, view: str) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    open_page(page, f"/?layer=1&sentence=He+turned+the+offer+down.&view={view}")
    page.keyboard.press("p")
    scene = page.frame_locator("iframe").last
    plot = scene.locator(".js-plotly-plot")
    expect(plot.locator(".heatmaplayer image").first).to_be_visible(timeout=LOADING)
    expect(plot).to_be_in_viewport(ratio=1, timeout=LOADING)
    titles, maps, covered = plot.evaluate(CROSSINGS)
    assert titles
    assert maps
    assert not covered
    assert not plot.evaluate(TIGHT)
    expect(scene.locator(".st-key-overview")).to_be_hidden()


@pytest.mark.slow
def test_a_talk_in_another_page_is_laid_out_in_the_frame_that_it_has(talk: Page, tmp_path: Path) -> None:
    file = talk.url.rpartition("/")[2].partition("#")[0]
    frame = f'<iframe src="{file}#scene=3" width="800" height="450"></iframe>'
    (tmp_path / "other.html").write_text(f"<!doctype html><p>Another page.</p>{frame}", encoding="utf-8")
    talk.goto((tmp_path / "other.html").as_uri())
    inside = talk.frame_locator("iframe")
    expect(inside.locator("body")).to_have_attribute("data-slide", "3", timeout=LOADING)
    assert inside.locator("html").evaluate("(page) => page.scrollHeight <= page.clientHeight")
    expect(inside.locator("section .slide")).to_be_in_viewport(ratio=0.99)
    expect(inside.locator("section .js-plotly-plot, section canvas").first).to_be_in_viewport(ratio=0.99)
