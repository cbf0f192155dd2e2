"""How soon a new sentence is translated, from Enter until its translation is painted: the app against the live file.

Both run everyday-en-de with greedy search in one Chromium and take turns, a sentence that neither has seen at a time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from playwright.sync_api import Page

from attenscope.translate import Translator
from attenscope.viz.export import talk_html
from bench.browser import chromium
from bench.live import OPENED, written
from bench.positions import SETTLED, STARTS_WITHIN, serving
from bench.retrained import MODEL
from bench.timing import Row

WARM_UP = ("The sun is shining today.", "We are waiting for the bus.", "He lost his keys last night.")
SENTENCES = (
    "My neighbour has a small blue car.",
    "She reads a long book in the garden.",
    "The children are playing football in the park.",
    "I bought two tickets for the concert yesterday.",
    "Where can I find a good restaurant near the station?",
    "The old man forgot his umbrella on the train.",
    "We want to visit our friends in Hamburg next week.",
    "It was raining when they came home from work.",
    "Can you tell me what time the museum opens?",
)
SLOWER = 1.2
"""Times the live file's time that the app may take."""
REST = 1500
"""Milliseconds from a translation to the next sentence: until the rest of the page is drawn."""
PAINTED = """([box, place, text]) => new Promise((resolve, reject) => {
  const read = (one) => [...(one?.shadowRoot?.childNodes ?? []), ...(one?.childNodes ?? [])]
    .map((child) => child.nodeType === 3 ? child.data : child.localName === "style" ? "" : read(child)).join("");
  const seen = () => [...document.querySelectorAll(place)].map(read).join("");
  const field = document.querySelector(box);
  const before = seen();
  field.addEventListener("keydown", () => {
    const start = performance.now();
    const look = () => requestAnimationFrame(() => {
      const now = seen();
      if (now && now !== before) requestAnimationFrame(() => resolve(performance.now() - start));
      else if (performance.now() - start > 20000) reject(`No translation of “${text}” was painted.`);
      else look();
    });
    look();
  }, { once: true });
})"""
APP = ".st-key-sentence-box textarea", ".st-key-translation *"
FILE = "form.sentence textarea", ".translation"


def measure() -> list[Row]:
    talk_html.start_streamlit_runtime_without_server()
    translator = Translator.load(MODEL, "cpu")
    with chromium() as browser, tempfile.TemporaryDirectory() as folder, serving() as served:
        file = written(translator, Path(folder))
        pages = [browser.new_page(viewport={"width": 1440, "height": 900}) for _ in range(2)]
        pages[0].goto(served.url)
        pages[0].locator(APP[0]).wait_for(timeout=1000 * STARTS_WITHIN)
        pages[1].goto(file.as_uri())
        pages[1].wait_for_selector(OPENED)
        for sentence in WARM_UP:
            for page, place in zip(pages, (APP, FILE), strict=True):
                translate(page, place, sentence)
        times = [
            [translate(page, place, sentence) for page, place in zip(pages, (APP, FILE), strict=True)]
            for sentence in SENTENCES
        ]
    ours, theirs = (median(one) for one in zip(*times, strict=True))
    what = f"sentence: ms from Enter to the translation painted, median of {len(SENTENCES)}, app / live file"
    ratio = ours / theirs
    return [Row(what, f"{ours:.0f}", f"{theirs:.0f}", ratio, f"at most {SLOWER:g}", ratio <= SLOWER)]


def translate(page: Page, place: Sequence[str], sentence: str) -> float:
    """Type a sentence and press Enter -> milliseconds until another translation is painted."""
    page.bring_to_front()
    box = page.locator(place[0])
    box.fill(sentence)
    painted = page.evaluate_handle(f"([...all]) => ({{ done: ({PAINTED})(all) }})", [*place, sentence])
    box.press("Enter")
    took = float(painted.evaluate("(one) => one.done"))
    if page.locator(SETTLED).count():
        page.locator(SETTLED).wait_for()
    page.wait_for_timeout(REST)
    return took
