"""How little a click on Explore sends, and what is shown before the server has answered. No time is asserted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

import numpy as np
from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import click, expect_head, open_menu, open_page, settle, tile

READY_BYTES = 60_000
"""Of a head in the three views that stand ready; messages may come in one frame, so they are not told apart here."""
BYTES_A_WEIGHT = 1.5


def messages(page: Page) -> list[bytes]:
    """All that the server sends from now on, as it comes."""
    found: list[bytes] = []

    def received(payload: str | bytes) -> None:
        found.append(payload.encode() if isinstance(payload, str) else payload)

    page.on("websocket", lambda socket: socket.on("framereceived", received))
    return found


def size_of(sent: Sequence[bytes], what: bytes) -> int:
    """The size of the largest message that holds `what`."""
    return max(len(one) for one in sent if what in one)


def test_what_another_head_sends(page: Page) -> None:
    sent = messages(page)
    open_page(page, f"/?kind=encoder&layer=1&sentence={quote('He reads a book. ' * 10)}")
    expect_head(page, 1, 1)
    tiles = page.locator(".st-key-overview .tile")
    side = tile(page, 1, 1).locator("canvas").evaluate("canvas => canvas.width")
    assert side > 40
    sent.clear()
    click(tile(page, 2, 3))
    expect_head(page, 2, 3)
    settle(page)
    assert size_of(sent, b"Encoder self-attention: all layers and heads") <= BYTES_A_WEIGHT * tiles.count() * side**2
    assert size_of(sent, b'"rowLabels":[') <= READY_BYTES


def unanswered(page: Page) -> None:
    """From now on nothing that a click sends arrives."""
    page.evaluate("window.sockets.forEach((socket) => { socket.send = () => {}; })")


def colours(shown: Locator) -> np.ndarray:
    """Of a canvas, down the middle of some columns, (columns, pixels, 4)."""
    column = "c.getContext('2d').getImageData((share * c.width) | 0, 0, 1, c.height).data"
    data = shown.evaluate(f"c => [0.06, 0.2, 0.34, 0.48, 0.62, 0.76, 0.9].map((share) => [...{column}])")
    return np.array(data).reshape(7, -1, 4)


def test_a_tile_is_shown_before_the_server_answers(page: Page) -> None:
    open_page(page)
    expect_head(page, 1, 1)
    shown = page.locator(".st-key-heatmap .heatmap")
    unanswered(page)
    before = page.locator(".st-key-heatmap canvas").evaluate("canvas => canvas.toDataURL()")
    click(tile(page, 2, 3))
    expect(shown).to_have_attribute("data-painted", "Cross-attention · layer 2, head 3 …")
    assert page.locator(".st-key-heatmap canvas").evaluate("canvas => canvas.toDataURL()") != before
    # A sketch from one byte a weight knows two decimals.
    page.locator(".st-key-heatmap .plot").hover()
    expect(page.locator(".st-key-heatmap .tip b")).to_have_text(re.compile(r"^\d\.\d\d$"))


def test_views_are_changed_before_the_server_answers(page: Page) -> None:
    open_page(page)
    expect_head(page, 1, 1)
    views = {"heatmap": ".st-key-heatmap .heatmap", "links": ".st-key-links svg"}
    unanswered(page)
    for chosen in ("links", "heatmap", "links"):
        click(page.locator(".st-key-view").get_by_role("radio", name=chosen))
        for name, shown in views.items():
            expect(page.locator(shown)).to_be_visible(visible=name == chosen)
    expect(page.locator(".st-key-links .lines path").first).to_be_attached()
    click(tile(page, 2, 3))
    expect(page.locator(views["links"])).to_have_attribute("data-painted", re.compile("layer 2, .* 2$"))


def test_scale_and_special_tokens_change_before_the_server_answers(page: Page) -> None:
    open_page(page, "/?layer=2&head=3&words=false&hide=false")
    expect_head(page, 2, 3)
    map_, tile_ = page.locator(".st-key-heatmap canvas"), tile(page, 2, 3).locator("canvas")
    names = page.locator(".st-key-heatmap .column")
    count = names.count()
    hide = open_menu(page, "settings").get_by_text("Hide special tokens")
    click(hide)
    expect(page.get_by_text("Special tokens are hidden")).to_be_visible()
    answered = colours(map_)
    click(hide)
    expect(page.get_by_text("Special tokens are hidden")).to_have_count(0)
    expect(names).to_have_count(count)
    unanswered(page)
    whole = colours(map_)
    click(hide)
    expect(names).to_have_count(count - 1)
    np.testing.assert_array_equal(colours(map_), answered)
    click(hide)
    expect(names).to_have_count(count)
    np.testing.assert_array_equal(colours(map_), whole)
    small = colours(tile_)
    click(page.get_by_text("linearly", exact=True))
    expect(page.locator(".st-key-heatmap svg").get_by_text("0.75", exact=True)).to_be_attached()  # On the linear ramp.
    assert (colours(map_) != whole).any()
    assert (colours(tile_) != small).any()


def test_the_heatmap_by_keyboard(page: Page) -> None:
    open_page(page, "/?layer=1&sentence=He+reads+a+book.&kind=encoder")
    expect_head(page, 1, 1)
    plot, tip = page.locator(".st-key-heatmap .plot"), page.locator(".st-key-heatmap .tip")
    plot.focus()
    page.keyboard.press("ArrowDown")
    expect(tip).to_contain_text("He → He")
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("He → read")
    page.keyboard.press("Enter")
    settle(page)
    expect(page.locator(".st-key-heatmap .pin")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
