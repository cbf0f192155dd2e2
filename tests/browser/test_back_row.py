"""What the back row reads: the smallest type of every view as a scene, on the stage of the app and in a talk's file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from attenscope.viz.talk.file import format_talk
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.talk.session import load_shipped_talk
from tests.browser.steps import LOADING, click, open_file, open_page, open_talk
from tests.browser.views import SENTENCE, VIEWS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MEASURE = (Path(__file__).parent / "back_row.js").read_text(encoding="utf-8")
SHOTS = os.environ.get("SHOTS")
"""A folder for a picture of each scene of the talk that ships, to be looked at."""
SIZES = [(1920, 1080), (1280, 720)]
LEAST = 1 / 45
"""Of the screen's height."""
PICTURE = 0.6
"""Of the screen, that the picture takes at least: the box around all of it, without title, sentence and translation."""
LOWEST = 160 / 720
"""Of the screen's height, that a chart takes at least."""
EMPTY = ("from=paste", "from=upload", "/talk")
"""What shows nothing before something is brought."""
NO_PICTURE = (
    *("training=architecture", "training=parameters", "training=card", "training=comparison", "=text"),
    "why=source+words",
)
"""Tables and words, shaded ones too, which have no picture to fill the screen with."""
SMALLER = ("=pipeline", "from=build", "heads=pruning")
"""A picture whose last row comes with its last step; four square ones beside each other, as high as they are wide; one
above the translations that it is about."""
SQUARES = f"/?{SENTENCE}&view=compare"
"""Two maps and their difference beside each other, as high as they are wide."""
COMPARED = tuple(f"/?{SENTENCE}&view=compare&compared={view}" for view in ("links", "text", "pipeline"))
"""Two sides beside each other."""


def scenes() -> Iterator[tuple[str, Scene]]:
    for address in (*VIEWS, *COMPARED):
        if not any(one in address for one in EMPTY):
            url = urlsplit(address)
            view = dict(parse_qsl(url.query, keep_blank_values=True))
            yield address, Scene("A view", url.path.strip("/") or "explore", view, point="What to look at.")


@pytest.fixture
def every_view(page: Page, tmp_path: Path) -> tuple[Page, Path]:
    """The page Talk with a scene of every view, and the same talk as one file."""
    path = tmp_path / "views.toml"
    path.write_text(format_talk(Talk("Every view", tuple(scene for _, scene in scenes()))), encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, path)
    return page, tmp_path


def read(seen: Page, height: int) -> dict[str, Any]:
    found = dict(seen.evaluate(MEASURE, height * LEAST - 0.5))
    return found | {"heights": [one / height for one in found["heights"]]}


def problems(found: dict[str, dict[str, Any]]) -> list[str]:
    """Every view with type that is too small, or a picture that is."""
    small = [f"{address}: {one['smallest']:.1f} px, {one['small']}" for address, one in found.items() if one["small"]]
    pictures = {
        address: one
        for address, one in found.items()
        if address != SQUARES and not any(word in address for word in (*NO_PICTURE, *SMALLER))
    }
    low = [
        f"{address}: charts of {', '.join(f'{height:.0%}' for height in one['heights'])}"
        for address, one in found.items()
        if min(one["heights"], default=1) < LOWEST
    ]
    unnamed = [f"{address}: no {one['unnamed']}, with room" for address, one in found.items() if one["unnamed"]]
    shares = [f"{address}: {one['share']:.0%}" for address, one in pictures.items() if one["share"] < PICTURE]
    return small + low + unnamed + shares


@pytest.mark.parametrize("size", SIZES, ids=["1080p", "720p"])
def test_the_back_row_reads_every_scene_of_the_talk_that_ships(page: Page, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    open_page(page, "/talk")
    click(page.get_by_role("button", name="Start the talk"))
    stage, found = page.locator("dialog.show"), {}
    for number, scene in enumerate(load_shipped_talk()[0].scenes, 1):
        expect(stage).to_have_attribute("data-ready", str(number), timeout=2 * LOADING)
        if scene.hide or scene.guess:
            page.keyboard.press("PageDown")
            expect(stage).to_have_attribute("data-revealed", "true")
        page.wait_for_timeout(300)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{size[1]}-{number:02}.png")
        found[f"{number} {scene.title}"] = read(page, size[1]) | {"share": 1}  # Some are words.
        page.keyboard.press("PageDown")
    assert not (wrong := problems(found)), "\n".join(wrong)


@pytest.mark.parametrize("size", SIZES, ids=["1080p", "720p"])
def test_the_back_row_reads_every_view_on_the_stage(every_view: tuple[Page, Path], size: tuple[int, int]) -> None:
    page, _ = every_view
    page.set_viewport_size({"width": size[0], "height": size[1]})
    click(page.get_by_role("button", name="Start the talk"))
    found = {}
    for number, (address, _) in enumerate(scenes(), 1):
        expect(page.locator("dialog.show")).to_have_attribute("data-ready", str(number), timeout=2 * LOADING)
        page.wait_for_timeout(300)
        found[address] = read(page, size[1])
        page.keyboard.press("PageDown")
    assert not (wrong := problems(found)), "\n".join(wrong)


def test_the_back_row_reads_every_view_in_a_file(every_view: tuple[Page, Path], disk: Page) -> None:
    page, folder = every_view
    page.set_default_timeout(10 * LOADING)
    with page.expect_download(timeout=10 * LOADING) as handed:
        page.get_by_role("button", name="One file").click()
    handed.value.save_as(folder / "views.html")
    for width, height in SIZES:
        disk.set_viewport_size({"width": width, "height": height})
        open_file(disk, folder / "views.html")
        found = {}
        for number, (address, _) in enumerate(scenes(), 1):
            expect(disk.locator("body")).to_have_attribute("data-slide", str(number), timeout=LOADING)
            disk.wait_for_timeout(300)
            if not disk.locator(".missing").count():  # What the app alone shows.
                found[address] = read(disk, height)
            disk.keyboard.press("PageDown")
        assert not (wrong := problems(found)), "\n".join(wrong)
