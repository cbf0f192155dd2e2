"""The pictures of the scenes in a talk's editor: what the stage shows, drawn once, each for its own scene."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from viz.talk.scenes import Scene, Talk
from viz.talk.talk_file import write

from .steps import LOADING, click, enter, open_page, open_talk, settle

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
"""How many pages have been drawn inside of this one."""
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
    if (!(await indexedDB.databases()).some(({ name }) => name === "attenscope-pictures")) return [];
    return new Promise((done) => {
        const opening = indexedDB.open("attenscope-pictures", 1);
        opening.onsuccess = () => {
            const keys = opening.result.transaction("files").objectStore("files").getAllKeys();
            keys.onsuccess = () => (opening.result.close(), done(keys.result));
        };
    });
}"""
"""What the browser keeps pictures of."""
ALIKE = 0.9
"""The least correlation of a small picture with the same scene on the stage."""


@pytest.fixture
def editor(page: Page, tmp_path: Path) -> Page:
    """The page Talk with the scenes; on a projector, whose stage has the shape of the pictures."""
    (tmp_path / "talk.toml").write_text(write(Talk("Pictures", SCENES, "everyday-en-de")), encoding="utf-8")
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


def wait_for_all(page: Page) -> list[str]:
    wait_for(page, lambda: all(picture(page, number) for number in range(len(SCENES))))
    return [picture(page, number) for number in range(len(SCENES))]


def frames(page: Page) -> int:
    return int(page.evaluate("framesOpened"))


def test_a_picture_is_what_the_stage_shows(editor: Page) -> None:
    small = [editor.evaluate(GREY, address) for address in wait_for_all(editor)]
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
    asked = [bool(scene.guess) for scene in SCENES]
    assert (np.diag(alike)[np.logical_not(asked)] > ALIKE).all(), alike
    assert (alike.argmax(axis=1) == np.arange(len(SCENES))).all(), (
        alike
    )  # A scene that asks leaves room for the choices.


def test_a_change_of_a_scene_redraws_its_own_picture_alone(editor: Page) -> None:
    before = wait_for_all(editor)
    drawn = frames(editor)
    enter(editor.get_by_label("Title", exact=True), "Another title")
    click(editor.get_by_role("button", name="Move later", exact=True))
    wait_for(editor, lambda: picture(editor, 1) == before[0])
    assert picture(editor, 0) == before[1]
    click(editor.get_by_role("button", name="heads", exact=False).first)  # Out of the list of what is left out.
    settle(editor)
    wait_for(editor, lambda: picture(editor, 1) not in ("", before[0]))
    assert [picture(editor, number) for number in (0, 2, 3)] == before[1:]
    assert frames(editor) == drawn + 1


def test_pictures_are_kept_by_the_browser_and_by_it_alone(editor: Page, other: Page) -> None:
    wait_for_all(editor)
    editor.reload()
    settle(editor)
    wait_for_all(editor)
    assert frames(editor) == 0
    open_page(other, "/talk")
    wait_for(other, lambda: bool(other.evaluate(KEPT)))
    own = [key for key in editor.evaluate(KEPT) if "reads+a+book" in key]
    assert len(own) == sum("sentence" in scene.view for scene in SCENES)
    assert not any("reads+a+book" in key for key in other.evaluate(KEPT))
