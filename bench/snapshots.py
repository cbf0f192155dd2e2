"""Scrubbing a training: milliseconds from a key to the next stop painted, in headless Chromium, no server asked.

A bare page with the component of the page Training and random weights: nine stops, 4 layers of 8 heads, as
everyday-en-de has, for sentences of three lengths.
"""

from __future__ import annotations

import base64
from statistics import median

import numpy as np
from playwright.sync_api import Browser

from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import Look
from attenscope.viz.web.component_scripts import build_standalone_module, read_component_style_sheet
from attenscope.viz.web.players import SnapshotSequence, SnapshotText, encode_snapshot_player
from bench.browser import chromium, served
from bench.timing import Row

STOPS = 9
LENGTHS = (16, 32, 64)
LAYERS, HEADS = 4, 8
LIMIT = 50.0  # milliseconds
ROUNDS = 4

PAGE = """<!doctype html><meta charset="utf-8"><style>{css}
:root {{ --st-text-color: #1c1b22; --st-primary-color: #4b3fd6; }}
:root {{ --st-background-color: #fbfbfa; --st-border-color: #e6e4ea; }}
</style><body><main></main><script type="module">
import snapshots from "./snapshots.js";
const packed = Uint8Array.from(atob("{data}"), (one) => one.charCodeAt(0));
snapshots({{ data: packed, parentElement: document.querySelector("main"), setTriggerValue: () => {{}} }});
</script>"""
# A key at the beginning of a frame, as Chromium delivers it, until the next one begins: by then it has been painted.
STEP = """(key) => new Promise((resolve) => requestAnimationFrame(() => {
  const view = document.querySelector(".snapshots");
  const before = view.dataset.stop;
  const start = performance.now();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
  if (view.dataset.stop === before) throw new Error(`${key} changed nothing`);
  requestAnimationFrame(() => resolve([performance.now() - start, Number(view.dataset.drew)]));
}))"""


def measure() -> list[Row]:
    rows = []
    with chromium() as browser:
        for length in LENGTHS:
            painted, worst, drew = scrub(browser, page(length))
            what = (
                f"snapshots, {LAYERS} x {HEADS} heads, {length} tokens: ms a step until painted, ours / the limit "
                f"(drawing {drew:.1f} ms, slowest step {worst:.0f} ms)"
            )
            met = painted <= LIMIT
            rows.append(Row(what, f"{painted:.0f}", f"{LIMIT:.0f}", painted / LIMIT, "at most 1", met))
    return rows


def page(length: int) -> bytes:
    """The component on a page of its own, with `length` tokens on both sides."""
    random = np.random.default_rng(length)
    tokens = tuple(f" word{at}" for at in range(length))
    mask = np.ones((length, length), dtype=bool)
    maps = [
        AttentionMap(
            "cross", random.dirichlet(np.full(length, 0.2), (LAYERS, HEADS, length)), tokens, tokens, mask, tokens
        )
        for _ in range(STOPS)
    ]
    shown = [SnapshotText(f"{at}", f"step {at}", " ".join(tokens), (at + 1) / STOPS, "dev BLEU") for at in range(STOPS)]
    data = encode_snapshot_player(SnapshotSequence(shown, maps, 0, (0, 0), Look(), "predicted", "bench"))
    return PAGE.format(css=read_component_style_sheet("snapshots"), data=base64.b64encode(data).decode()).encode()


def scrub(browser: Browser, body: bytes) -> tuple[float, float, float]:
    """(median, slowest) milliseconds from key to painted, and the median of the component's own drawing."""
    with served({"/": body, "/snapshots.js": build_standalone_module("snapshots").encode()}) as address:
        visitor = browser.new_page(viewport={"width": 1440, "height": 900})
        visitor.goto(address)
        visitor.wait_for_selector(".snapshots[data-stop]")
        visitor.evaluate(STEP, "End")
        times = []
        for _ in range(ROUNDS):
            times += [visitor.evaluate(STEP, "ArrowLeft") for _ in range(STOPS - 1)]
            times += [visitor.evaluate(STEP, "ArrowRight") for _ in range(STOPS - 1)]
        visitor.close()
    painted = [one for one, _ in times]
    return median(painted), max(painted), median(drew for _, drew in times)
