"""The pictures of the pages in `docs/pictures`, taken of the running app: ``python -m publish.pictures [NAME ...]``.

A page that changes looks gets its picture again by this command; nothing in them is drawn by hand.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize

from tests.browser.conftest import open_chromium, serving
from tests.browser.steps import LOADING, TRAFFIC, open_page, settle

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SCREEN: ViewportSize = {"width": 1280, "height": 860}
SENTENCE = "sentence=Where+did+you+buy+this+red+bicycle%3F"
ADDRESSES = {
    "explore": f"/?{SENTENCE}&layer=3&head=3&view=heatmap",
    "decode": f"/decode?{SENTENCE}&step=6",
    "why": f"/why?{SENTENCE}",
    "heads": "/heads",
    "training": "/training?model=multi30k-en-de&sentence=Two+dogs+are+playing+with+a+ball+on+the+beach.",
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


def open_visitor(browser: Browser, url: str, size: ViewportSize) -> Page:
    """Return a visitor of the app at `url`."""
    context = browser.new_context(base_url=url, viewport=size, reduced_motion="reduce", locale="en")
    context.add_init_script(TRAFFIC)
    return context.new_page()


def main(names: Sequence[str]) -> None:
    """Take the pictures that are named, or all."""
    chosen = names or (*ADDRESSES, MOVING)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url, open_chromium() as browser:
        for name in chosen:
            page = open_visitor(browser, url, MOVING_SIZE if name == MOVING else SCREEN)
            save_moving_picture(page) if name == MOVING else save_page_picture(page, name)
            page.context.close()
            print(f"{name}.webp: {(FOLDER / f'{name}.webp').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
