"""Positions, used as a visitor uses it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from attenscope.viz.talk.file import format_talk
from attenscope.viz.talk.scenes import Scene, Talk
from tests.browser.steps import (
    boxes_at_rest,
    choose,
    choose_page_view,
    click,
    click_at,
    download,
    enter,
    kind_label,
    open_file,
    open_menu,
    open_page,
    open_talk,
    point,
    settle,
    type_sentence,
)

TITLES = {
    "table": "Positional encoding",
    "waves": "Waves: chosen dimensions",
    "similarity": "Cosine of two positions",
    "rotation": "turns every pair by its own angle",
    "precision": "Largest error against float64",
    "sentence": "How long is what is added",
    "experiments": "layer 1, head 1",
    "heads": "The most positional heads",
}
CANVAS = "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].join()"


def open_view(page: Page, view: str, **address: str) -> None:
    rest = "".join(f"&{name}={value}" for name, value in address.items())
    open_page(page, f"/positions?plot={view}{rest}")
    expect(page.get_by_text(TITLES[view]).first).to_be_visible()


def matrix(page: Page, key: str) -> Locator:
    """The picture of a table, and in it the area that hears the mouse."""
    return page.locator(f".st-key-{key} .plot")


def value(page: Page, label: str) -> str:
    return page.get_by_label(label, exact=True).input_value()


def test_a_walk_through_every_view(page: Page) -> None:
    open_page(page, "/positions")
    for view in TITLES:
        choose_page_view(page, view)
        expect(page.get_by_text(TITLES[view]).first).to_be_visible()
        settle(page)
        assert ("plot=" in page.url) == (view != "experiments")
        assert view == "experiments" or f"plot={view}" in page.url
        expect(page.locator('[data-testid="stCaptionContainer"]').first).to_be_visible()
    page.reload()
    expect(page.get_by_text(TITLES["heads"])).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


def test_a_clicked_cell_is_worked_out_and_stays_in_the_address(page: Page) -> None:
    open_view(page, "table", positions="64")
    plot = matrix(page, "table-picture")
    expect(plot).to_be_visible()
    point(page, plot, 0.5, 0.5)
    expect(page.locator(".st-key-table-picture .readout")).to_have_text(
        re.compile(r"position 3[12] · dimension \d+ · −?\d\.\d\d")
    )
    click_at(page, plot, 0.001, 0.999)
    expect(page.locator(".katex-display")).to_contain_text("63")
    expect(page.get_by_text("The table holds")).to_be_visible()
    settle(page)
    assert (value(page, "Position"), value(page, "Dimension")) == ("63", "0")
    assert "pos=63" in page.url
    page.reload()
    settle(page)
    expect(page.get_by_label("Position", exact=True)).to_have_value("63")


def test_the_position_of_the_table_stays_in_the_address_of_the_next_view(page: Page) -> None:
    open_view(page, "table", table="sinusoidal", pos="90")
    choose_page_view(page, "similarity")
    expect(page.get_by_text("Positions 90 and 98, 8 apart")).to_be_visible()
    settle(page)
    expect(page).to_have_url(re.compile(r"[?&]pos=90\b"))


def test_a_cell_is_chosen_by_keyboard(page: Page) -> None:
    open_view(page, "table", positions="64", pos="5", dim="6")
    plot = matrix(page, "table-picture")
    plot.focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".st-key-table-picture .readout")).to_contain_text("position 6 · dimension 7")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Position", exact=True)).to_have_value("6")
    expect(page.get_by_label("Dimension", exact=True)).to_have_value("7")


def test_sines_and_cosines_can_be_parted(page: Page) -> None:
    open_view(page, "table", positions="16")
    canvas = page.locator(".st-key-table-picture .plot canvas")
    before = canvas.evaluate(CANVAS)
    assert len(set(before.split(","))) > 20
    click(page.get_by_role("radio", name="halves"))
    settle(page)
    page.wait_for_function(
        f"before => ({CANVAS})(document.querySelector('.st-key-table-picture *').ownerDocument && "
        "[...document.querySelectorAll('.st-key-table-picture *')].find((e) => e.shadowRoot)"
        ".shadowRoot.querySelector('canvas')) !== before",
        arg=before,
    )
    assert "arranged=halves" in page.url


def test_the_page_opens_on_what_is_left_without_positions(page: Page) -> None:
    left = re.compile(r"\d of \d words of its translation are left in their order")
    open_page(page, "/positions")
    expect(page.locator(".st-key-lead")).to_have_text(left)
    open_page(page, "/positions?sentence=Tom+loves+Mary.")
    expect(page.locator(".st-key-lead")).to_contain_text("Without positions the model does not know the order")
    click(page.get_by_role("button", name="Try a sentence whose order matters"))
    expect(page.locator(".versions .new").first).to_be_visible()
    expect(page.locator(".st-key-lead")).to_have_text(left)
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("The dog chased the cat.")


def test_experiments_change_the_translation_and_leave_the_model_alone(page: Page) -> None:
    open_view(page, "experiments", sentence="The+dog+bit+the+man.")
    before = page.locator(".versions .before").inner_text()
    expect(page.locator(".versions .new").first).to_be_visible()
    expect(page.locator(".st-key-lead")).to_have_text(re.compile(r"^Without positions .*: \d of \d words"))
    choose(page, "Positions", "shift")
    expect(page.get_by_text("a position further on")).to_be_visible()
    expect(page.locator(".st-key-belief .js-line").first).to_be_visible()
    enter(page.get_by_label("By", exact=True), "0")
    expect(page.get_by_text("The translation is the same.")).to_be_visible()
    assert page.locator(".versions .after").inner_text() == before == page.locator(".versions .before").inner_text()


def test_the_pieces_that_change_places_are_those_of_the_sentence(page: Page) -> None:
    """Also where nobody has chosen them: their places stay, and their words change."""
    open_view(page, "experiments", move="swap", sentence="He+reads+a+book.")
    one, other = (page.get_by_role("combobox", name=name, exact=True) for name in ("Position", "with"))
    expect(one).to_have_value("1 He")
    expect(other).to_have_value("3 a")
    type_sentence(page, "The old woman laughs.")
    expect(one).to_have_value("1 The")
    expect(other).to_have_value("3 woman")
    choose(page, "with", "2 old")
    expect(page).to_have_url(re.compile(r"[?&]other=2\+old\b"))
    type_sentence(page, "He reads a book.")
    expect(one).to_have_value("1 He")
    expect(other).to_have_value("2 reads")
    expect(page).to_have_url(re.compile(r"[?&]other=2\+reads\b"))


def test_clicking_a_bar_opens_that_head(page: Page) -> None:
    open_view(page, "heads")
    page.locator(".st-key-ranking .point").first.wait_for()
    first = page.locator(".st-key-ranking .ytick").first.text_content() or ""
    found = re.fullmatch(r"(\w+) · layer (\d+), head (\d+)", first)
    assert found, first
    click_at(page, page.locator(".st-key-ranking .nsewdrag"), 0.05, 0.03)
    title = page.locator(".st-key-shuffled .gtitle").filter(has_text=f"layer {found[2]}, head {found[3]}")
    expect(title).to_be_visible()
    expect(kind_label(page, found[1])).to_have_attribute("aria-pressed", "true")


def test_a_point_of_a_curve_is_read_and_chosen(page: Page) -> None:
    open_view(page, "similarity", positions="32")
    plot = matrix(page, "profile")
    point(page, plot, 0.53, 0.5)
    expect(page.locator(".st-key-profile .readout")).to_have_text(re.compile(r"1[45] apart: 0\.\d{4}"))
    plot.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text(re.compile(r"Positions 12 and \d+, \d+ apart"))).to_contain_text("apart: cosine")
    chosen = page.locator(".st-key-profile .readout").text_content() or ""
    expect(page.get_by_text(f", {chosen.split(' ')[0]} apart: cosine")).to_be_visible()


def test_a_chosen_circle_shows_its_block(page: Page) -> None:
    open_view(page, "rotation", positions="32")
    titles = page.locator(".st-key-circles .first")
    expect(titles.first).to_be_visible()
    name = titles.nth(3).text_content() or ""
    (box,) = boxes_at_rest(page, [titles.nth(3)])
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] - 60)
    expect(page.locator(".st-key-block")).to_contain_text(f"({name.removeprefix('pair ')})")


@pytest.mark.parametrize(
    ("view", "picture", "names"), [("similarity", "similarity", "pos shift"), ("rotation", "circles", "dim")]
)
def test_what_a_click_chose_stays_in_the_address(page: Page, view: str, picture: str, names: str) -> None:
    """A reload, and the way to another page and back, show what was chosen; so does the link on another table."""
    open_view(page, view, positions="32")
    plot = matrix(page, picture)
    expect(plot).to_be_visible()
    settle(page)
    before = page.inner_text(".stMain")
    click_at(page, plot, 0.9, 0.15)
    settle(page)
    chosen = page.inner_text(".stMain")
    assert chosen != before
    assert all(re.search(rf"[?&]{name}=\d", page.url) for name in names.split()), page.url
    page.reload()
    settle(page)
    assert page.inner_text(".stMain") == chosen
    page.get_by_test_id("stTopNavLink").filter(has_text="Masks").click()
    expect(page).to_have_url(re.compile("/masks"))
    settle(page)
    page.go_back()
    expect(page).to_have_url(re.compile("/positions"))
    settle(page)
    assert page.inner_text(".stMain") == chosen


@pytest.mark.slow
def test_everything_can_be_saved(page: Page, disk: Page, tmp_path: Path) -> None:
    open_view(page, "similarity", positions="32")
    page.locator(".st-key-profile .curve").first.wait_for()
    menu = open_menu(page, "share")
    saved = {}
    for ending, name in (
        ("png", "Save as PNG"),
        ("svg", "Save as SVG"),
        ("html", "Interactive page (HTML)"),
        ("csv", "Numbers (CSV)"),
    ):
        saved[ending] = download(menu.get_by_role("button", name=name), tmp_path)
        assert saved[ending].name == f"positions-similarity.{ending}"
    assert saved["png"].read_bytes().startswith(b"\x89PNG")
    assert saved["png"].stat().st_size > 20_000
    drawing = saved["svg"].read_text()
    assert "<image" in drawing
    assert "Cosine by distance" in drawing
    rows = saved["csv"].read_text().splitlines()
    assert len(rows) == 33
    assert float(rows[1].split(",")[1]) == pytest.approx(1)
    open_file(disk, saved["html"])
    expect(disk.locator(".curve").first).to_be_visible()


LONGEST = {"plot": "table", "table": "sinusoidal", "positions": "1024", "d_model": "1024", "pos": "1023", "dim": "1001"}
"""The value of the table whose formula is the widest."""
CUT = """(one) => {
    const right = (element) => element.getBoundingClientRect().right;
    const seen = [...one.querySelectorAll(".katex-html *, mn, mo")].filter((part) => part.textContent.trim());
    return Math.max(...seen.map(right)) - right(one);
}"""
"""Pixels by which a formula is wider than the place it stands in."""


@pytest.mark.slow
def test_the_longest_formula_is_whole_on_the_stage_and_in_a_talks_file(page: Page, disk: Page, tmp_path: Path) -> None:
    """A screen of 1920 x 1080 is 960 x 540 of a scene's own pixels."""
    page.set_viewport_size({"width": 960, "height": 540})
    open_page(page, f"/positions?{urlencode(LONGEST)}&present=1&embed=true")
    shown = page.get_by_test_id("stMain")
    expect(shown.locator(".katex-display")).to_contain_text("1023")
    assert shown.evaluate(CUT) <= 0
    (tmp_path / "one.toml").write_text(
        format_talk(Talk("One", (Scene("A view", "positions", LONGEST),))), encoding="utf-8"
    )
    page.set_viewport_size({"width": 1440, "height": 900})
    open_page(page, "/talk")
    open_talk(page, tmp_path / "one.toml")
    disk.set_viewport_size({"width": 1920, "height": 1080})
    open_file(disk, download(page.get_by_role("button", name="One file"), tmp_path))
    written = disk.locator(".formula")
    expect(written).to_contain_text("1023")
    assert written.evaluate(CUT) <= 0
