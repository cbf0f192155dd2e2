"""Heads: a search over ten million links, the map from a change of measure until it is painted, an atlas with costs.

The links are made up, with as many heads, words and parts of speech as an atlas of the default model has. The atlas is
built anew from the sentences of the released one, by as many processes as there are cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser

from attenscope.atlas.build import ROWS_A_FILE, ROWS_A_GROUP
from attenscope.atlas.files import LINK_SCHEMA, LINKS_TABLE, SENTENCES_TABLE, AtlasPlan, Manifest
from attenscope.atlas.query import Atlas, parse_question, released_atlas_folder, search_atlas
from attenscope.text.parts_of_speech import WORD_TAGS
from attenscope.trace import KINDS
from bench.browser import chromium
from bench.positions import SETTLED, STARTS_WITHIN, app
from bench.timing import Row

MODEL = "everyday-en-de"
LINKS_OF_BENCH, VOCABULARY, LINKS_A_SENTENCE = 10_000_000, 20_000, 2_600
REPETITIONS = 7
QUESTIONS = (
    "pos=NOUN -> pos=DET distance=-1",
    "word=w17 -> weight>=0.3",
    "word~^w1[0-9]+$ -> pos=PUNCT map=cross",
    "pos=VERB -> pos=NOUN distance=-3..3 map=encoder head=2.3",
)
SEARCH_LIMIT, PAINT_LIMIT, BUILD_LIMIT = 300.0, 150.0, 300.0
"""Milliseconds, milliseconds and seconds."""
MEASURES = ("largest weight", "entropy")
CHOSEN = """(name) => new Promise((resolve) => {
  const frame = document.querySelector(".st-key-head-map");
  const roots = () => [...frame.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
  const said = () => roots().map((root) => root.textContent).join();
  const before = said();
  const option = [...document.querySelectorAll("[role=option]")].find((one) => one.textContent.trim() === name);
  const start = performance.now();
  const end = () => requestAnimationFrame((now) => resolve(now - start));
  const look = () => requestAnimationFrame(() => said() !== before ? end() : look());
  option.click();
  look();
})"""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        rows = _searches(Path(folder))
    with app() as url, chromium() as browser:
        painted = paint(browser, f"{url}/heads")
    rows.append(_row("map, ms from a change of measure to painted", painted, PAINT_LIMIT, "{:.0f}"))
    seconds, speed, size = build()
    rows.append(_row(f"atlas of 500 sentences with costs, s ({speed:.1f} sentences/s)", seconds, BUILD_LIMIT, "{:.0f}"))
    rows.append(_row("atlas of 500 sentences, MB", size / 1e6, 4.0, "{:.2f}"))
    return rows


def _searches(folder: Path) -> list[Row]:
    atlas = made_up(folder)
    found = []
    for asked in QUESTIONS:
        times = []
        for _ in range(REPETITIONS + 1):
            start = time.perf_counter()
            search_atlas(atlas, parse_question(asked))
            times.append(1000 * (time.perf_counter() - start))
        found.append(median(times[1:]))
    what = f"search of {LINKS_OF_BENCH // 10**6} million links, ms, median of {len(QUESTIONS)} questions"
    slowest = f"search of {LINKS_OF_BENCH // 10**6} million links, ms, the slowest question"
    return [
        _row(what, median(found), SEARCH_LIMIT, "{:.0f}"),
        Row(f"heads: {slowest}", f"{max(found):.0f}", f"{SEARCH_LIMIT:.0f}", max(found) / SEARCH_LIMIT, "none", True),
    ]


def made_up(folder: Path) -> Atlas:
    """An atlas of made-up links, drawn as words are: the common ones often."""
    random = np.random.default_rng(0)
    (folder / LINKS_TABLE).mkdir()
    words = pa.array([f"w{number}" for number in range(VOCABULARY)])
    tags = pa.array([tag for tag in WORD_TAGS if tag])
    for number, first in enumerate(range(0, LINKS_OF_BENCH, ROWS_A_FILE)):
        count = min(ROWS_A_FILE, LINKS_OF_BENCH - first)
        at = np.arange(first, first + count)
        query = (at % LINKS_A_SENTENCE) // 240
        key = np.clip(query + random.integers(-5, 6, count), 0, 30)
        spelled = [np.minimum(random.zipf(1.3, count) - 1, VOCABULARY - 1).astype(np.int32) for _ in range(2)]
        columns = {
            "sentence": (at // LINKS_A_SENTENCE).astype(np.int32),
            "map": _coded(at % LINKS_A_SENTENCE * 3 // LINKS_A_SENTENCE, pa.array(KINDS)),
            "layer": random.integers(0, 4, count).astype(np.int16),
            "head": random.integers(0, 8, count).astype(np.int16),
            "query": query.astype(np.int32),
            "key": key.astype(np.int32),
            "weight": (random.integers(1, 251, count) / 250).astype(np.float32),
            "distance": (key - query).astype(np.int32),
        }
        for end, codes in zip(("query", "key"), spelled, strict=True):
            columns |= {f"{end}_piece": _coded(codes, words), f"{end}_word": _coded(codes, words)}
            columns[f"{end}_tag"] = _coded(codes % len(tags), tags)
        table = pa.table({name: columns[name] for name in LINK_SCHEMA.names})
        pq.write_table(
            table, folder / LINKS_TABLE / f"{number:04}.parquet", compression="zstd", row_group_size=ROWS_A_GROUP
        )
    heads = pd.DataFrame([(kind, layer, head) for kind in KINDS for layer in range(4) for head in range(8)])
    plan = AtlasPlan("made up", "", "", "", 0, 1, "", False)
    return Atlas(folder, Manifest(plan), heads.set_axis(["map", "layer", "head"], axis=1), pd.DataFrame())


def paint(browser: Browser, address: str) -> float:
    """Median milliseconds from the choice of a measure until the map has changed and is painted."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    page.locator(".st-key-head-map .plot").first.wait_for(timeout=1000 * STARTS_WITHIN)
    times = []
    for turn in range(REPETITIONS + 1):
        page.locator(SETTLED).wait_for()
        page.wait_for_timeout(300)
        page.get_by_label("Up", exact=False).last.click()
        page.get_by_role("option", name=MEASURES[turn % 2], exact=True).wait_for()
        times.append(float(page.evaluate(CHOSEN, MEASURES[turn % 2])))
    page.close()
    return median(times[1:])


def build() -> tuple[float, float, int]:
    """Seconds from the command to the finished atlas, sentences a second, and its size in bytes."""
    released = pd.read_parquet(released_atlas_folder(MODEL) / f"{SENTENCES_TABLE}.parquet")
    processes = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in ("source", "target"):
            (folder / side).write_text("".join(f"{line}\n" for line in released[side]), encoding="utf-8")
        launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), "-m", "model"]
        given = ["--checkpoint", MODEL, "--source", str(folder / "source"), "--target", str(folder / "target")]
        more = ["--output", str(folder / "atlas"), "--part", str(-(-len(released) // (5 * processes)))]
        start = time.perf_counter()
        subprocess.run(
            [*launch, "atlas", *given, *more, "--least-weight", "0.02"],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - start
        size = sum(path.stat().st_size for path in (folder / "atlas").rglob("*") if path.is_file())
    return seconds, len(released) / seconds, size


def _coded(codes: np.ndarray, names: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)


def _row(what: str, ours: float, limit: float, form: str) -> Row:
    shown = form.format(ours), form.format(limit)
    return Row(f"heads: {what}, ours / the limit", *shown, ours / limit, "at most 1", ours <= limit)
