"""Guess first: what the audience chooses is counted by keys and clicks, told with the picture, kept, saved, cleared."""

from __future__ import annotations

import csv
from html import escape
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Locator, Page, expect

from attenscope.viz.talk.file import format_talk
from attenscope.viz.talk.scenes import Scene, Talk
from tests.browser.modules import import_names
from tests.browser.steps import LOADING, click, download, open_file, open_page, open_talk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WORDS = Scene(
    "Which word comes third?",
    "positions",
    {"sentence": "He reads a book."},
    hide=("picture",),
    guess=("reads", "a", "book"),
)
FAULT = Scene(
    "Which one is broken?",
    "masks",
    {"part": "gallery", "fault": "future-visible"},
    hide=("verdict", "broken or fixed"),
    guess=("left", "right"),
)
CLICKED = Scene(
    "What is clicked?",
    "explore",
    {"sentence": "He reads a book.", "kind": "encoder", "layer": "1", "head": "2"},
    guess=("reads", "book", "2.5"),
)
CLICKS = Talk("Clicks", (CLICKED, FAULT), "everyday-en-de")
TALK = Talk("A vote", (WORDS, FAULT, Scene("The end", "positions", WORDS.view)), "everyday-en-de")
COUNTED = [["scene", "title", "choice", "guesses"]] + [
    [str(number), scene.title, choice, count]
    for number, scene, counts in ((1, WORDS, "030"), (2, FAULT, "10"))
    for choice, count in zip(scene.guess, counts, strict=True)
]


@pytest.fixture
def talk(page: Page, tmp_path: Path) -> Page:
    (tmp_path / "talk.toml").write_text(format_talk(TALK), encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, tmp_path / "talk.toml")
    return page


def counts(seen: Locator | Page) -> Locator:
    return seen.locator(".choice .count")


def table(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))


def vote(seen: Page, words: Locator) -> None:
    """Three guesses at the second word, one of them by a click, and one that is taken back."""
    for key in ("2", "2", "1", "Backspace", "9"):
        seen.keyboard.press(key)
    words.get_by_role("button", name="2 a", exact=True).click()
    expect(counts(words)).to_have_text(["", "", ""])
    expect(words.get_by_text("3 guesses")).to_be_visible()
    seen.keyboard.press("PageDown")
    expect(counts(words)).to_have_text(["0", "3", "0"])


def test_guesses_on_the_stage_are_counted_told_kept_saved_and_cleared(talk: Page, tmp_path: Path) -> None:
    stage = talk.locator("dialog.show")

    def on(scene: int) -> None:
        expect(stage).to_have_attribute("data-scene", str(scene), timeout=LOADING)
        expect(stage).to_have_attribute("data-ready", str(scene), timeout=LOADING)

    click(talk.get_by_role("button", name="Start the talk"))
    on(1)
    for key in ("3", "Enter"):  # A number after all: no guess is left of it.
        talk.keyboard.press(key)
    on(3)
    talk.keyboard.press("Home")
    on(1)
    vote(talk, stage)
    inside = talk.frame_locator("dialog.show iframe.seen")
    expect(inside.locator(".st-key-picture")).to_have_css("visibility", "visible")
    talk.keyboard.press("2")  # What was asked is told: digits go through the scenes again.
    on(2)
    plot = inside.locator(".js-plotly-plot")
    expect(plot.locator(".annotation-text").first).to_be_hidden()
    talk.keyboard.press("1")
    expect(stage.get_by_text("1 guess ·")).to_be_visible()
    talk.keyboard.press("PageDown")
    expect(plot.locator(".annotation-text").first).to_be_visible()
    talk.keyboard.press("End")
    on(3)
    expect(stage.locator(".ballot")).to_be_hidden()
    talk.keyboard.press("Escape")

    talk.reload()
    saved = download(talk.get_by_role("button", name="Save guesses"), tmp_path)
    assert table(saved) == COUNTED
    click(talk.get_by_role("button", name="Clear guesses"))
    expect(talk.get_by_role("button", name="Save guesses")).to_be_hidden()


def test_guesses_in_a_file_are_kept_until_they_are_cleared(talk: Page, disk: Page, tmp_path: Path) -> None:
    file = download(talk.get_by_role("button", name="One file"), tmp_path)
    open_file(disk, file)
    main = disk.locator("main")
    expect(disk.get_by_role("button", name="What the audience guessed, as CSV")).to_be_hidden()
    for key in ("3", "Enter"):
        disk.keyboard.press(key)
    expect(disk.locator("body")).to_have_attribute("data-slide", "3", timeout=LOADING)
    disk.keyboard.press("Home")
    expect(disk.locator("body")).to_have_attribute("data-slide", "1", timeout=LOADING)
    vote(disk, main)
    disk.keyboard.press("2")
    expect(disk.locator("body")).to_have_attribute("data-slide", "2", timeout=LOADING)
    disk.keyboard.press("1")
    expect(main.get_by_text("1 guess ·")).to_be_visible()

    disk.reload()
    expect(disk.locator("body")).to_have_attribute("data-ready", "yes", timeout=LOADING)
    expect(main.get_by_text("1 guess ·")).to_be_visible()
    with disk.expect_download() as handed:
        disk.get_by_role("button", name="What the audience guessed, as CSV").click()
    handed.value.save_as(tmp_path / "guesses.csv")
    assert table(tmp_path / "guesses.csv") == COUNTED
    disk.get_by_role("button", name="Forget what the audience guessed").click()
    expect(main.get_by_text("guess ·")).to_have_count(0)
    disk.keyboard.press("PageDown")
    expect(disk.locator(".ballot")).not_to_have_class("ballot told")


