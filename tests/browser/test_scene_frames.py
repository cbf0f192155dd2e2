"""A frame of the stage that goes on to another scene shows what a new page shows."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LOADING

pytestmark = pytest.mark.timeout(300)
WAY = (18, 19, 9, 7, 13, 2)
"""Greedy and beam search of one sentence, of which a visitor's page Decode would show both; places; a mask; a table."""
SEEN = """(root) => {
    const texts = [];
    const read = (node) => {
        for (const one of node.childNodes) {
            if (one.nodeType === Node.TEXT_NODE && one.data.trim()) texts.push(one.data.trim());
            if (one.nodeType !== Node.ELEMENT_NODE || one.localName === "style" || !one.checkVisibility()) continue;
            if (one.shadowRoot) read(one.shadowRoot);
            read(one);
        }
    };
    read(root);
    return [...texts, root.ownerDocument.documentElement.style.getPropertyValue("--picture")];
}"""


def shown_scene(page: Page, number: int) -> tuple[int, list[str]]:
    """How many scenes the frame of a scene has shown, and the words that are seen in it."""
    expect(page.locator(f'dialog.show[data-scene="{number}"][data-from="live"]')).to_be_visible(timeout=LOADING)
    frame = page.locator("dialog.show iframe.seen").element_handle().content_frame()
    assert frame is not None
    turn = int(parse_qs(urlsplit(frame.url).query)["present"][0])
    return turn, frame.locator('[data-testid="stMain"]').evaluate(SEEN)


@pytest.mark.slow
def test_a_frame_that_has_shown_other_scenes_shows_one_as_a_new_page_does(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"/talk?present=1&scene={WAY[0]}")
    on_the_way = {}
    for number in WAY:
        page.keyboard.type(str(number))
        page.keyboard.press("Enter")
        on_the_way[number] = shown_scene(page, number)
        expect(page.locator("dialog.show")).to_have_attribute("data-ready", str(number), timeout=LOADING)
    assert max(turn for turn, _ in on_the_way.values()) > len(WAY) // 2  # Few frames have shown all of them.
    for number in WAY:
        page.goto(f"/talk?present=1&scene={number}")
        turn, words = shown_scene(page, number)
        assert turn == 1
        assert on_the_way[number][1] == words
