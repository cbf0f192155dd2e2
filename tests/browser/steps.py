"""What a visitor does, in the words of the tests."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from playwright.sync_api import FloatRect, Locator, Page, expect

PATIENCE = 20_000
LONG = "The old woman who lives next door wears sunglasses in the garden every evening."
"""A sentence of 18 pieces."""
LOADING = 90_000
"""The first visitor waits until the model is loaded."""
TRAFFIC = """(() => {
  const Real = window.WebSocket;
  const task = new MessageChannel();
  const traffic = window.traffic = { asked: -Infinity, began: -Infinity };
  const begins = (data) => { // Whether a ForwardMsg has new_session, its field 4: every run sends it first.
    const bytes = new Uint8Array(data);
    let at = 0;
    const number = () => {
      let value = 0, scale = 1;
      for (;; scale *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * scale;
        if (!(byte & 128)) return value;
      }
    };
    while (at < bytes.length) {
      const tag = number();
      if (tag >> 3 === 4) return true;
      const length = number();
      if ((tag & 7) === 2) at += length;
    }
    return false;
  };
  window.sockets = [];
  window.WebSocket = class extends Real {
    constructor(...all) {
      super(...all);
      window.sockets.push(this);
      this.addEventListener("message", ({ data }) => {
        if (begins(data)) traffic.began = performance.now();
        traffic.wait();
      });
    }
    send(data) {
      if (data[0] === 0x5a) traffic.asked = performance.now(); // BackMsg.rerun_script, field 11
      super.send(data);
    }
  };
  traffic.wait = () => {
    clearTimeout(traffic.timer);
    traffic.quiet = false;
    traffic.timer = setTimeout(() => task.port2.postMessage(traffic.timer), 100);
  };
  task.port1.onmessage = ({ data }) => { traffic.quiet ||= data === traffic.timer; };
})()"""
"""When the page last asked its server to run the script, when a run last began, and whether it has been quiet since.

Quiet is told by a timer and then a task, not by frames: a busy browser draws frames first, while Streamlit asks in a
timer and draws in a task.
"""
RESTS = """(look) => {
  const [app, traffic] = [document.querySelector('[data-testid="stApp"]'), window.traffic];
  if (traffic.look !== look) { traffic.look = look; traffic.wait(); }
  const { arrived, submitting } = document.documentElement.dataset;
  if (arrived === undefined) return false; // It is out of sight, and takes no focus.
  if (submitting !== undefined) return false; // A run will be asked for.
  // A part of a page that is there no more is asked for in vain: no run answers.
  const answered = traffic.began > traffic.asked || performance.now() > traffic.asked + 3000;
  return app?.dataset.testScriptState === "notRunning" && answered && traffic.quiet;
}"""
"""The script has ended, what was asked has been run, and for 100 ms nothing new has been asked or answered."""
looks = itertools.count()


def settle(page: Page) -> None:
    """Wait until the page rests: a widget that a run is about to draw anew would lose a click."""
    page.wait_for_function(RESTS, arg=next(looks), timeout=LOADING)


def click(target: Locator) -> None:
    """Click once, on a page that rests."""
    settle(target.page)
    target.click()


def block(page: Page, kind: str, layer: int, within: str = "transformer") -> Locator:
    """The block of a layer of attention, by its full name, in the drawn Transformer."""
    return page.locator(f".st-key-{within}").get_by_role("button", name=f"{kind}, layer {layer}", exact=True)


def choose_kind(page: Page, kind: str) -> None:
    """Click on the name of a kind of attention in the drawn Transformer."""
    label = kind_label(page, kind)
    expect(label).to_have_count(1)  # While a page is drawn anew, what stood on it may be there twice.
    click(label)
    expect(label).to_have_attribute("aria-pressed", "true")


def kind_label(page: Page, kind: str) -> Locator:
    return page.locator(".st-key-transformer").get_by_role("button", name=kind, exact=True)


def open_page(page: Page, path: str = f"/?layer=1&sentence={LONG}") -> None:
    page.goto(path)
    settle(page)


def boxes_at_rest(page: Page, parts: Sequence[str | Locator]) -> list[FloatRect]:
    """Where the parts stand once nothing moves any more: the style sheet and the fonts come after the first paint."""
    found = [page.locator(part) if isinstance(part, str) else part for part in parts]
    seen: list[list[FloatRect | None]] = []
    for _ in range(50):
        seen.append([part.bounding_box() for part in found])
        if None not in seen[-1] and seen[-3:] == [seen[-1]] * 3:
            return [box for box in seen[-1] if box]
        page.wait_for_timeout(150)
    raise AssertionError(f"The page did not come to rest: {seen[-1]}")


def saved(page: Page, button: str, folder: Path) -> Path:
    """What a button of the menu Share hands out."""
    return download(open_menu(page, "share").get_by_role("button", name=button), folder)


def open_file(page: Page, file: Path) -> None:
    """Open a saved page from the disk."""
    page.goto(file.as_uri())
    expect(page.locator("body")).to_have_attribute("data-ready", "yes", timeout=LOADING)


def point(page: Page, target: Locator, across: float, down: float) -> None:
    """Move the mouse to a place inside the target, in shares of its width and height, once it stands still."""
    expect(target).to_be_visible()
    target.scroll_into_view_if_needed()
    (box,) = boxes_at_rest(page, [target])
    page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)


def open_menu(page: Page, key: str) -> Locator:
    """A folded menu by its key, opened if it is not open."""
    body = page.get_by_test_id("stPopoverBody")
    settle(page)
    if not body.count():
        page.locator(f".st-key-{key} button").first.click()
    expect(body).to_be_visible()
    return body


def close_menu(page: Page) -> None:
    """Close the menu that is open."""
    body = page.get_by_test_id("stPopoverBody")
    settle(page)
    expect(body).to_be_visible()
    page.keyboard.press("Escape")
    expect(body).to_have_count(0)


def add_to_talk(page: Page) -> None:
    """Add the view to the visitor's talk, from the menu Share."""
    click(open_menu(page, "share").get_by_role("button", name="Add to talk"))
    close_menu(page)


