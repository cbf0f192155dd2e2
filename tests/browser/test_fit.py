"""How large a scene is drawn: of words that wrap, nearly as large as they can be."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.modules import import_names

FITTED = """async ([floor, breaks]) => {
    let [zoom, height] = [1, 0];
    const tall = (at) => 250 + 60 * breaks.filter((one) => one < at).length;
    const room = (at) => 924 / at;
    await window.fitScene({
        floor, tall: () => tall(zoom), room: () => room(zoom),
        zoom: async (value) => (zoom = value), picture: async (value) => (height = value), cut: async () => false,
    });
    let best = floor;
    for (let at = floor; at <= 1.8 * floor; at += 0.005) if (tall(at) <= room(at)) best = at;
    return [zoom, best, tall(zoom) - room(zoom)];
}"""
"""A scene of words 250 pixels high, 60 more for each of the zooms `breaks` at which a line breaks."""


@pytest.mark.sweep
@pytest.mark.parametrize("breaks", [[], [2.9, 3.0], [2.45, 2.9], [2.1, 2.2, 2.3], [2.6], [3.5], [2.85, 2.86, 2.87]])
def test_words_that_wrap_are_nearly_as_large_as_they_can_be(disk: Page, breaks: list[float]) -> None:
    disk.goto("about:blank")
    import_names(disk, "web/src/stage/fit.js", "fitScene")
    zoom, best, over = disk.evaluate(FITTED, [2, breaks])
    assert over <= 3
    assert zoom > 0.88 * best
