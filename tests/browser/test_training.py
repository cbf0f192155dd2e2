"""Training, used as a visitor uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from attenscope.checkpoint.load import load_checkpoint
from attenscope.network.config import PRESETS
from tests.browser.conftest import visit
from tests.browser.steps import (
    LOADING,
    choose_kind,
    choose_page_view,
    click,
    click_at,
    download,
    open_menu,
    open_page,
    point,
    settle,
    tile,
)

SENTENCE = "He reads a book."
SEEN_STOPS = """(() => {
  window.seen = [];
  const look = () => {
    const hosts = [...document.querySelectorAll('[data-testid="stBidiComponentIsolated"]')];
    const stop = hosts.map((one) => one.shadowRoot?.querySelector(".snapshots")?.dataset.stop).find(Boolean);
    if (stop && window.seen.at(-1) !== stop) window.seen.push(stop);
    requestAnimationFrame(look);
  };
  look();
})()"""
"""Keep every stop that the page shows."""
MODEL, STOPS = "everyday-en-de", 9
"""The default model and the moments of its training, with both ends."""
TWO_ENDS = "preset-annotated"
"""A model that kept no snapshots, and whose random start its recipe knows."""
VIEWS: dict[str, str | re.Pattern[str]] = {
    "snapshots": "At every stop the model reads the same translation",
    "curves": f"Training of {TWO_ENDS}",
    "architecture": "Filled in where a preset differs",
    "parameters": "source_embedding.table.weight",
    "card": "Known weaknesses",
    "comparison": re.compile("No checkpoint of a preset|only fields in which they differ"),
}


def view(page: Page) -> Locator:
    return page.locator(".st-key-snapshots .snapshots")


def open_snapshots(page: Page, model: str = TWO_ENDS, **address: str) -> None:
    rest = "".join(f"&{name}={value}" for name, value in address.items())
    open_page(page, f"/training?model={model}&sentence={SENTENCE.replace(' ', '+')}{rest}")
    expect(view(page)).to_be_visible()
    settle(page)


@pytest.mark.parametrize("width", [1440, 1000])
def test_no_text_of_a_table_runs_over_its_neighbour(page: Page, width: int) -> None:
    """The first model's four places of dropout ran over the second's."""
    page.set_viewport_size({"width": width, "height": 900})
    for name in ("comparison", "architecture"):
        open_page(page, f"/training?model={TWO_ENDS}&training={name}")
        cells = page.locator(".table td")
        expect(cells.filter(has_text="embedding, sublayer").first).to_be_visible()
        over = "cells => cells.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)"
        assert cells.evaluate_all(over) == []


def test_the_names_of_rows_stay_when_a_table_scrolls(page: Page) -> None:
    page.set_viewport_size({"width": 800, "height": 900})
    open_page(page, "/training?training=architecture")
    name = page.get_by_role("rowheader", name="scale_scores")
    left = int(name.evaluate("one => one.getBoundingClientRect().left"))
    name.evaluate("one => { one.closest('.table').scrollLeft = 9999; }")
    assert name.evaluate("one => one.closest('.table').scrollLeft") > 0
    assert int(name.evaluate("one => one.getBoundingClientRect().left")) == left
    name.scroll_into_view_if_needed()
    box = name.bounding_box()
    assert box is not None
    on_top = "([x, y]) => document.elementFromPoint(x, y).textContent"
    across = [box["x"] + share * box["width"] for share in (0.1, 0.5, 0.9)]
    assert {page.evaluate(on_top, [x, box["y"] + box["height"] / 2]) for x in across} == {"scale_scores"}


def test_a_walk_through_every_view(page: Page) -> None:
    open_page(page, f"/training?model={TWO_ENDS}")
    for name, words in VIEWS.items():
        choose_page_view(page, name)
        expect(page.get_by_text(words).first).to_be_visible(timeout=LOADING)
        assert ("training=" in page.url) == (name != "snapshots")
        assert name == "snapshots" or f"training={name}" in page.url
    choose_page_view(page, "card")
    expect(page.locator(".st-key-card table").first).to_be_visible()
    settle(page)
    page.reload()
    expect(page.get_by_text("Known weaknesses")).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


def test_a_sentence_is_scrubbed_through_the_training_by_keys(page: Page) -> None:
    open_snapshots(page, MODEL)
    expect(view(page).locator(".tick")).to_have_count(STOPS)
    where, written = view(page).locator(".where"), view(page).locator(".written")
    expect(where).to_contain_text("released weights")
    page.keyboard.press("Home")
    expect(where).to_contain_text("random weights, step 0")
    seen = {written.inner_text()}
    for at in range(1, STOPS):
        page.keyboard.press("ArrowRight")
        expect(view(page).locator(".tick").nth(at)).to_have_class(re.compile("now"))
        seen.add(written.inner_text())
    expect(where).to_contain_text("released weights")
    expect(page.get_by_text(f"“{written.inner_text()}”")).to_be_visible()
    assert len(seen) >= 2
    expect(page).to_have_url(re.compile("at=released"))
    settle(page)
    page.reload()
    expect(view(page)).to_have_attribute("data-stop", "released")
    settle(page)
    page.keyboard.press("Home")
    expect(view(page)).to_have_attribute("data-stop", "random")
    page.keyboard.press("End")
    expect(view(page)).to_have_attribute("data-stop", "released")


def test_scrubbing_asks_the_server_for_nothing(page: Page) -> None:
    """Until one has come to rest: with the connection cut, every stop is still drawn, and so is another head."""
    open_snapshots(page, MODEL, kind="cross")
    canvas = view(page).locator(".frame canvas")
    pixels = "c => c.toDataURL()"
    last = canvas.evaluate(pixels)
    page.context.set_offline(True)
    slider = view(page).get_by_label("Training step")
    slider.press("Home")
    expect(view(page)).to_have_attribute("data-stop", "random")
    first = canvas.evaluate(pixels)
    assert last != first
    slider.press("End")
    expect(view(page)).to_have_attribute("data-stop", "released")
    assert canvas.evaluate(pixels) == last
    page.context.set_offline(False)


def test_it_plays_from_the_start_and_stops_at_the_end(page: Page) -> None:
    open_snapshots(page)
    expect(view(page)).to_have_attribute("data-stop", "released")
    click(view(page).get_by_role("button", name="Play from random weights"))
    expect(view(page)).to_have_attribute("data-stop", "random")
    expect(view(page)).to_have_attribute("data-stop", "released")
    expect(view(page).get_by_role("button", name="Play")).to_be_visible()
    expect(page).to_have_url(re.compile("at=released"))


def test_the_page_opens_as_a_film(chromium: Browser, server: str) -> None:
    """At random weights, playing once to the end; where movement is not wanted it stands at the end."""
    with visit(chromium, server, base_url=server, reduced_motion="no-preference") as visitor:
        visitor.add_init_script(SEEN_STOPS)
        open_page(visitor, f"/training?model={MODEL}&sentence={SENTENCE.replace(' ', '+')}")
        expect(visitor).to_have_url(re.compile("at=released"))
        seen = visitor.evaluate("window.seen")
        assert seen[0] == "random"
        assert seen[-1] == "released"
        assert len(seen) == STOPS
        settle(visitor)
        visitor.reload()
        expect(view(visitor)).to_have_attribute("data-stop", "released")
        assert visitor.evaluate("window.seen") == ["released"]


def test_a_head_is_opened_and_its_cells_can_be_read(page: Page) -> None:
    open_snapshots(page, kind="decoder", at="released")
    title = view(page).locator(".title")
    expect(title).to_have_text("Decoder self-attention · layer 1, head 1")
    click(tile(page, 2, 3))
    expect(title).to_have_text("Decoder self-attention · layer 2, head 3")
    expect(page).to_have_url(re.compile("head=3"))
    settle(page)
    canvas = view(page).locator(".frame canvas")
    point(page, canvas, 0.01, 0.99)
    expect(view(page).locator(".reading")).to_have_text(
        re.compile(r"“\u2068</s>\u2069” → “\u2068<s>\u2069”: \d\.\d\d now · \d\.\d\d at random · \d\.\d\d at the end")
    )
    point(page, canvas, 0.99, 0.01)
    expect(view(page).locator(".reading")).to_contain_text("masked, it may not look there")
    choose_kind(page, "encoder")
    expect(title).to_have_text("Encoder self-attention · layer 2, head 3")
    expect(view(page)).to_have_attribute("data-stop", "released")


def test_rows_are_named_as_is_asked_for(page: Page) -> None:
    open_snapshots(page, kind="decoder", at="released")
    rows, canvas = view(page).locator(".rows span"), view(page).locator(".frame canvas")
    expect(rows.last).to_have_text("</s>")
    drawn = canvas.evaluate("c => c.toDataURL()")
    click(open_menu(page, "settings").get_by_text("fed in", exact=True))
    expect(rows.first).to_have_text("<s>")
    expect(rows.last).not_to_have_text("</s>")
    assert canvas.evaluate("c => c.toDataURL()") == drawn  # The same weights, painted again.


def test_a_stop_is_chosen_by_its_name(page: Page) -> None:
    open_snapshots(page)
    click_at(page, view(page).locator(".tick .name").last, 0.5, 0.5)
    expect(view(page)).to_have_attribute("data-stop", "released")


@pytest.mark.slow
def test_tables_are_saved(page: Page, tmp_path: Path) -> None:
    saved = {}
    for name in ("architecture", "parameters"):
        open_page(page, f"/training?model=everyday-en-de&training={name}")
        saved[name] = download(open_menu(page, "share").get_by_role("button", name="Numbers (CSV)"), tmp_path)
    parts = download(page.get_by_role("button", name="Parts as CSV"), tmp_path)
    assert parts.read_text().startswith("part,parameters\nembeddings,")
    architecture = saved["architecture"].read_text().splitlines()
    assert architecture[0] == ",".join(["field", "this model", *PRESETS])
    assert ",".join(["d_model", "256", *["512"] * len(PRESETS)]) in architecture
    tensors = saved["parameters"].read_text().splitlines()
    pieces = load_checkpoint("everyday-en-de").model.config.vocab_size
    assert tensors[1].startswith(f"source_embedding.table.weight,{pieces}x256,{pieces * 256},")
