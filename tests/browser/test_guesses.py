"""Guess first: what the audience chooses is counted by keys and clicks, told with the picture, kept, saved, cleared."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from viz.talk.scenes import Scene, Talk
from viz.talk.talk_file import write

from .steps import LOADING, click, download, open_file, open_page, open_talk

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
TALK = Talk("A vote", (WORDS, FAULT, Scene("The end", "positions", WORDS.view)), "everyday-en-de")
COUNTED = [["scene", "title", "choice", "guesses"]] + [
    [str(number), scene.title, choice, count]
    for number, scene, counts in ((1, WORDS, "030"), (2, FAULT, "10"))
    for choice, count in zip(scene.guess, counts, strict=True)
]


@pytest.fixture
def talk(page: Page, tmp_path: Path) -> Page:
    (tmp_path / "talk.toml").write_text(write(TALK), encoding="utf-8")
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
