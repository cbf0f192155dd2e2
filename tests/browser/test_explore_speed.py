"""How little a click on Explore sends, and that a tile is shown before the server has answered. No time is asserted."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from playwright.sync_api import Page, expect

from .steps import expect_head, open_page, settle, tile

HEAD_BYTES = 40_000
BYTES_A_WEIGHT = 1.5
SOCKETS = """(() => {
  const Real = window.WebSocket;
  window.WebSocket = class extends Real { constructor(...all) { super(...all); (window.sockets ??= []).push(this); } };
})()"""


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
    open_page(page, f"/?kind=encoder&sentence={quote('He reads a book. ' * 10)}")
    expect_head(page, 1, 1)
    tiles = page.locator(".st-key-overview .tile")
    side = tile(page, 1, 1).locator("canvas").evaluate("canvas => canvas.width")
    assert side > 40
    sent.clear()
    tile(page, 2, 3).click()
    expect_head(page, 2, 3)
    settle(page)
    assert size_of(sent, b"Encoder self-attention: all layers and heads") <= BYTES_A_WEIGHT * tiles.count() * side**2
    assert size_of(sent, b'"rowLabels":[') <= HEAD_BYTES


def test_a_tile_is_shown_before_the_server_answers(page: Page) -> None:
    page.add_init_script(SOCKETS)
    open_page(page)
    expect_head(page, 1, 1)
    shown = page.locator(".st-key-heatmap .heatmap")
    # The network is held back: what the click sends never arrives.
    page.evaluate("window.sockets.forEach((socket) => { socket.send = () => {}; })")
    before = page.locator(".st-key-heatmap canvas").evaluate("canvas => canvas.toDataURL()")
    tile(page, 2, 3).click()
    expect(shown).to_have_attribute("data-painted", "Cross-attention · layer 2, head 3 …")
    assert page.locator(".st-key-heatmap canvas").evaluate("canvas => canvas.toDataURL()") != before
    # A sketch from one byte a weight is not read out as numbers.
    page.locator(".st-key-heatmap .plot").hover()
    expect(page.locator(".st-key-heatmap .tip")).to_be_hidden()


def test_the_heatmap_by_keyboard(page: Page) -> None:
    open_page(page, "/?sentence=He+reads+a+book.&kind=encoder")
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
