"""The pictures of the pages in `docs/pictures`, and of the scenes in the list of Talk, taken of the running app.

``python -m publish.pictures [NAME ...]``

A page that changes looks gets its picture again by this command; nothing in them is drawn by hand.
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect

from attenscope.viz.talk.editor import THUMBNAIL_SIZE, get_thumbnail_sheet_path
from attenscope.viz.talk.session import load_shipped_talk
from tests.browser.conftest import open_chromium, serving
from tests.browser.steps import LOADING, TRAFFIC, click, open_page, settle

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SCREEN: ViewportSize = {"width": 1280, "height": 860}
SENTENCE = "sentence=Where+did+you+buy+this+red+bicycle%3F"
ADDRESSES = {
    "explore": f"/?{SENTENCE}&layer=3&head=6&view=heatmap",
    "decode": f"/decode?{SENTENCE}&step=7",
    "why": f"/why?{SENTENCE}",
    "heads": "/heads",
    "training": f"/training?{SENTENCE}",
    "positions": "/positions",
    "masks": "/masks?part=gallery&fault=future-visible",
    "talk": "/talk",
}
"""Each page at the view that its picture shows."""
MOVING = "decode-moving"
MOVING_SIZE: ViewportSize = {"width": 1280, "height": 800}
STEP_TIME, LAST_TIME = 900, 2500
"""Milliseconds that a step, and the last one, stands still."""
PAINTING = 2000
"""Milliseconds after which what a page draws by itself is there."""
QUALITY = 70
THUMBNAILS = "thumbnails"
"""The scenes of the talk that ships, in its editor's list: light and dark, of a rehearsal."""
REHEARSED = """async () => {
    const opening = indexedDB.open("attenscope-scenes", 1);
    await new Promise((done) => (opening.onsuccess = done));
    const found = opening.result.transaction("files").objectStore("files").getAll();
    await new Promise((done) => (found.onsuccess = done));
    const inOrder = found.result.sort((one, other) => one.at - other.at);
    const asText = ({ bytes: { small } }) => new Promise((done) => {
        const reader = Object.assign(new FileReader(), { onload: () => done(reader.result.split(",")[1]) });
        reader.readAsDataURL(small);
    });
    return Promise.all(inOrder.map(asText));
}"""
"""The small pictures of a rehearsal, in the order in which they were drawn."""


def take(page: Page) -> Image.Image:
    """Return what the page shows, once its pictures are painted."""
    settle(page)
    page.wait_for_timeout(PAINTING)
    page.get_by_text("The scene is being drawn").wait_for(state="hidden", timeout=LOADING)  # On the page Talk.
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save_page_picture(page: Page, name: str) -> None:
    """Write the picture of one page."""
    open_page(page, ADDRESSES[name])
    take(page).save(FOLDER / f"{name}.webp", quality=QUALITY, method=6)


def list_steps(page: Page) -> Iterator[Image.Image]:
    """Yield a translation, step by step, as the page Decode plays it."""
    open_page(page, f"/decode?{SENTENCE}&step=1")
    player = page.locator(".decode-player")
    step = ""
    while step != (step := player.get_attribute("data-step") or ""):
        yield take(page)
        player.press("ArrowRight")
        settle(page)


def save_moving_picture(page: Page) -> None:
    """Write the steps of a translation as one picture that moves."""
    first, *others = list_steps(page)
    times = [STEP_TIME] * len(others) + [LAST_TIME]
    moving: dict[str, Any] = {"save_all": True, "append_images": others, "duration": times, "loop": 0}
    picture = io.BytesIO()
    first.save(picture, "webp", quality=QUALITY, method=4, **moving)
    (FOLDER / f"{MOVING}.webp").write_bytes(picture.getvalue())


def save_thumbnails(page: Page, scheme: str) -> None:
    """Write the small pictures of all scenes, below each other."""
    count = len(load_shipped_talk()[0].scenes)
    open_page(page, "/talk")
    click(page.get_by_role("button", name="Rehearse"))
    expect(page.locator(".ready")).to_contain_text(f"{count} of {count} ready", timeout=count * LOADING)
    width, height = THUMBNAIL_SIZE
    column = Image.new("RGB", (width, count * height))
    for at, picture in enumerate(page.evaluate(REHEARSED)):
        small = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
        column.paste(small.resize(THUMBNAIL_SIZE, Image.Resampling.LANCZOS), (0, at * height))
    column.save(get_thumbnail_sheet_path(scheme), quality=QUALITY, method=6)


def open_visitor(browser: Browser, url: str, size: ViewportSize, scheme: Literal["light", "dark"] = "light") -> Page:
    """Return a visitor of the app at `url`."""
    look: dict[str, Any] = {"reduced_motion": "reduce", "color_scheme": scheme, "locale": "en"}
    context = browser.new_context(base_url=url, viewport=size, **look)
    context.add_init_script(TRAFFIC)
    return context.new_page()


def main(names: Sequence[str]) -> None:
    """Take the pictures that are named, or all."""
    chosen = names or (*ADDRESSES, MOVING, THUMBNAILS)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url, open_chromium() as browser:
        schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark") if THUMBNAILS in chosen else ()
        for scheme in schemes:
            page = open_visitor(browser, url, SCREEN, scheme)
            save_thumbnails(page, scheme)
            page.context.close()
            print(f"talk.{scheme}.webp: {get_thumbnail_sheet_path(scheme).stat().st_size / 1000:.0f} kB")
        for name in (one for one in chosen if one != THUMBNAILS):
            page = open_visitor(browser, url, MOVING_SIZE if name == MOVING else SCREEN)
            save_moving_picture(page) if name == MOVING else save_page_picture(page, name)
            page.context.close()
            print(f"{name}.webp: {(FOLDER / f'{name}.webp').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
