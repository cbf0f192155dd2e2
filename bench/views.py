"""The views of Explore: bytes, first paint and redraws, beside BertViz's head view and the page's own goals.

Bytes and first paint are of bare pages on a local server with the same random weights on both sides, as in overview.py.
Redraws are of the running app, for an encoder's map, in headless Chromium. They are painted by the browser from what it
holds; beside each stands how long Python takes to answer, and a click in an app that shows one number, made in turn
with it: what waits for Streamlit can never be quicker, and a busy machine slows all alike.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from bertviz import head_view
from playwright.sync_api import Browser

from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import Look
from attenscope.viz.figures.heatmap import make_head_grid
from attenscope.viz.web.component_scripts import build_standalone_module, read_component_style_sheet
from attenscope.viz.web.maps import encode_heads_overview as packed_overview
from attenscope.viz.web.maps import encode_heatmap
from bench import redraw
from bench.browser import chromium, painted_after, served
from bench.overview import libraries
from bench.positions import app
from bench.timing import Row, side_by_side

LAYERS, HEADS = 4, 8
REPETITIONS = {32: 5, 64: 3, 128: 3}  # by tokens
LIMITS = {32: 100.0, 128: 250.0}  # milliseconds of a redraw, by tokens
HEAD_KB, BYTES_A_WEIGHT = 40.0, 1.5  # at 64 tokens
LARGE = (12, 12, 512)  # layers, heads, tokens
OPENS_WITHIN = 3000.0  # milliseconds

PAGE = """<!doctype html><meta charset="utf-8"><style>{css}</style><div id="view"></div><script type="module">
import {name} from "./{name}.js";
const data = new Uint8Array(await (await fetch("{name}.bytes")).arrayBuffer());
{name}({{ data, parentElement: document.getElementById("view"), setTriggerValue() {{}} }});
</script>"""
# BertViz's head view, told to show the next layer: the time until the frame after its new lines stand in the page.
NEXT_LAYER = """() => new Promise((resolve) => {
  const select = document.querySelector("select#layer");
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  const start = performance.now();
  select.dispatchEvent(new Event("change", { bubbles: true }));
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start)));
})"""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        files = libraries(Path(folder))
    with served(files) as url, chromium() as browser:
        rows = [row for tokens in REPETITIONS for row in _beside_bertviz(tokens, files, url, browser)]
        rows += _large(files, url, browser)
        return rows + list(_redraws(files, url, browser))


def _beside_bertviz(tokens: int, files: dict[str, bytes], url: str, browser: Browser) -> Iterator[Row]:
    attention = _random(LAYERS, HEADS, tokens)
    build = partial(_head, attention)
    build_theirs = partial(bertviz_page, attention)
    files |= _bare("heatmap", build()) | {"/theirs": build_theirs()}
    if tokens == 64:
        size = len(packed_overview(attention, 0, 0, Look())) / attention.weights.size
        yield _goal("bytes a weight of the overview, 64 tokens", size, BYTES_A_WEIGHT, "{:.2f}")
        yield _goal("kB of a head, 64 tokens", len(files["/heatmap.bytes"]) / 1e3, HEAD_KB, "{:.1f}")
    sent = sum(len(files[path]) for path in ("/heatmap", "/heatmap.js", "/heatmap.bytes"))
    yield _row(f"one head, {tokens} tokens: kB sent, page and code included", sent / 1e3, len(files["/theirs"]) / 1e3)
    ours, theirs = side_by_side(build, build_theirs, REPETITIONS[tokens])
    yield _row(f"one head, {tokens} tokens: ms to build", ours * 1e3, theirs * 1e3)
    painted, their_painted = [], []
    for _ in range(REPETITIONS[tokens]):
        painted.append(painted_after(browser, f"{url}/heatmap", "[data-painted] canvas"))
        their_painted.append(painted_after(browser, f"{url}/theirs", "svg line"))
    yield _row(f"one head, {tokens} tokens: ms to painted", median(painted), median(their_painted))


def _large(files: dict[str, bytes], url: str, browser: Browser) -> Iterator[Row]:
    """Many long heads, opened as two pages one after the other: the overview and one head."""
    layers, heads, tokens = LARGE
    attention = _random(layers, heads, tokens)
    spent, _ = side_by_side(lambda: _both(_fresh(attention)), lambda: None, 3)
    overview, head = _both(attention)
    files |= _bare("overview", overview) | _bare("heatmap", head)
    painted = [
        painted_after(browser, f"{url}/overview", "[data-painted] canvas")
        + painted_after(browser, f"{url}/heatmap", "[data-painted] canvas")
        for _ in range(3)
    ]
    what = f"{layers} x {heads} heads of {tokens} tokens"
    yield _goal(
        f"{what}: ms to build the overview and a head and to paint both", spent * 1e3 + median(painted), OPENS_WITHIN
    )
    yield _goal(
        f"{what}: bytes a weight of the overview", len(overview) / attention.weights.size, BYTES_A_WEIGHT, "{:.3f}"
    )


def _redraws(files: dict[str, bytes], url: str, browser: Browser) -> Iterator[Row]:
    """Changes of the running app, and a change of layer in BertViz's head view, which has no server to ask."""
    with app() as running, app("bench/empty.py") as nothing:
        for tokens, limit in LIMITS.items():
            for change, found in redraw.of_the_page(browser, running, nothing, tokens).items():
                yield _goal(f"{change}, {tokens} tokens: ms from click to painted", found.painted, limit)
                yield _floor(f"{change}, {tokens} tokens: ms until Python has answered", found.answered, found.floor)
            files["/theirs"] = bertviz_page(_random(LAYERS, HEADS, tokens))
            their = _their_redraw(f"{url}/theirs", REPETITIONS[tokens], browser)
            yield _beside(f"BertViz's head view, another layer, {tokens} tokens: ms", their, limit)


