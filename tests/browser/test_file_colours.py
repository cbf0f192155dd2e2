"""A talk's file in the colours that its address asks for."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from attenscope.viz.export.offline_html import build_talk_page, build_view_page
from attenscope.viz.export.parts import Slide, View, Words
from attenscope.viz.figures.figure_style import DARK, LIGHT, Palette
from tests.browser.steps import open_file

pytestmark = pytest.mark.slow
MADE = date(2025, 1, 2)


def view(colours: str) -> View:
    return View("One", [Words(f"drawn in {colours}", "picture")])


def in_colours(page: Page, palette: Palette, name: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-ready", "yes")
    expect(page.get_by_text(f"drawn in {name}")).to_be_visible()
    red, green, blue = (int(palette.background[at : at + 2], 16) for at in (1, 3, 5))
    expect(page.locator("body")).to_have_css("background-color", f"rgb({red}, {green}, {blue})")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == name


def test_the_address_chooses_the_colours_and_keeps_them(disk: Page, tmp_path: Path) -> None:
    light, dark = ([Slide(title, view(name)) for title in ("A", "B")] for name in ("light", "dark"))
    path = tmp_path / "talk.html"
    path.write_text(build_talk_page("A talk", light, LIGHT, MADE, also=(dark, DARK)), encoding="utf-8")
    open_file(disk, path)
    in_colours(disk, LIGHT, "light")
    disk.evaluate("location.hash = '#scene=2&theme=dark'")
    in_colours(disk, DARK, "dark")
    expect(disk.locator("h1")).to_have_text("B")
    disk.keyboard.press("PageUp")
    expect(disk.locator("h1")).to_have_text("A")
    assert disk.evaluate("location.hash") == "#scene=1&theme=dark"
    disk.evaluate("location.hash = '#theme=light'")
    in_colours(disk, LIGHT, "light")
    disk.evaluate("location.hash = '#theme=sepia'")
    in_colours(disk, LIGHT, "light")


def test_a_view_alone_takes_them_too(disk: Page, tmp_path: Path) -> None:
    path = tmp_path / "view.html"
    path.write_text(build_view_page(view("dark"), DARK, MADE, also=(view("light"), LIGHT)), encoding="utf-8")
    disk.goto(f"{path.as_uri()}#theme=light")
    in_colours(disk, LIGHT, "light")
