"""A saved file: its slides, the keys that go through them, what it hides and asks, and its sheets of paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import plotly.graph_objects as go
import pytest
from playwright.sync_api import Browser, Page, expect

from attenscope.viz.export import offline_html
from attenscope.viz.export.offline_html import build_talk_page, build_view_page
from attenscope.viz.export.parts import Chart, Columns, Component, Formula, Slide, Table, View, Words
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look, Palette
from attenscope.viz.ui.style import TableCell
from attenscope.viz.web import maps, players, text_components
from tests.browser.conftest import visit
from tests.browser.steps import open_file
from tests.components.test_weights import CROSS, RESULT, encode_head

MADE = date(2025, 1, 2)
Opened = Callable[[str], Page]


def explored(palette: Palette = LIGHT) -> View:
    look = Look(palette)
    tiles = maps.encode_heads_overview(CROSS, 1, 2, look)
    lines = maps.encode_attention_links(CROSS, maps.LinkOptions(1, 2), look, "predicted", (None, None), "Lines.")
    heat = encode_head(CROSS, 1, 2, look, follows="Cross-attention", pins=True)
    picture = [
        Component("heatmap", heat, follows=True),
        Component("links", lines, follows=True),
        Component(
            "text", text_components.encode_shaded_text(CROSS, 1, 2, look, "predicted", (None, None), ""), follows=True
        ),
    ]
    pair = [Component("overview", tiles, "heads", follows=True)], picture
    pieces = Component("tokens", text_components.token_line_data(RESULT.steps, None), "translation")
    sentence = Words("one two three", "sentence", "large", [("one ", "same"), ("two", "gone"), (" 2", "new")])
    return View("Explored", [sentence, pieces, Columns(pair, (0.4, 0.6))], {"model": "fake-en-de"})


def decoded() -> View:
    shown = players.PlayerStart(1, "aligning", "3.mean", (1, 2))
    return View("Decoded", [Component("decode_player", players.encode_decode_player(RESULT, shown, Look(), "saved"))])


def counted() -> View:
    rows: list[list[TableCell]] = [[f"row {at}", (f"{at}", "number")] for at in range(60)]
    formula = ("math", (("mi", "s"), ("mo", "="), ("mn", "1")))
    return View("Counted", [Table(["name", "count"], rows, "Sixty rows", "verdict"), Formula(formula)])


SLIDES = (
    Slide(
        "Heads",
        explored(),
        "What is said.",
        "Look at head 2.3",
        guess=("2.3", "1.1"),
        clicked={"choices": ["2.3", "1.1"], "sentence": "one two three"},
    ),
    Slide(
        "Steps",
        decoded(),
        "More is said.",
        "The next word",
        hide=("next token", "matrix"),
        omit=("candidates",),
        minutes=0.01,
    ),
    Slide("Rows", counted(), omit=("translation",)),
    Slide("Lost", None, missing="Its model is missing."),
)


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cut font, which takes longer than all else; tests/viz/export/test_font.py has it."""
    monkeypatch.setattr(offline_html, "build_font_faces", lambda *_, **__: "")


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Open a file that was built, of a screen of 1280 by 720, with no network."""
    size = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce"}
    with visit(chromium, "file:", offline=True, accept_downloads=True, **size) as page:

        def open_text(text: str) -> Page:
            (tmp_path / "saved.html").write_text(text, encoding="utf-8")
            open_file(page, tmp_path / "saved.html")
            return page

        yield open_text


def talk(*slides: Slide, **more: object) -> str:
    return build_talk_page("A talk", slides or SLIDES, LIGHT, MADE, **more)  # type: ignore[arg-type]


def test_keys_go_through_the_slides_and_uncover_what_is_hidden(opened: Opened) -> None:
    page = opened(talk(*SLIDES[1:]))
    body, heading = page.locator("body"), page.locator("h1")
    expect(heading).to_have_text("Steps")
    predicted = page.locator(".piece[data-state=predicted]")
    expect(predicted).to_have_css("color", "rgba(0, 0, 0, 0)")
    expect(page.locator(".candidates")).to_be_hidden()
    page.keyboard.press("PageDown")
    expect(predicted).not_to_have_css("color", "rgba(0, 0, 0, 0)")
    page.keyboard.press("ArrowRight")
    expect(heading).to_have_text("Rows")
    expect(body).to_have_attribute("data-slide", "2")
    rows = page.locator("tbody tr:visible")
    assert rows.count() < 61
    expect(page.locator(".more")).to_have_text(f"and {60 - (rows.count() - 1)} more")
    expect(page.locator("math")).to_have_text("s=1")
    page.keyboard.press("End")
    expect(page.locator(".missing")).to_have_text("Its model is missing.")
    assert page.url.endswith("#scene=3")
    page.keyboard.press("ArrowUp")
    expect(heading).to_have_text("Rows")
    page.keyboard.press("1")
    expect(heading).to_have_text("Steps")
    page.keyboard.press("c")
    expect(page.locator("main")).to_have_class("talk resting contrast")
    page.mouse.move(300, 300)
    expect(page.locator("main")).to_have_class("talk contrast")
    page.get_by_label("Next").click()
    expect(predicted).to_be_visible()
    page.keyboard.press("N")
    expect(page.locator("aside")).to_have_text("More is said.")
    page.evaluate("() => { location.hash = 'scene=2'; }")
    expect(heading).to_have_text("Rows")


FITTED = """() => {
  const slide = document.querySelector(".slide");
  const rows = [...slide.querySelectorAll("tbody tr")].filter((one) => one.checkVisibility());
  return slide.style.visibility ? null : [slide.style.zoom, slide.style.getPropertyValue("--picture"), rows.length];
}"""
"""How a slide is fitted: its zoom, the height of its pictures, the rows of its table in sight; null while it is not."""


def fitted(page: Page) -> object:
    return page.wait_for_function(FITTED).json_value()


def test_a_slide_is_fitted_the_same_however_one_comes_to_it(opened: Opened) -> None:
    """By itself; passed while it was being fitted; left and come back to; in a window that was smaller meanwhile."""
    lost, rows = SLIDES[3], SLIDES[2]
    page = opened(talk(lost, rows, lost))
    page.keyboard.press("2")
    alone = fitted(page)
    assert page.locator(".more").is_visible()
    page.keyboard.press("1")
    page.reload()
    fitted(page)
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert fitted(page) == alone
    for key in ("Home", "2"):
        page.keyboard.press(key)
    assert fitted(page) == alone
    assert page.locator(".more").is_visible()
    for size in ((1100, 600), (1200, 640), (1040, 500), (1280, 720)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert fitted(page) == alone


def test_the_audience_guesses_before_the_next_key(opened: Opened) -> None:
    page = opened(talk(*SLIDES[:2]))
    place, choices = page.locator("p.place"), page.locator(".choice")
    expect(choices).to_have_count(2)
    page.keyboard.press("2")
    expect(place).to_have_text("1 guess · 1 / 2")
    choices.nth(0).click()
    page.locator(".tile").nth(6).click()
    expect(place).to_have_text("3 guesses · 1 / 2")
    page.keyboard.press("Backspace")
    expect(place).to_have_text("2 guesses · 1 / 2")
    expect(choices.locator(".count")).to_have_text(["", ""])
    page.keyboard.press("PageDown")
    expect(choices.locator(".count")).to_have_text(["1", "1"])
    expect(choices.nth(0)).to_be_disabled()
    with page.expect_download() as saved:
        page.get_by_text("save guesses").click()
    table = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert table == ['"scene","title","choice","guesses"', '"1","Heads","2.3","1"', '"1","Heads","1.1","1"']
    page.get_by_text("clear", exact=True).click()
    expect(page.get_by_text("save guesses")).to_be_hidden()
    page.reload()
    expect(place).to_have_text("1 / 2")
    page.keyboard.press("2")
    page.keyboard.press("Enter")  # It was the number of a scene.
    expect(page.locator("h1")).to_have_text("Steps")


def test_words_and_sides_are_guessed_by_a_click_on_them(opened: Opened) -> None:
    asked = replace(
        SLIDES[0], guess=("two", "one two"), clicked={"choices": ["two", "one two"], "sentence": "one two 2"}
    )
    figure = go.Figure({"data": [{"type": "scatter", "y": [1, 3, 2]}], "layout": {"height": 300}})
    sides = Slide(
        "Which?",
        View("Pair", [Chart(figure, "A curve")]),
        guess=("left", "right"),
        clicked={"choices": ["left", "right"], "sentence": ""},
    )
    page = opened(talk(asked, sides))
    place = page.locator("p.place")
    page.locator("del").click()
    expect(place).to_have_text("1 guess · 1 / 2")
    page.locator("h1").click()
    expect(place).to_have_text("1 guess · 1 / 2")
    page.keyboard.press("PageDown")
    expect(page.locator(".choice .count")).to_have_text(["1", "0"])
    page.keyboard.press("PageDown")
    picture = page.locator("[data-role=picture]")
    expect(picture.locator(".main-svg").first).to_be_attached()
    box = picture.bounding_box()
    assert box
    picture.click(position={"x": 0.8 * box["width"], "y": 0.5 * box["height"]})
    expect(place).to_have_text("1 guess · 2 / 2")


def test_a_head_chosen_in_a_file_is_drawn_in_all_its_views_and_stays(opened: Opened) -> None:
    page = opened(talk(replace(SLIDES[0], guess=()), SLIDES[2]))
    page.locator(".tile").nth(1).click()
    expect(page.locator(".heatmap .title")).to_contain_text("Cross-attention · layer 1, head 2")
    lines = page.locator(".links svg")
    expect(lines).to_have_attribute("data-painted", "Cross-attention, layer 1, as lines from queries to keys 1")
    page.locator("[data-side=query].token").nth(1).click()
    expect(page.locator(".token[aria-pressed=true]")).to_have_text("TWO")
    page.get_by_label("Draw head 1 too").click()
    expect(page.locator(".links path")).to_have_count(8)
    page.locator(".line button").nth(1).click()
    page.get_by_label("Next").click()
    expect(page.locator("h1")).to_have_text("Rows")
    page.get_by_label("Back").click()
    expect(page.locator(".links path")).to_have_count(8)
    expect(page.locator(".line [aria-pressed=true]")).to_have_text("TWO")


def test_the_speaker_has_notes_and_a_clock_in_a_window_of_his_own(opened: Opened) -> None:
    page = opened(talk(*SLIDES[:3]))
    with page.expect_popup() as popup:
        page.keyboard.press("n")
    notes = popup.value
    expect(notes.locator(".notes")).to_have_text("What is said.")
    expect(notes.locator(".where")).to_have_text("Scene 1 of 3 · something is still hidden")
    expect(notes.locator(".next")).to_have_text("Next key: reveal")
    notes.keyboard.press("PageDown")
    expect(notes.locator(".next")).to_have_text("Next: Steps")
    notes.keyboard.press("PageDown")
    expect(page.locator("h1")).to_have_text("Steps")
    expect(notes.locator(".notes")).to_have_text("More is said.")
    expect(notes.locator(".aim")).to_contain_text("behind")
    notes.close()


def test_a_talk_is_printed_as_a_hand_out_of_a_page_a_scene(opened: Opened) -> None:
    page = opened(talk())
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    sheets = page.locator(".handout article")
    expect(sheets).to_have_count(4)
    expect(sheets.locator("h2")).to_have_text(["Heads", "Steps", "Rows", "Lost"])
    expect(sheets.nth(0).locator(".point")).to_have_text(["Guess first: 2.3 · 1.1", "Look at head 2.3"])
    expect(sheets.nth(1).locator(".notes")).to_have_text("More is said.")
    zooms = sheets.evaluate_all("(all) => all.map((one) => Number(one.style.zoom || 1))")
    assert zooms[2] < 1, "sixty rows are made smaller"
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    expect(page.locator(".handout")).to_have_count(0)


def test_a_view_takes_the_colours_that_its_address_asks_for(opened: Opened) -> None:
    page = opened(build_view_page(explored(), LIGHT, MADE, "Notes.", also=(explored(DARK), DARK)))
    expect(page.locator("summary")).to_have_text("What this was made from")
    page.locator("summary").click()
    expect(page.locator("dd").first).to_have_text("fake-en-de")
    page.keyboard.press("n")
    expect(page.locator("aside")).to_have_text("Notes.")
    with page.expect_navigation():
        page.evaluate("() => { location.hash = 'theme=dark'; }")
    expect(page.locator("body")).to_have_attribute("data-ready", "yes")
    expect(page.locator("html")).to_have_attribute("data-scheme", "dark")
    red, green, blue = (int(DARK.background[at : at + 2], 16) for at in (1, 3, 5))
    expect(page.locator("body")).to_have_css("background-color", f"rgb({red}, {green}, {blue})")
    page.set_viewport_size({"width": 390, "height": 800})
    tops = [one.bounding_box() for one in page.locator(".column").all()]
    assert tops[0]
    assert tops[1]
    assert tops[1]["y"] >= tops[0]["y"] + tops[0]["height"], "below each other in a narrow window"