def choose_language(page: Page, language: str) -> None:
    """Choose the language by its code, in the settings."""
    open_menu(page, "settings").locator(".st-key-preferences select").first.select_option(language)
    expect(page.locator("html")).to_have_attribute("lang", re.compile(f"^{language}\\b"))
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)  # Under its new name the menu is closed.
    settle(page)


def choose(page: Page, control: str, option: str | re.Pattern[str]) -> None:
    """Choose from a list by its label."""
    box = page.get_by_role("combobox", name=control)
    settle(page)
    box.evaluate("box => box.scrollIntoView({ block: 'center' })")  # A list at the edge closes as the page scrolls.
    box.click()
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def save_talk(page: Page, folder: Path) -> Path:
    """Save the talk that is edited, on the page Talk."""
    click(page.get_by_test_id("stPopoverButton").filter(has_text="Open or save"))
    saved = download(page.get_by_test_id("stPopoverBody").get_by_role("button", name="Save", exact=True), folder)
    close_menu(page)
    return saved


def move_scene(page: Page, way: str, places: int = 1) -> None:
    """Move the scene that is edited "earlier" or "later", on the page Talk; the menu stays open until it is closed."""
    click(page.locator(".st-key-scene-moves").get_by_test_id("stPopoverButton"))
    for _ in range(places):
        page.get_by_role("button", name=f"Move {way}", exact=True).click()
        settle(page)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)


def open_talk(page: Page, file: Path) -> None:
    """Open a talk from a file, on the page Talk."""
    click(page.get_by_test_id("stPopoverButton").filter(has_text="Open"))
    body = page.get_by_test_id("stPopoverBody")
    body.locator('input[type="file"]').set_input_files(file)
    expect(body).to_have_count(0)
    settle(page)


def click_at(page: Page, target: Locator, across: float, down: float) -> None:
    settle(page)
    point(page, target, across, down)
    page.mouse.down()
    page.mouse.up()


def enter(box: Locator, text: str) -> None:
    """Type into a field, in place of what it holds, on a page that rests."""
    settle(box.page)
    box.fill(text)
    box.press("Enter")
    settle(box.page)


def type_sentence(page: Page, text: str) -> None:
    enter(page.get_by_label("Sentence", exact=True), text)


def download(button: Locator, folder: Path) -> Path:
    """The file that a button hands out."""
    settle(button.page)
    with button.page.expect_download(timeout=LOADING) as handed:
        button.click()
    path = folder / handed.value.suggested_filename
    handed.value.save_as(path)
    return path


def linked(page: Page, what: str) -> None:
    """The address comes to hold this."""
    page.wait_for_url(re.compile(re.escape(what)))


def caption(page: Page, words: str | re.Pattern[str]) -> Locator:
    """The captions that hold these words."""
    return page.locator('[data-testid="stCaptionContainer"]').filter(has_text=words)


def choose_page_view(page: Page, name: str | re.Pattern[str]) -> None:
    """Choose a view of a page, which may be folded away."""
    beside = page.get_by_role("radio", name=name, exact=True)
    settle(page)
    if beside.count():
        beside.click()
    else:
        page.locator("[class*='st-key-more-than-'] button").first.click()
        page.locator(".st-key-more-views").get_by_role("button", name=name, exact=True).click()
    settle(page)


# Explore.


def choose_view(page: Page, name: str) -> None:
    """Choose a view, of those side by side or from the menu of more."""
    settle(page)
    shown = page.locator(".st-key-view").get_by_role("radio", name=name)
    if shown.count():
        click(shown)
    else:
        click(page.get_by_role("button", name="More views"))
        click(page.get_by_test_id("stPopoverBody").get_by_role("button", name=name, exact=True))
    settle(page)


def try_something(page: Page, act: Callable[[Locator], None]) -> None:
    """Do something in the menu of what can be tried, and close it."""
    act(open_menu(page, "trials"))
    close_menu(page)
    settle(page)


def compare(page: Page) -> None:
    """Switch the comparison of the chosen view on or off."""
    try_something(page, lambda menu: click(menu.get_by_text("Compare", exact=True)))


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


# Decode.

DECODE = "/decode?sentence=My+sister+bought+a+new+car+yesterday."


def open_decode(page: Page, query: str = "") -> None:
    """The page at rest, at its first step unless `query` says another."""
    open_page(page, DECODE + query + ("" if "step=" in query else "&step=1"))
    expect(page.get_by_text("The attention weights agree")).to_be_visible()


def player(page: Page) -> Locator:
    return page.locator(".decode-player")


def step_count(page: Page) -> int:
    return int(page.get_by_label("Decoding step").get_attribute("max") or 0) + 1


def at_step(page: Page, step: int) -> None:
    """The player shows this step, counted from 1."""
    expect(player(page)).to_have_attribute("data-step", str(step))


def written(page: Page) -> list[str]:
    """The tokens of the translation."""
    return player(page).locator(".target .piece").all_text_contents()
