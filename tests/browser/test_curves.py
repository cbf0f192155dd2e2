"""Curves as they are drawn: what their colours are, and names that stand on no other."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from attenscope.viz.export.offline_html import build_view_page
from attenscope.viz.export.parts import Component, View
from attenscope.viz.figures.figure_style import LIGHT
from attenscope.viz.figures.heads import HeadDot, assign_attention_kind_colours, plot_head_scatter
from attenscope.viz.web.charts import encode_curves
from tests.browser.steps import open_file

pytestmark = pytest.mark.slow


def test_a_name_that_would_stand_on_another_is_left_out(disk: Page, tmp_path: Path) -> None:
    places = {"first": (1.0, 1.0, 9.0), "second": (1.05, 1.0, 8.0), "third": (8.0, 7.0, 7.0), "fourth": (0.0, 9.0, 1.0)}
    places |= {
        "on second": (1.1, 1.0, 0.5)
    }  # Two that are close have their names on either side, of three one has none.
    dots = [HeadDot(name, "cross", x, y, cost, "") for name, (x, y, cost) in places.items()]
    shown = plot_head_scatter(dots, "a", "b", "Heads", LIGHT)
    assert [note.text for note in shown.notes] == [*places], "those that cost most first"
    path = tmp_path / "map.html"
    view = View("Heads", [Component("curves", encode_curves(shown))])
    path.write_text(build_view_page(view, LIGHT, date(2025, 1, 2)), encoding="utf-8")
    open_file(disk, path)
    expect(disk.locator(".note")).to_have_text(["first", "second", "third", "fourth"])
    expect(disk.locator(".entry")).to_have_text(["Cross-attention"])
    red, green, blue = (int(assign_attention_kind_colours(LIGHT)["cross"][at : at + 2], 16) for at in (1, 3, 5))
    expect(disk.locator(".dot")).to_have_css("background-color", f"rgb({red}, {green}, {blue})")
