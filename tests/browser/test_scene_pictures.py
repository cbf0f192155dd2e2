"""The pictures of the scenes in a talk's editor: what the stage shows, each drawn once, by a rehearsal."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attenscope.viz.talk.file import format_talk, parse_talk
from attenscope.viz.talk.scenes import Scene, Talk
from tests.browser.steps import LOADING, click, enter, move_scene, open_page, open_talk, save_talk, settle

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SENTENCE = {"sentence": "He reads a book."}
SCENES = (
    Scene("A heatmap", "explore", {**SENTENCE, "layer": "2", "head": "3"}, omit=("heads",)),
    Scene("All heads", "explore", {**SENTENCE, "layer": "1", "head": "5"}, hide=("picture",)),
    Scene("A fault", "masks", {"part": "gallery", "fault": "future-visible"}, guess=("left", "right")),
    Scene("A table", "positions", SENTENCE),
)
COUNT_FRAMES = """
    window.framesOpened = 0;
    const opened = ({ addedNodes }) => [...addedNodes].filter((node) => node.tagName === "IFRAME").length;
    const count = (changes) => changes.forEach((change) => (framesOpened += opened(change)));
    new MutationObserver(count).observe(document, { childList: true, subtree: true });
"""
"""How often the scene that is edited has been drawn: a rehearsal has frames of its own, out of sight of this."""
GREY = """async (address) => {
    const image = new Image();
    image.src = address;
    await image.decode();
    const pen = Object.assign(document.createElement("canvas"), { width: 96, height: 46 }).getContext("2d");
    pen.imageSmoothingQuality = "high";
    pen.drawImage(image, 0, 0, 96, 46);
    return [...pen.getImageData(0, 0, 96, 46).data].filter((_, i) => i % 4 === 1);
}"""
"""A picture's green, 96 by 46."""
KEPT = """async () => {
    if (!(await indexedDB.databases()).some(({ name }) => name === "attenscope-scenes")) return [];
    return new Promise((done) => {
        const opening = indexedDB.open("attenscope-scenes", 1);
        opening.onsuccess = () => {
            const keys = opening.result.transaction("files").objectStore("files").getAllKeys();
            keys.onsuccess = () => (opening.result.close(), done(keys.result));
        };
    });
}"""
"""What was rehearsed in this browser."""
ALIKE = 0.9
"""The least correlation of a small picture with the same scene on the stage."""


@pytest.fixture
def editor(page: Page, tmp_path: Path) -> Page:
    """The page Talk with the scenes; on a projector, whose stage has the shape of the pictures."""
    (tmp_path / "talk.toml").write_text(format_talk(Talk("Pictures", SCENES, "everyday-en-de")), encoding="utf-8")
    page.add_init_script(COUNT_FRAMES)
    page.set_viewport_size({"width": 1280, "height": 720})
    open_page(page, "/talk")
    open_talk(page, tmp_path / "talk.toml")
    return page


def row(page: Page, number: int) -> Locator:
    return page.locator(".st-key-scene-choice [data-testid=stRadioOption]").nth(number)


def picture(page: Page, number: int) -> str:
    """The address of the picture of a scene, from 0; "" while there is none."""
    drawn = "row => getComputedStyle(row.querySelector(':scope > div'), '::before').backgroundImage"
    found = re.search(r"blob:[^\")]+", str(row(page, number).evaluate(drawn)))
    return found[0] if found else ""


