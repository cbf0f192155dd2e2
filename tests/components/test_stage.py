"""Scenes on the whole screen, their rehearsal and their pictures in the editor, of a page in place of the app."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.components.bare_page import ADDRESS, BarePage

APP = """<!doctype html><html lang="en"><meta charset="utf-8"><title>App</title>
<style>body {{ margin: 0; background: #fbfbfa; }} section {{ height: 100vh; overflow: auto; }}
  .st-key-picture {{ height: var(--picture, 350px); background: #4b3fd6; border: 2px solid; }}</style>
<div data-testid="stApp" data-test-script-state="notRunning" data-test-connection-state="CONNECTED"
  style="background: #fbfbfa"><section data-testid="stMain">
<div data-testid="stMainBlockContainer" style="padding: 8px">
<div data-testid="stElementContainer" class="st-key-sentence"><p style="color: #1c1b22">one two three</p></div>
<div data-testid="stElementContainer" class="st-key-translation"><p>eins <u>zwei</u> drei</p></div>
<div data-testid="stElementContainer" class="st-key-picture"><canvas width="4" height="4"></canvas>
<select><option>first<option>second</select><textarea></textarea></div>
<div data-testid="stElementContainer"><table><tbody>{rows}</tbody></table></div></div></section></div>
<script>
  const show = () => {{
    const query = new URLSearchParams(location.search);
    document.documentElement.style.setProperty("--presenting", query.get("present"));
    document.querySelector("u").textContent = query.get("word");
  }};
  addEventListener("popstate", show);
  show();
  document.querySelector("select").value = "second";
  document.querySelector("textarea").value = "typed";
  document.querySelector("canvas").getContext("2d").fillRect(0, 0, 4, 4);
</script>"""
ROWS = "".join(f"<tr><th>row {at}</th><td>{at}</td></tr>" for at in range(40))


def scene(word: str, **more: object) -> dict[str, Any]:
    lists: dict[str, Any] = {"hide": [], "omit": [], "guess": [], "choices": []}
    words = {"title": f"On {word}", "notes": f"Say {word}.", "point": f"Look at {word}", "sentence": "one two three"}
    return {"address": f"/app?word={word}", **words, **lists, "live": False, "minutes": 0} | more


SCENES = [
    scene("zwei"),
    scene("drei", hide=["translation"]),
    scene("vier", guess=["one", "two"], choices=["one", "two"]),
]


@pytest.fixture
def stage(bare: BarePage) -> BarePage:
    """A bare page in which a page like that of the app stands, and from which it can be loaded."""
    html = APP.format(rows=ROWS)
    bare.page.route(f"{ADDRESS}app?**", lambda route: route.fulfill(body=html, content_type="text/html"))
    bare.page.set_viewport_size({"width": 1280, "height": 720})
    at_rest = '<div data-testid="stApp" data-test-script-state="notRunning" style="height: 10px"></div>'
    bare.page.evaluate("(html) => document.body.insertAdjacentHTML('beforeend', html)", at_rest)
    return bare


def mount(stage: BarePage, scenes: list[dict[str, Any]] | None = None, **more: object) -> Locator:
    data = {"title": "A talk", "scenes": SCENES if scenes is None else scenes, "at": 1, "own": False}
    return stage.mount("presenter", data | {"server": "a", "scheme": "light", "script": "chart.js"} | more, "show")


FIRST_LETTER = """(frame) => {
  const [box, page] = [frame.getBoundingClientRect(), frame.contentDocument];
  const letters = page.createRange();
  letters.setStart(page.querySelector("p").firstChild, 0);
  letters.setEnd(page.querySelector("p").firstChild, 1);
  const { x, y, width, height } = letters.getBoundingClientRect();
  const zoom = frame.currentCSSZoom;
  return [box.x + (x + width / 2) * zoom, box.y + (y + height / 2) * zoom];
}"""


def find_shown_scene(page: Page) -> Locator:
    """What is written in the scene that is seen."""
    return page.frame_locator("iframe.seen").locator(".st-key-translation p")


def test_keys_go_through_the_scenes_of_a_talk(stage: BarePage) -> None:
    page = stage.page
    view = mount(stage)
    view.get_by_text("Start the talk").click()
    dialog = view.locator("dialog")
    expect(dialog).to_have_attribute("data-scene", "1")
    expect(find_shown_scene(page)).to_have_text("eins zwei drei")
    expect(dialog.locator(".title")).to_have_text("On zwei")
    expect(dialog.locator(".place")).to_have_text("1 / 3")
    left = page.frame_locator("iframe.seen").locator(".more")
    expect(left).to_contain_text("more")  # Of forty rows not all have room.
    expect(dialog).to_have_attribute("data-ready", "1")
    page.keyboard.press("PageDown")
    expect(dialog).to_have_attribute("data-scene", "2")
    expect(dialog).to_have_attribute("data-revealed", "false")
    expect(find_shown_scene(page)).to_have_css("visibility", "hidden")
    page.keyboard.press("PageDown")
    expect(find_shown_scene(page)).to_have_css("visibility", "visible")
    assert page.url.endswith("present=1&scene=2")
    page.keyboard.press("c")
    expect(dialog).to_have_class("show contrast")
    with page.expect_popup() as popup:
        page.keyboard.press("n")
    expect(popup.value.locator(".notes")).to_have_text("Say drei.")
    page.keyboard.press("3")
    expect(dialog.locator(".place")).to_have_text("→ 3")
    page.keyboard.press("Enter")
    expect(dialog).to_have_attribute("data-scene", "3")
    expect(popup.value.locator(".where")).to_have_text("Scene 3 of 3 · something is still hidden")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert stage.pop_sent_values() == [["left", {"scene": 2}]]
    assert "present" not in page.url


def test_an_audience_guesses_in_a_scene_that_the_address_asks_for(stage: BarePage) -> None:
    page = stage.page
    page.evaluate("() => history.replaceState(null, '', '?present=1&scene=3')")
    view = mount(stage)
    dialog = view.locator("dialog")
    expect(dialog).to_have_attribute("data-scene", "3")
    page.keyboard.press("2")
    expect(dialog.locator(".place")).to_have_text("1 guess · 3 / 3")
    page.mouse.click(*page.locator("iframe.seen").evaluate(FIRST_LETTER))
    expect(dialog.locator(".place")).to_have_text("2 guesses · 3 / 3")
    page.keyboard.press("Backspace")
    expect(dialog.locator(".place")).to_have_text("1 guess · 3 / 3")
    page.keyboard.press("ArrowRight")
    expect(dialog.locator(".choice .count")).to_have_text(["0", "1"])
    page.keyboard.press("Home")
    expect(dialog).to_have_attribute("data-scene", "1")
    page.keyboard.press("Escape")
    expect(view.get_by_text("Save guesses")).to_be_visible()
    view.get_by_text("Clear guesses").click()
    expect(view.get_by_text("Save guesses")).to_be_hidden()


def test_a_page_is_presented_alone_and_left_by_escape(stage: BarePage) -> None:
    stage.page.evaluate("() => history.replaceState(null, '', '/app?word=allein')")
    view = stage.mount("presenter", {"scenes": None, "file": "a.npz"}, "show")
    stage.page.keyboard.press("p")
    expect(view.locator("dialog")).to_have_attribute("data-scene", "1")
    expect(find_shown_scene(stage.page)).to_have_text("eins allein drei")
    assert "kept=a.npz" in (view.locator("iframe.seen").get_attribute("src") or "")
    expect(view.locator(".foot")).to_be_hidden()
    stage.page.keyboard.press("Escape")
    expect(view.locator("dialog")).to_have_count(0)
    expect(stage.page.locator("html")).to_have_class("presented")
    assert stage.pop_sent_values() == []


def test_rehearsed_scenes_are_kept_and_shown_before_the_app_answers(stage: BarePage) -> None:
    page, scenes = stage.page, SCENES[:2]
    view = mount(stage, scenes)
    view.get_by_text("Rehearse").click()
    expect(view.locator(".ready")).to_have_text("2 of 2 ready, works without a network")
    expect(view.get_by_text("Rehearse")).to_be_hidden()
    page.unroute(f"{ADDRESS}app?**")
    page.route(f"{ADDRESS}app?**", lambda route: route.fulfill(body="", content_type="text/html"))  # No app.
    view.get_by_text("Start here").click()
    dialog = view.locator("dialog")
    expect(dialog).to_have_attribute("data-scene", "2")
    expect(dialog).to_have_attribute("data-from", "kept")
    expect(find_shown_scene(page)).to_have_text("eins drei drei")
    page.keyboard.press("PageDown")
    expect(find_shown_scene(page)).to_have_css("visibility", "visible")
    kept = page.frame_locator("iframe.seen")
    expect(kept.locator("textarea")).to_have_value("typed")
    expect(kept.locator("select")).to_have_value("second")
    painted = kept.locator("canvas").evaluate("(one) => [...one.getContext('2d').getImageData(1, 1, 1, 1).data]")
    assert painted == [0, 0, 0, 255]
    page.keyboard.press("Home")
    expect(dialog).to_have_attribute("data-scene", "1")
    page.keyboard.press("Escape")


def test_a_rehearsal_ends_with_the_reason_where_the_browser_keeps_nothing(stage: BarePage) -> None:
    stage.page.evaluate(
        "void (IDBObjectStore.prototype.put = () => { throw new DOMException('', 'QuotaExceededError'); })"
    )
    view = mount(stage, SCENES[:2])
    view.get_by_text("Rehearse").click()
    expect(view.locator(".ready")).to_have_text(re.compile("0 of 2 ready.* its storage is full, or closed to pages"))
    expect(view.get_by_text("Rehearse")).to_be_visible()


def test_a_part_of_the_edited_scene_is_hidden_and_left_out_by_clicks_on_its_picture(stage: BarePage) -> None:
    page = stage.page
    page.evaluate("""() => document.body.insertAdjacentHTML("beforeend", `<div class="st-key-scenes">
      <label data-testid="stRadioOption"><input type="radio" value="0"><div>first</div></label></div>`)""")
    mount(stage, SCENES[:1])
    page.locator(".st-key-show").get_by_text("Rehearse").click()
    expect(page.locator(".ready")).to_contain_text("1 of 1 ready")
    parts = {"sentence": "the sentence", "translation": "the translation", "tree": "the tree"}
    data = {"list": "scenes", "scenes": SCENES[:1], "at": 0, "server": "a", "scheme": "light", "parts": parts}
    view = stage.mount("scene_pictures", data, "pictures")
    part = view.get_by_title("the translation: ")
    expect(part).to_have_attribute("title", "the translation: shown")
    expect(view.locator(".misfit")).to_contain_text("rows of lists have no room")
    picture = view.locator(".picture").bounding_box()
    place = part.bounding_box()
    assert picture
    assert place
    assert place["y"] < picture["y"] + picture["height"] / 3, "it stands near the top of the scene"
    for state in ("hidden until the next key", "left out", "shown"):
        part.click()
        expect(part).to_have_attribute("title", f"the translation: {state}")
    told = [(lists["hide"], lists["omit"]) for _, lists in stage.pop_sent_values()]
    assert told == [(["translation"], []), ([], ["translation"]), ([], [])]
    row = page.locator(".st-key-scenes label > div")
    assert "blob:" in row.evaluate("(one) => getComputedStyle(one, '::before').backgroundImage")
    assert row.evaluate("(one) => getComputedStyle(one, '::after').content") == '"!"'
    stage.mount("scene_pictures", data | {"scenes": [None]}, "pictures")
    expect(view.locator(".picture")).to_be_hidden()
