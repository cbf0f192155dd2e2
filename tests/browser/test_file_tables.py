"""Tables, the model's card and the legend of a judged mask in a talk's file: all that the pages show of them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from attenscope.viz.talk.file import format_talk
from attenscope.viz.talk.scenes import Scene, Talk
from tests.browser.steps import LOADING, download, open_file, open_page, open_talk
from tests.browser.views import SENTENCE, VIEWS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TABLES = (
    *(f"/training?{SENTENCE}&training={name}" for name in ("architecture", "parameters", "card", "comparison")),
    f"/masks?{SENTENCE}&part=try+on+the+model&tried=tests",
    f"/masks?{SENTENCE}&from=build",
)
WRITTEN = """(root) => {
    const said = (found) => [...root.querySelectorAll(found)].map((one) => one.textContent.trim());
    const legends = [...root.querySelectorAll("*")].map(({ shadowRoot }) => shadowRoot?.querySelector(".legend"));
    return {
        cells: said("table tr:not(.more) > *"),
        headings: said(".st-key-card :is(h1, h2, h3), .words.heading:not([data-role=verdict])"),
        legend: legends.filter(Boolean).flatMap((one) => [...one.children].map((each) => each.textContent)),
    };
}"""
"""All cells of tables, the headings of a card, and what stands in a legend."""


def test_a_file_has_all_cells_headings_and_signs_of_the_pages(page: Page, disk: Page, tmp_path: Path) -> None:
    shown = []
    for address in TABLES:
        open_page(page, f"{address}&lang=en")
        expect(page.locator(VIEWS[address]).first).to_be_visible(timeout=LOADING)
        shown.append(page.get_by_test_id("stMain").evaluate(WRITTEN))
    scenes = [Scene("A view", url.path.strip("/"), dict(parse_qsl(url.query))) for url in map(urlsplit, TABLES)]
    (tmp_path / "tables.toml").write_text(format_talk(Talk("Tables", tuple(scenes))), encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, tmp_path / "tables.toml")
    open_file(disk, download(page.get_by_role("button", name="One file"), tmp_path))
    for number, (address, there) in enumerate(zip(TABLES, shown, strict=True), 1):
        expect(disk.locator("body")).to_have_attribute("data-slide", str(number), timeout=LOADING)
        assert any(there.values()), address
        assert disk.locator("main > section").evaluate(WRITTEN) == there, address
        disk.keyboard.press("PageDown")