def _their_redraw(address: str, repetitions: int, browser: Browser) -> float:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    page.locator("svg line").first.wait_for(state="attached", timeout=60_000)
    found = median(float(page.evaluate(NEXT_LAYER)) for _ in range(repetitions))
    page.close()
    return found


def _random(layers: int, heads: int, tokens: int) -> AttentionMap:
    shape = (layers, heads, tokens, tokens)
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(0)).mul(8).softmax(-1).numpy()
    words = tuple(f"token{number}" for number in range(tokens))
    return AttentionMap("encoder", weights, words, words, np.ones((tokens, tokens), dtype=bool))


def _fresh(attention: AttentionMap) -> AttentionMap:
    """The same map as one not seen before, so that nothing of it is remembered."""
    return AttentionMap("encoder", attention.weights, attention.query_tokens, attention.key_tokens, attention.mask)


def _head(attention: AttentionMap) -> bytes:
    return encode_heatmap(make_head_grid(attention, 0, 0, "fed"), Look(), "", model="random")


def _both(attention: AttentionMap) -> tuple[bytes, bytes]:
    return packed_overview(attention, 0, 0, Look()), _head(attention)


def _bare(name: str, data: bytes) -> dict[str, bytes]:
    """A page that shows one component and nothing else, and its data, by path."""
    page = PAGE.format(css=read_component_style_sheet(name), name=name)
    return {f"/{name}": page.encode(), f"/{name}.js": build_standalone_module(name).encode(), f"/{name}.bytes": data}


def bertviz_page(attention: AttentionMap) -> bytes:
    """BertViz's own head view, its three libraries taken from our server instead of a content network."""
    layers = [layer[None] for layer in torch.from_numpy(attention.weights)]
    page = head_view(layers, list(attention.query_tokens), html_action="return").data
    return re.sub(r"https://[^'\"\s]*/ajax/libs/[^'\"\s]*/", "/", page).encode()


def _row(what: str, ours: float, theirs: float) -> Row:
    ratio = theirs / ours
    return Row(
        f"views: {what}, BertViz's head view / ours", _figure(ours), _figure(theirs), ratio, "above 1", ratio > 1
    )


def _goal(what: str, ours: float, limit: float, shown: str = "{:.0f}") -> Row:
    ratio = ours / limit
    return Row(f"views: {what}, ours / the limit", shown.format(ours), f"{limit:g}", ratio, "at most 1", ratio <= 1)


def _beside(what: str, found: float, limit: float) -> Row:
    """What the rows above it are to be read against."""
    return Row(
        f"views: beside these, {what}, found / the limit", _figure(found), f"{limit:g}", found / limit, "none", True
    )


def _floor(what: str, found: float, floor: float) -> Row:
    """What is already painted then, beside a click in an app that shows one number, made in turn with it."""
    shown = _figure(found), _figure(floor)
    return Row(f"views: beside these, {what}, ours / a click in an empty app", *shown, found / floor, "none", True)


def _figure(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