MIDDLE = """(element, [word, across]) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    if (word) {
        const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
        const from = text.data.indexOf(word);
        range.setStart(text, from);
        range.setEnd(text, from + word.length);
    }
    const box = (word ? range : element).getBoundingClientRect();
    const frame = window.frameElement;
    const [zoom, around] = frame ? [frame.currentCSSZoom, frame.getBoundingClientRect()] : [1, { left: 0, top: 0 }];
    const [x, y] = [box.left + across * box.width, (box.top + box.bottom) / 2];
    return [around.left + zoom * x, around.top + zoom * y];
}"""
"""Where an element, or a word in its text, stands on the screen: a share of its width across, halfway down.

Inside of a frame that is zoomed, the clicks that playwright makes go astray."""


def click_part(part: Locator, word: str = "", across: float = 0.5) -> None:
    expect(part).to_be_visible()
    part.page.mouse.click(*part.evaluate(MIDDLE, [word, across]))


def click_parts(inside: Locator | FrameLocator, told: Locator) -> None:
    """Words that are choices and one that is none, where they stand as text and at the picture; then a head."""
    sentence = inside.locator(".st-key-sentence p, [data-role=sentence]").filter(has_text="He reads a book.")
    click_part(sentence, "reads")
    expect(told.get_by_text("1 guess ·")).to_be_visible()
    click_part(sentence, "He")
    click_part(inside.locator(".heatmap text.column").filter(has_text="book"))
    expect(told.get_by_text("2 guesses ·")).to_be_visible()
    click_part(inside.locator(".heatmap text.row").filter(has_text="book"))
    expect(told.get_by_text("3 guesses ·")).to_be_visible()
    click_part(inside.get_by_role("button", name="Layer 2, head 5", exact=True))
    expect(told.get_by_text("4 guesses ·")).to_be_visible()
    shown = inside.locator(".tile[aria-pressed=true]")
    expect(shown).to_have_attribute("aria-label", "Layer 1, head 2")  # It was counted, not opened.


def click_sides(inside: Locator | FrameLocator, told: Locator) -> None:
    for number, across in enumerate((0.2, 0.8, 0.9), 1):
        click_part(inside.locator(".st-key-fault-pair, .slide [data-role=picture]"), "", across)
        expect(told.get_by_text(f"{number} guess")).to_be_visible()


def test_clicks_on_the_picture_are_counted_on_the_stage(talk: Page, tmp_path: Path) -> None:
    (tmp_path / "clicks.toml").write_text(format_talk(CLICKS), encoding="utf-8")
    open_talk(talk, tmp_path / "clicks.toml")
    click(talk.get_by_role("button", name="Start the talk"))
    stage, inside = talk.locator("dialog.show"), talk.frame_locator("dialog.show iframe.seen")
    expect(stage).to_have_attribute("data-ready", "1", timeout=LOADING)
    click_parts(inside, stage)
    talk.keyboard.press("PageDown")
    expect(counts(stage)).to_have_text(["1", "2", "1"])
    talk.keyboard.press("PageDown")
    expect(stage).to_have_attribute("data-ready", "2", timeout=LOADING)
    click_sides(inside, stage)
    talk.keyboard.press("PageDown")
    expect(counts(stage)).to_have_text(["1", "2"])


def test_clicks_on_the_picture_are_counted_in_a_file(talk: Page, disk: Page, tmp_path: Path) -> None:
    (tmp_path / "clicks.toml").write_text(format_talk(CLICKS), encoding="utf-8")
    open_talk(talk, tmp_path / "clicks.toml")
    file = download(talk.get_by_role("button", name="One file"), tmp_path)
    open_file(disk, file)
    main = disk.locator("main")
    click_parts(main, main)
    disk.keyboard.press("PageDown")
    expect(counts(main)).to_have_text(["1", "2", "1"])
    disk.keyboard.press("PageDown")
    expect(disk.locator("body")).to_have_attribute("data-slide", "2", timeout=LOADING)
    click_sides(main, main)
    disk.keyboard.press("PageDown")
    expect(counts(main)).to_have_text(["1", "2"])


HIT = """(element, scene) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    let hit = null;
    addEventListener("click", (event) => (hit = choiceAt(event, scene)), { once: true, capture: true });
    const place = { clientX: (left + right) / 2, clientY: (top + bottom) / 2 };
    element.dispatchEvent(new MouseEvent("click", { ...place, bubbles: true, view: window }));
    return hit;
}"""
"""The choice that a click in the middle of an element hits."""


def test_a_click_counts_for_the_word_of_the_sentence_that_it_hits_and_for_no_other(disk: Page) -> None:
    pieces = (
        ("Did", 0),
        (" you", 1),
        (" buy", 3),
        (" you", 3),
        ("r", 3),
        (" bi", 2),
        ("cycle", 2),
        ("?", 0),
        ("</s>", 0),
    )
    line = "".join(f"{' ' * piece.startswith(' ')}<b>{escape(piece.strip())}</b>" for piece, _ in pieces)
    disk.set_content(f"<p>{line}</p><p><b>you</b> <b>bicycle</b></p><p>Did you buy <i>your bicycle?</i></p>")
    import_names(disk, "web/src/talk/chosen.js", "choiceAt")
    scene = {"choices": ["you", "bicycle", "buy your"], "sentence": "Did you buy your bicycle?"}
    found = [piece.evaluate(HIT, scene) for piece in disk.locator("b, i").all()]
    assert found == [*(choice for _, choice in pieces), 0, 0, 2]  # The middle of the last one is its second word.
    chinese = {"choices": ["喜欢", "书"], "sentence": "我喜欢书。"}
    disk.set_content("<p><b>我</b><b>喜</b><b>欢</b><b>书</b><b>。</b></p>")
    assert [piece.evaluate(HIT, chinese) for piece in disk.locator("b").all()] == [0, 1, 1, 2, 0]
