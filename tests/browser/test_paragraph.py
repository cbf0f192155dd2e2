"""A text as running words: a line breaks between words, and in a word that is wider than a line."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.modules import import_names
from tests.scripts import COMPONENTS_FOLDER

WORDS = [["Er"], ["stell", "te"], ["das"], ["An", "ge", "bot"], ["nie", "der", "."], ["</s>"]]
LINES = """([words, width]) => {
  const tokens = words.flatMap((word) => word.map((text, at) => ({ text, space: at === 0 })));
  document.body.replaceChildren(window.paragraph({ title: "", tokens }).part);
  document.querySelector("p").style.width = `${width}px`;
  const ends = [...document.querySelectorAll("button")].map((button) => button.getBoundingClientRect());
  return { tops: ends.map((one) => one.top), right: Math.max(...ends.map((one) => one.right)) - ends[0].left };
}"""


@pytest.fixture
def text(disk: Page) -> Page:
    disk.goto("about:blank")
    import_names(disk, "web/src/shared/paragraph.js", "paragraph")
    disk.add_style_tag(content=(COMPONENTS_FOLDER / "shared" / "paragraph.css").read_text(encoding="utf-8"))
    return disk


@pytest.mark.sweep
def test_the_pieces_of_a_word_stay_in_one_line(text: Page) -> None:
    lines = set()
    for width in range(160, 700, 10):
        tops = iter(text.evaluate(LINES, [WORDS, width])["tops"])
        of_words = [{next(tops) for _ in word} for word in WORDS]
        assert all(len(one) == 1 for one in of_words), width
        lines.add(len(set.union(*of_words)))
    assert min(lines) == 1 < max(lines)


@pytest.mark.sweep
def test_a_word_wider_than_a_line_wraps(text: Page) -> None:
    found = text.evaluate(LINES, [[["<0xE2>"] * 40], 400])
    assert len(set(found["tops"])) > 2
    assert found["right"] <= 400
