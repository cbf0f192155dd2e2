"""Every number that can be read in a component is that of the trace, to the digits printed: 200 cells of each view."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attenscope.experiments.lens import load_training_snapshots, run_snapshots
from attenscope.positions.table import compute_form_formula_difference, make_formula_table
from attenscope.runnable_model import Translation
from attenscope.trace import AttentionTrace
from attenscope.translate import Translator
from tests.browser.steps import LOADING, at_step, expect_head, open_file, open_page, player, saved, step_count, tile
from tests.samples import slow_after

MODEL = "everyday-en-de"
SENTENCE = "My old sister bought a new red car yesterday and sold it today."
CELLS = 200
# Where the mouse is moved to, from top and left in shares of the target, and what is read there.
READ = """(root, [target, reading, places]) => {
  const at = root.querySelector(target);
  const box = at.getBoundingClientRect();
  return places.map(([down, across]) => {
    const place = { clientX: box.left + across * box.width, clientY: box.top + down * box.height };
    at.dispatchEvent(new MouseEvent("mousemove", { ...place, bubbles: true }));
    return root.querySelector(reading).textContent;
  });
}"""
TITLES = """(root, [over, read]) => [...root.querySelectorAll(over)].flatMap((token) => {
  token.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  return [...root.querySelectorAll(read)].map((other) => other.title);
})"""
# Each number beside a token stands as high as the token.
NUMBERS = """(root) => [...root.querySelectorAll('.token[data-side="query"]')].map((token) => {
  token.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  const keys = [...root.querySelectorAll('.token[data-side="key"]')];
  const at = (number) => keys.findIndex((key) => key.getAttribute("y") === number.getAttribute("y"));
  return [...root.querySelectorAll(".numbers text")].map((number) => [at(number), number.textContent]);
})"""
# Each label of a curve stands over its token.
LABELS = """(root) => {
  const labels = [...root.querySelectorAll(".text svg text")].filter((label) => label.textContent);
  const boxes = [...root.querySelectorAll(".source .piece")].map((piece) => piece.getBoundingClientRect());
  return labels.map((label) => {
    const own = label.getBoundingClientRect();
    const off = (box) => Math.hypot(box.left + box.width / 2 - own.left - own.width / 2, box.top - own.bottom);
    return [boxes.indexOf(boxes.reduce((best, box) => (off(box) < off(best) ? box : best))), label.textContent];
  });
}"""


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(MODEL)


@pytest.fixture(scope="module")
def result(translator: Translator) -> Translation:
    return translator.translate(SENTENCE)


@pytest.fixture(scope="module")
def trace(result: Translation) -> AttentionTrace:
    return result.trace


def address(path: str, **view: str) -> str:
    """Every token as it was captured."""
    as_captured = {"words": "false", "hide": "false"} if path == "/" else {}
    return f"{path}?{urlencode({'model': MODEL, 'sentence': SENTENCE} | as_captured | view)}"


def some(*shape: int) -> np.ndarray:
    """At most CELLS cells of an array, drawn by chance -> (cells, axes)."""
    drawn = np.random.default_rng(1).permutation(int(np.prod(shape)))[:CELLS]
    return np.stack(np.unravel_index(drawn, shape), axis=1)


def read(root: Locator, target: str, reading: str, cells: np.ndarray, shape: tuple[int, ...]) -> list[str]:
    """What is read at the middle of these cells (cells, 2) of a picture of `shape`."""
    places = ((cells + 0.5) / shape).tolist()
    return list(root.evaluate(READ, [target, reading, places]))


def agree(text: str, value: float) -> bool:
    """Whether the number at the end of `text` is the value, rounded to its digits."""
    found = re.search(r"(\d+\.?(\d*))(%?)$", text)
    assert found, text
    unit = (0.01 if found[3] else 1) * 0.1 ** len(found[2])
    return abs(float(found[1]) * (0.01 if found[3] else 1) - abs(value)) <= unit / 2 + 1e-6


def assert_agree(texts: list[str], values: Any, least: int = 100) -> None:
    pairs = list(zip(texts, values, strict=True))
    assert len(pairs) >= least
    wrong = [pair for pair in pairs if not agree(*pair)]
    assert not wrong, f"{len(wrong)} of {len(pairs)}: {wrong[:5]}"


def test_heatmap(page: Page, trace: AttentionTrace) -> None:
    open_page(page, address("/", kind="cross", layer="2", head="3", numbers="true"))
    expect_head(page, 2, 3)
    assert trace.cross is not None
    weights = trace.cross.weights[1, 2]
    cells, root = some(*weights.shape), page.locator(".st-key-heatmap .heatmap")
    texts = read(root, ".plot", ".tip b", cells, weights.shape)
    assert re.fullmatch(r"\d\.\d{3}", texts[0])
    assert_agree(texts, weights[tuple(cells.T)])
    assert_agree(root.locator(".number").all_text_contents(), weights.ravel())


def test_links(page: Page, trace: AttentionTrace) -> None:
    open_page(page, address("/", kind="cross", layer="4", head="7", view="links", threshold="0.01"))
    root = page.locator(".st-key-links")
    expect(root.locator(".lines path").first).to_be_attached()
    assert trace.cross is not None
    weights = trace.cross.weights[3, 6]
    lines = int((weights >= 0.01).sum())
    expect(root.locator(".legend")).to_contain_text(f"{lines} lines")
    rows = root.locator("svg").evaluate(NUMBERS)
    found = [(query, key, text) for query, row in enumerate(rows) for key, text in row]
    assert {(query, key) for query, key, _ in found} == {*zip(*(weights >= 0.01).nonzero(), strict=True)}
    assert_agree([text for *_, text in found], [weights[query, key] for query, key, _ in found], least=50)


def test_text(page: Page, trace: AttentionTrace) -> None:
    open_page(page, address("/", kind="cross", layer="2", head="3", view="text"))
    root = page.locator(".st-key-text .texts")
    expect(root).to_be_visible()
    assert trace.cross is not None
    weights = trace.cross.weights[1, 2]
    keys = 'button[data-side="key"]'
    assert_agree(root.locator(keys).evaluate_all("all => all.map((one) => one.title)"), weights.mean(0), least=10)
    by_query = root.evaluate(TITLES, ['button[data-side="query"]', keys])
    assert_agree(by_query, weights.ravel())
    by_key = root.evaluate(TITLES, [keys, 'button[data-side="query"]'])
    assert_agree(by_key, weights.T.ravel())


@pytest.mark.parametrize("head", slow_after(1, ["3.2", "3.mean"]))
def test_decode(page: Page, result: Translation, trace: AttentionTrace, head: str) -> None:
    open_page(page, address("/decode", step="99", cross=head, own=head))
    expect(page.get_by_text("The attention weights agree")).to_be_visible()
    cross, own = trace.cross, trace.decoder
    assert cross is not None
    assert own is not None
    which = slice(None) if head == "3.mean" else slice(1, 2)
    over, back = (one.weights[2, which].mean(0, dtype=np.float64) for one in (cross, own))
    last = step_count(page)
    at_step(page, last)
    cells = some(*back.shape)
    cells = cells[own.mask[tuple(cells.T)]]
    assert_agree(read(player(page), "canvas", ".reading", cells, back.shape), back[tuple(cells.T)], least=90)
    texts: list[str] = []
    values: list[float] = []
    for step in reversed(range(last)):
        at_step(page, step + 1)
        labels = player(page).evaluate(LABELS)
        texts += [text for _, text in labels]
        values += [over[step, key] for key, _ in labels]
        shares = player(page).locator(".share").all_text_contents()
        chances = [np.exp(one.log_prob) for one in result.steps[step].candidates]
        for text, chance in zip(shares, chances, strict=False):
            assert text == "<0.1%" if chance < 0.0005 else agree(text, chance), (text, chance)
        page.keyboard.press("ArrowLeft")
    assert_agree(texts, values, least=10)


def test_training(page: Page) -> None:
    translator = Translator.load("everyday-en-de")
    moments = run_snapshots(
        load_training_snapshots(translator.checkpoint), SENTENCE, translator.translate(SENTENCE).target_ids
    )
    maps = [moment.trace.maps["cross"].weights[1, 2] for moment in moments]
    open_page(page, address("/training", model=translator.name, kind="cross", layer="2", head="3", at="released"))
    root = page.locator(".st-key-snapshots .snapshots")
    expect(root).to_have_attribute("data-stop", "released", timeout=LOADING)
    cells = some(*maps[0].shape)
    texts = [
        re.findall(r"\d\.\d\d", text)[-3:] for text in read(root, ".frame canvas", ".reading", cells, maps[0].shape)
    ]
    for printed, weights in zip(zip(*texts, strict=True), (maps[-1], maps[0], maps[-1]), strict=True):
        assert_agree(list(printed), weights[tuple(cells.T)])


@pytest.mark.parametrize("view", slow_after(1, ["table", "precision"]))
def test_positions(page: Page, view: str) -> None:
    size = 96, 64
    sizes = {"table": "sinusoidal", "positions": str(size[0]), "d_model": str(size[1])}
    open_page(page, address("/positions", plot=view, **sizes))
    root = page.locator(f".st-key-{'table-picture' if view == 'table' else 'error'} .matrix")
    expect(root).to_have_attribute("data-painted", re.compile("96×64"))
    cells = some(*size)
    texts = [text.replace("−", "-") for text in read(root, ".plot", ".readout", cells, size)]
    if view == "table":
        assert_agree(texts, make_formula_table(*size).values[tuple(cells.T)])
        return
    errors = compute_form_formula_difference("float64", *size)[tuple(cells.T)]
    printed = [text.split(" · ")[-1] for text in texts]
    assert printed == ["0" if error == 0 else re.sub("e([+-])0*(?=.)", r"e\1", f"{error:.1e}") for error in errors]
    assert "0" in printed


@pytest.mark.parametrize("view", slow_after(1, ["heatmap", "text"]))
def test_a_saved_file(page: Page, disk: Page, trace: AttentionTrace, tmp_path: Path, view: str) -> None:
    """Another head than the one it was saved with is read from the bytes of the overview."""
    open_page(page, address("/", kind="cross", view=view, layer="1"))
    open_file(disk, saved(page, "Interactive page", tmp_path))
    tile(disk, 2, 3).click()
    assert trace.cross is not None
    weights = trace.cross.weights[1, 2]
    if view == "heatmap":
        expect(disk.get_by_role("img", name="Cross-attention · layer 2, head 3")).to_be_visible()
        cells = some(*weights.shape)
        texts = read(disk.locator(".heatmap"), ".plot", ".tip b", cells, weights.shape)
        assert re.fullmatch(r"\d\.\d\d", texts[0])
        assert_agree(texts, weights[tuple(cells.T)])
        return
    root, query, key = disk.locator(".texts"), 'button[data-side="query"]', 'button[data-side="key"]'
    expect(root).to_have_attribute("aria-label", re.compile("layer 2, head 3"))
    assert not any(root.locator(key).evaluate_all("all => all.map((one) => one.title)"))  # A mean of bytes is not read.
    assert_agree(root.evaluate(TITLES, [query, key]), weights.ravel())
