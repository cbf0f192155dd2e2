"""Numbers that Plotly writes on cells: in black or white, on a page, in its picture and in a talk's file."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LOADING, open_file, open_page, saved

INKS = """() => [...document.querySelectorAll(".heatmap-label text")].map((one) => getComputedStyle(one).fill)"""
BLACK_OR_WHITE = {"rgb(0, 0, 0)", "rgb(255, 255, 255)"}


@pytest.mark.parametrize("address", ["/heads?heads=alignment", "/masks?part=gallery&fault=observer"])
def test_numbers_are_written_in_black_or_white(page: Page, address: str) -> None:
    open_page(page, address)
    expect(page.locator(".heatmap-label text").first).to_be_attached(timeout=LOADING)
    assert set(page.evaluate(INKS)) == BLACK_OR_WHITE


@pytest.mark.slow
def test_so_are_those_of_a_file_and_of_a_picture(page: Page, disk: Page, tmp_path: Path) -> None:
    open_page(page, "/heads?heads=alignment")
    expect(page.locator(".heatmap-label text").first).to_be_attached(timeout=LOADING)
    open_file(disk, saved(page, "HTML", tmp_path))
    expect(disk.locator(".heatmap-label text").first).to_be_attached(timeout=LOADING)
    assert set(disk.evaluate(INKS)) == BLACK_OR_WHITE
    drawn = saved(page, "SVG", tmp_path).read_text(encoding="utf-8")
    assert "fill: rgb(0, 0, 0)" in drawn
    assert "rgb(68, 68, 68)" not in drawn
