"""What a visitor does, in the words of the tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from playwright.sync_api import FloatRect, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
PATIENCE = 20_000
LOADING = 90_000
"""The first visitor waits until the model is loaded."""


def settle(page: Page) -> None:
    """Wait until the page's script has run to its end."""
    page.locator(SETTLED).wait_for(timeout=LOADING)


def open_page(page: Page, path: str = "/") -> None:
    page.goto(path)
    settle(page)


def boxes_at_rest(page: Page, parts: Sequence[str | Locator]) -> list[FloatRect | None]:
    """Where the parts stand once nothing moves any more: the style sheet and the fonts come after the first paint."""
    found = [page.locator(part) if isinstance(part, str) else part for part in parts]
    seen: list[list[FloatRect | None]] = []
    for _ in range(50):
        seen.append([part.bounding_box() for part in found])
        if len(seen) > 2 and seen[-3:] == [seen[-1]] * 3:
            return seen[-1]
        page.wait_for_timeout(150)
    raise AssertionError(f"The page did not come to rest: {seen[-1]}")


def point(page: Page, target: Locator, across: float, down: float) -> None:
    """Move the mouse to a place inside the target, in shares of its width and height, once it stands still."""
    expect(target).to_be_visible()
    target.scroll_into_view_if_needed()
    (box,) = boxes_at_rest(page, [target])
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)


def open_menu(page: Page, key: str) -> Locator:
    """Open a folded menu by its key; a click that falls into a rerun is lost, and made again."""
    button, body = page.locator(f".st-key-{key} button").first, page.get_by_test_id("stPopoverBody")
    for tried in range(3):
        if not body.count():
            # As long as a person presses: on a busy machine a shorter click closes it again. A key never does.
            button.press("Enter") if tried else button.click(delay=80)
        with suppress(PlaywrightTimeoutError):
            body.wait_for(timeout=5_000)
            return body
    raise AssertionError(f"The menu {key} did not open.")


def choose(page: Page, control: str, option: str | re.Pattern[str]) -> None:
    """Choose from a list by its label; a list that a rerun has closed is opened again."""
    box, listed = page.get_by_role("combobox", name=control), page.get_by_role("option", name=option, exact=True)
    for _ in range(3):
        settle(page)
        box.evaluate("box => box.scrollIntoView({ block: 'center' })")  # A list at the edge closes as the page scrolls.
        box.click()
        with suppress(PlaywrightTimeoutError):
            listed.click(timeout=5_000)
            return settle(page)
    raise AssertionError(f"There was no {option} to choose as {control}.")


def click_at(page: Page, target: Locator, across: float, down: float) -> None:
    point(page, target, across, down)
    page.mouse.down()
    page.mouse.up()


def type_sentence(page: Page, text: str) -> None:
    box = page.get_by_label("Sentence", exact=True)
    box.fill(text)
    box.press("Enter")
    settle(page)


def tile(page: Page, layer: int, head: int) -> Locator:
    """One head in the overview, counted from 1."""
    return page.get_by_role("button", name=f"Layer {layer}, head {head}", exact=True)


def expect_title(page: Page, text: str) -> None:
    """The heatmap's own title, naming kind, layer and head, over the weights themselves, not over a first sketch."""
    said = re.compile(rf"{re.escape(text)}(\b[^…]*)?$")
    expect(page.locator(".st-key-heatmap .heatmap")).to_have_attribute("data-painted", said)


def expect_head(page: Page, layer: int, head: int) -> None:
    """The heatmap shows this head, the overview marks it, and the picture is painted."""
    expect_title(page, f"layer {layer}, head {head}")
    expect(tile(page, layer, head)).to_have_count(1)
    expect(tile(page, layer, head)).to_have_attribute("aria-pressed", "true")


def picture(page: Page) -> str:
    """The heatmap's pixels, as the data address of its image."""
    return str(page.locator(".st-key-heatmap canvas").evaluate("canvas => canvas.toDataURL()"))