def wait_for(page: Page, is_so: Callable[[], bool]) -> None:
    for _ in range(LOADING // 100):
        if is_so():
            return
        page.wait_for_timeout(100)
    raise AssertionError("It did not come to be so.")


def rehearse_all(page: Page) -> list[str]:
    """Rehearse what is not ready yet; the pictures of all scenes."""
    expect(page.locator(".picture.there")).to_be_visible(timeout=LOADING)  # Of the scene that is edited.
    if page.get_by_role("button", name="Rehearse").is_visible():
        click(page.get_by_role("button", name="Rehearse"))
    expect(page.locator(".ready")).to_have_text(
        f"{len(SCENES)} of {len(SCENES)} ready, works without a network", timeout=LOADING
    )
    wait_for(page, lambda: all(picture(page, number) for number in range(len(SCENES))))
    return [picture(page, number) for number in range(len(SCENES))]


def frames(page: Page) -> int:
    return int(page.evaluate("framesOpened"))


def test_a_picture_is_what_the_stage_shows(editor: Page) -> None:
    small = [editor.evaluate(GREY, address) for address in rehearse_all(editor)]
    click(editor.get_by_role("button", name="Start the talk"))
    stage, shown = editor.locator("dialog.show"), []
    for number in range(1, len(SCENES) + 1):
        expect(stage).to_have_attribute("data-scene", str(number), timeout=LOADING)
        expect(stage).to_have_attribute("data-ready", str(number), timeout=LOADING)
        if SCENES[number - 1].hide or SCENES[number - 1].guess:
            editor.keyboard.press("PageDown")
            expect(stage).to_have_attribute("data-revealed", "true")
        taken = base64.b64encode(stage.locator("iframe.seen").screenshot()).decode()
        shown.append(editor.evaluate(GREY, f"data:image/png;base64,{taken}"))
        editor.keyboard.press("PageDown")
    alike = np.corrcoef(np.array(small), np.array(shown))[: len(SCENES), len(SCENES) :]
    assert (np.diag(alike) > ALIKE).all(), alike
    assert (alike.argmax(axis=1) == np.arange(len(SCENES))).all(), alike


def test_a_change_of_a_scene_redraws_its_own_picture_alone(editor: Page) -> None:
    before = rehearse_all(editor)
    drawn, kept = frames(editor), len(editor.evaluate(KEPT))
    enter(editor.get_by_label("Title", exact=True), "Another title")
    move_scene(editor, "later")
    wait_for(editor, lambda: picture(editor, 1) == before[0])
    assert picture(editor, 0) == before[1]
    click(part(editor, "translation", "shown"))
    click(part(editor, "translation", "hidden until the next key"))
    wait_for(editor, lambda: picture(editor, 1) == "")
    assert rehearse_all(editor)[1] not in before
    assert [picture(editor, number) for number in (0, 2, 3)] == before[1:]
    assert frames(editor) == drawn
    assert len(editor.evaluate(KEPT)) == kept + 1


def test_pictures_are_kept_by_the_browser_and_by_it_alone(editor: Page, other: Page) -> None:
    rehearse_all(editor)
    editor.reload()
    settle(editor)
    rehearse_all(editor)
    assert frames(editor) == 0
    own = [key for key in editor.evaluate(KEPT) if "reads+a+book" in key]
    assert len(own) == sum("sentence" in scene.view for scene in SCENES)
    open_page(other, "/talk")
    assert not other.evaluate(KEPT)


def part(page: Page, name: str, state: str) -> Locator:
    return page.get_by_role("button", name=f"{name}: {state}", exact=True)


def expect_chosen(page: Page, label: str, name: str) -> None:
    """A list of parts holds this one alone."""
    field = page.get_by_test_id("stMultiSelect").filter(has=page.get_by_role("combobox", name=label))
    expect(field.get_by_role("button", name="Remove")).to_have_count(1)
    expect(field.get_by_role("button", name=f"Remove {name}", exact=True)).to_be_visible()


def test_parts_are_hidden_and_left_out_by_clicks_on_the_picture(editor: Page, tmp_path: Path) -> None:
    parts = editor.locator(".picture .part:not([aria-hidden])")
    expect(part(editor, "heads", "left out")).to_be_visible(timeout=LOADING)
    names = ["sentence: shown", "translation: shown", "heads: left out", "picture: shown"]
    assert [one.get_attribute("aria-label") for one in parts.all()] == names
    click(part(editor, "heads", "left out"))
    click(part(editor, "translation", "shown"))
    click(part(editor, "translation", "hidden until the next key"))
    click(part(editor, "sentence", "shown"))
    expect(part(editor, "translation", "left out")).to_be_visible()
    settle(editor)
    expect_chosen(editor, "Left out", "translation")
    expect_chosen(editor, "Hidden until the next key", "sentence")
    saved = save_talk(editor, tmp_path)
    scene = parse_talk(saved.read_text(encoding="utf-8"))[0].scenes[0]
    assert (scene.hide, scene.omit) == (("sentence",), ("translation",))

    click(editor.get_by_role("button", name="Start the talk"))
    inside = editor.frame_locator("dialog.show iframe.seen")
    expect(inside.locator(".st-key-overview")).to_be_visible(timeout=LOADING)
    expect(inside.locator(".st-key-translation")).to_be_hidden()
    expect(editor.locator("dialog.show")).to_have_attribute("data-revealed", "false")


def test_only_parts_that_the_scene_has_are_clicked(editor: Page) -> None:
    click(row(editor, 2))
    names = editor.locator(".picture.there .part:not([aria-hidden]), .words .word:visible")
    expect(names).to_have_count(3, timeout=LOADING)
    expected = ["picture: shown", "verdict: shown", "broken or fixed: shown"]
    assert [one.get_attribute("aria-label") for one in names.all()] == expected
    part(editor, "broken or fixed", "shown").press("Enter")
    expect_chosen(editor, "Hidden until the next key", "broken or fixed")
    expect(part(editor, "broken or fixed", "hidden until the next key")).to_be_visible()
