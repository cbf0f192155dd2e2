"""A stranger records a model of their own, saves the trace, and opens it; then files that nobody should send."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from torch import nn

from attenscope.capture.attention import capture_attention
from tests.browser.steps import (
    LOADING,
    boxes_at_rest,
    choose_view,
    click,
    click_at,
    close_menu,
    compare,
    expect_head,
    open_menu,
    open_page,
    settle,
    tile,
    type_sentence,
)
from tests.model.masks.readers.hostile_files import mutated, special

SOURCE, TARGET = ("▁Where", "▁did", "▁you", "▁bu", "y", "▁it", "</s>"), ("<s>", "▁Wo", "▁hast", "▁du", "▁es")
INPUT = '[data-testid="stFileUploader"] input[type=file]'


def recorded(folder: Path) -> Path:
    """An nn.Transformer whose decoder was given no causal mask."""
    torch.manual_seed(0)
    model = nn.Transformer(16, 4, 2, 3, 32, batch_first=True).eval()
    with capture_attention(model, tokens={"source": SOURCE, "target": TARGET}) as capture:
        model(torch.randn(1, len(SOURCE), 16), torch.randn(1, len(TARGET), 16))
    path = folder / "mine.safetensors"
    capture.trace.save(path)
    return path


def bring(page: Page, file: Path) -> None:
    """Open a trace from the settings, where its place is folded away."""
    menu = open_menu(page, "settings")
    if not menu.locator(INPUT).is_visible():
        menu.get_by_text("Open a trace").click()
    menu.locator(INPUT).set_input_files(file)


def test_a_foreign_trace_is_opened_looked_at_and_closed(page: Page, tmp_path: Path) -> None:
    open_page(page)
    bring(page, recorded(tmp_path))
    expect(page.get_by_text("an opened trace of Transformer")).to_be_visible(timeout=LOADING)
    expect(page.locator("strong", has_text="mine.safetensors")).to_be_visible()  # The menu may name it, too.
    expect(page.get_by_text("Where did you buy it", exact=True)).to_be_visible()
    expect(page.get_by_text("decoder likely future-visible")).to_be_visible(timeout=LOADING)
    close_menu(page)
    click(tile(page, 3, 4))
    expect_head(page, 3, 4)
    click(page.get_by_role("radio", name="links", exact=True))
    expect(page.locator(".st-key-links").get_by_text("Where", exact=True)).to_be_visible()
    choose_view(page, "heatmap")
    compare(page)
    titles = page.locator(".st-key-compare .annotation")
    expect(titles.filter(has_text="layer 3, head 4")).to_be_visible()
    expect(titles.filter(has_text="layer 3, head 1")).to_be_visible()
    click_at(page, page.locator(".st-key-compare .draglayer .x2y2 .nsewdrag"), 0.02, 0.02)
    expect(page.locator(".st-key-compare .shapelayer path")).to_have_count(6)  # Row and column in all three maps.
    click(page.get_by_text("1 finding"))
    expect(page.get_by_text("mask = mask.bool() & torch.ones(Q, K")).to_be_visible()
    click(page.get_by_role("link", name="Masks"))
    expect(page.locator(".st-key-verdict-line")).to_contain_text("1 question: was causal meant?", timeout=LOADING)
    expect(page.locator(".st-key-verdict")).to_contain_text("future-visible")
    settle(page)
    given = page.locator('.plot[data-panel="given"]')
    expect(given).to_be_visible()
    boxes_at_rest(page, [given])
    given.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".st-key-mask-pictures .readout")).to_contain_text("query 1 “<s>” → key 2 “Wo”")
    click(page.get_by_role("link", name="Explore"))
    expect(page.get_by_text("an opened trace of Transformer")).to_be_visible(timeout=LOADING)
    click(page.get_by_role("button", name="Back to the model"))
    settle(page)
    expect(page.get_by_label("Sentence", exact=True)).to_be_visible()


def test_a_trace_brought_to_masks_is_open_on_explore(page: Page, tmp_path: Path) -> None:
    open_page(page, "/masks?from=upload")
    page.locator(INPUT).set_input_files(recorded(tmp_path))
    expect(page.get_by_text("a trace of Transformer, open on Explore too")).to_be_visible(timeout=LOADING)
    expect(page.locator(".st-key-verdict-line")).to_contain_text("1 question: was causal meant?")
    click(page.get_by_role("radio", name="cross", exact=True))
    expect(page.locator(".st-key-verdict-line")).to_contain_text("No contradiction so far")
    click(page.get_by_role("link", name="Explore"))
    expect(page.get_by_text("an opened trace of Transformer")).to_be_visible(timeout=LOADING)


@pytest.mark.slow
def test_files_that_nobody_should_send_leave_the_page_as_it_was(page: Page, tmp_path: Path) -> None:
    mark, random = tmp_path / "executed", np.random.default_rng(4)
    special_files = special(mark)
    chosen = ["pickled.npy", "model.pt", "trace.safetensors", "meta.safetensors", "long.safetensors", "empty.csv"]
    files = {name: special_files[name] for name in [*chosen, "bytes.json", "outside.safetensors", "bomb.npz"]}
    files |= {
        f"random-{number}{ending}": data for number, (ending, data) in enumerate(mutated(random) for _ in range(11))
    }
    open_page(page)
    type_sentence(page, "He turned the offer down.")
    for number, (name, data) in enumerate(files.items()):
        path = tmp_path / f"{number}-{name}"
        path.write_bytes(data)
        bring(page, path)
        said = page.get_by_test_id("stAlert").filter(has_text=path.name)
        expect(said).to_contain_text("cannot be opened" if data else "is empty", timeout=LOADING)
        expect(page.get_by_label("Sentence", exact=True)).to_have_value("He turned the offer down.")
    assert not mark.exists()
    close_menu(page)
    bring(page, recorded(tmp_path))
    expect(page.get_by_text("an opened trace of Transformer")).to_be_visible(timeout=LOADING)
