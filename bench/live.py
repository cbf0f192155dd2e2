"""The live file in headless Chromium: its size, the time until it can be used, and its translations against Python's.

The file is that of everyday-en-de, in half precision, opened from disk. The sentence has 18 pieces; both sides take
turns, Python in one thread, and both record every weight of every head. The kernel is held against the same product in
plain JavaScript on typed arrays. Beside it stands the file of a Marian folder of the same sizes, with random weights.
"""

from __future__ import annotations

import base64
import json
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from statistics import median

import sentencepiece
import torch
from playwright.sync_api import Browser, Page

from attenscope.checkpoint.load import find_checkpoint_folder
from attenscope.runnable_model import RunnableModel
from attenscope.translate import Translator
from attenscope.user_model import load_user_model
from attenscope.viz.engine.pack_checkpoint import ENGINE_FOLDER, KERNEL_FILE, describe_model, pack_checkpoint
from attenscope.viz.export import talk_html
from bench.browser import chromium, served
from bench.peers import marian
from bench.retrained import MODEL, PIECES, SENTENCE
from bench.timing import Row

OPENINGS, ROUNDS = 5, 15
READY, SIZE, SLOWER, KEY = 3000.0, 1.4, 3.0, 50.0
"""Goals: milliseconds, a share of the weights, times Python's time, milliseconds."""
OPENED = "body[data-drawn]"
EXPLAINING = "Switching off each of"
"""What the card of a word says while the model works out what the word rests on."""
TRANSLATE = """async ([text, beam]) => {
  const start = performance.now();
  await window.attenscope.translate(text, { beam });
  return performance.now() - start;
}"""
KEYS = """async (text) => {
  const waits = [];
  let busy = true;
  const work = Promise.all(Array.from({ length: 4 }, () => window.attenscope.translate(text, { beam: 4 })));
  work.then(() => (busy = false));
  while (busy) {
    const start = performance.now();
    await new Promise((done) => setTimeout(done, 20));
    waits.push(performance.now() - start - 20);
  }
  return waits.sort((one, other) => one - other)[waits.length >> 1];
}"""
PRODUCT = "product(from, at, to, rows, 4 * inner, outer);"
PLAIN = """
    const [v, w] = [x, new Float32Array(memory.buffer, at, outer * inner)];
    const out = new Float32Array(memory.buffer, to, rows * outer);
    for (let r = 0; r < rows; r += 1) for (let o = 0; o < outer; o += 1) {
      let a = 0, b = 0, c = 0, d = 0;
      for (let i = 0, p = r * inner, q = o * inner; i < inner; i += 4) {
        a += v[p + i] * w[q + i]; b += v[p + i + 1] * w[q + i + 1];
        c += v[p + i + 2] * w[q + i + 2]; d += v[p + i + 3] * w[q + i + 3];
      }
      out[r * outer + o] = a + b + c + d;
    }"""
ENGINE_PAGE = """<!doctype html><meta charset="utf-8">
<script>const MESSAGES = { language: "en", said: {} };</script>
<script type="module">
import { unpack } from "./web/src/shared/packed.js";
import { engine } from "./engine/engine.js";
Object.assign(window, { engine, unpack });
</script>"""
START = """([packed, code]) => {
  const bytes = (text) => {
    const binary = atob(text);
    return Uint8Array.from({ length: binary.length }, (_, i) => binary.charCodeAt(i));
  };
  window.running = engine(unpack(bytes(packed)), bytes(code));
}"""
RUN = """(text) => {
  const start = performance.now();
  window.running.translate(text);
  return performance.now() - start;
}"""


def measure() -> list[Row]:
    talk_html.start_streamlit_runtime_without_server()
    torch.set_num_threads(1)
    translator = Translator.load(MODEL, "cpu")
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        file = written(translator, Path(folder))
        weights = (find_checkpoint_folder(MODEL) / "model.safetensors").stat().st_size
        share = file.stat().st_size / weights
        mine, theirs = (f"{one / 1e6:.1f}" for one in (file.stat().st_size, weights))
        what = "live: MB of the file / of the weights in half precision"
        size = Row(what, mine, theirs, share, f"at most {SIZE:g}", share <= SIZE)
        return [
            size,
            *opened(browser, file, translator),
            *kernels(browser, translator),
            *marian_rows(browser, translator),
        ]


def marian_rows(browser: Browser, translator: Translator) -> list[Row]:
    """A Marian folder of the same sizes and the same pieces, with random weights, beside the released model."""
    from attenscope.viz.export.browser_model_file import build_live_model_html

    with tempfile.TemporaryDirectory() as folder:
        described = describe_model(save_marian_folder(translator, Path(folder) / "marian"))
        file = Path(folder) / "marian.html"
        file.write_text(build_live_model_html([described], date.today()), encoding="utf-8")
        mine, ours = file.stat().st_size / 1e6, described.parameter_count * 2 / 1e6
        what = "live: MB of the file of a Marian folder of the same sizes / its weights in half precision"
        size = Row(what, f"{mine:.1f}", f"{ours:.1f}", mine / ours, f"at most {SIZE:g}", mine / ours <= SIZE)
        ready = median([open_file(browser, file) for _ in range(OPENINGS)])
        return [
            size,
            limited("live: ms from opening that file to its first translation drawn, ours / the limit", ready, READY),
        ]


def save_marian_folder(translator: Translator, folder: Path) -> RunnableModel:
    """Save a Marian of a released model's sizes and pieces, with random weights, and open it."""
    folder.mkdir()
    processor = sentencepiece.SentencePieceProcessor(model_proto=translator.tokenizer.model)
    pieces = {processor.IdToPiece(at): at for at in range(processor.GetPieceSize())}
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(translator.tokenizer.model)
    (folder / "vocab.json").write_text(json.dumps(pieces), encoding="utf-8")
    facts = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"}
    (folder / "tokenizer_config.json").write_text(json.dumps(facts), encoding="utf-8")
    torch.manual_seed(0)
    marian(translator.checkpoint.model.config).save_pretrained(folder)
    model = load_user_model(f"hf:{folder}")
    assert isinstance(model, RunnableModel)
    return model


def written(translator: Translator, folder: Path) -> Path:
    from attenscope.viz.export.browser_model_file import (
        build_live_model_html,  # after the runtime, as all that draws components
    )

    file = folder / "live.html"
    file.write_text(build_live_model_html([translator.checkpoint], date.today()), encoding="utf-8")
    return file


def opened(browser: Browser, file: Path, translator: Translator) -> list[Row]:
    starts = [open_file(browser, file) for _ in range(OPENINGS)]
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_selector(OPENED)
    page.get_by_text(EXPLAINING).wait_for(state="detached")
    assert len(translator.encode(SENTENCE).ids) == PIECES, len(translator.encode(SENTENCE).ids)
    rows = [
        limited(
            "live: ms from opening the file to its first translation drawn, ours / the limit", median(starts), READY
        )
    ]
    for name, beam in (("greedy", 1), ("beam 4", 4)):
        ours, theirs = turns(page, translator, beam)
        what = f"live: ms of {name}, {PIECES} source pieces, with all weights, Chromium / Python"
        rows.append(
            Row(what, f"{ours:.0f}", f"{theirs:.0f}", ours / theirs, f"at most {SLOWER:g}", ours <= SLOWER * theirs)
        )
    waited = float(page.evaluate(KEYS, SENTENCE))
    page.close()
    return [
        *rows,
        limited("live: ms that an event of the page waits while the model works, ours / the limit", waited, KEY),
    ]


def open_file(browser: Browser, file: Path) -> float:
    """Milliseconds until a file's first translation is drawn."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    begin = time.perf_counter()
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_selector(OPENED)
    page.close()
    return 1000 * (time.perf_counter() - begin)


def limited(what: str, ours: float, limit: float) -> Row:
    return Row(what, f"{ours:.0f}", f"{limit:.0f}", ours / limit, "at most 1", ours <= limit)


def turns(page: Page, translator: Translator, beam: int) -> tuple[float, float]:
    """Median milliseconds of a translation in the page and in Python, taking turns."""

    def python() -> None:
        if beam == 1:
            translator.translate(SENTENCE)
        else:
            translator.force(SENTENCE, translator.search(SENTENCE, beam).best[0].token_ids)

    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(float(page.evaluate(TRANSLATE, [SENTENCE, beam])))
        theirs.append(milliseconds(python))
    return median(ours), median(theirs)


def milliseconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begin)


def kernels(browser: Browser, translator: Translator) -> list[Row]:
    """The kernel against the same product on typed arrays."""
    scripts = _engine_modules()
    (own,) = [path for path, code in scripts.items() if PRODUCT.encode() in code]
    given = [
        base64.b64encode(data).decode() for data in (pack_checkpoint(translator.checkpoint), KERNEL_FILE.read_bytes())
    ]
    plainly = {own: scripts[own].replace(PRODUCT.encode(), PLAIN.encode())}
    with served(scripts) as ours_at, served(scripts | plainly) as plain_at:
        pages = [_open_engine(browser, address, given) for address in (ours_at, plain_at)]
        times = [[float(page.evaluate(RUN, SENTENCE)) for page in pages] for _ in range(ROUNDS)]
    ours, plain = (median(one) for one in zip(*times, strict=True))
    what = f"live: ms of greedy, {PIECES} source pieces, WebAssembly kernel / plain typed arrays"
    return [Row(what, f"{ours:.0f}", f"{plain:.0f}", ours / plain, "below 1", ours < plain)]


def _engine_modules() -> dict[str, bytes]:
    """A page that knows the engine, and its modules as they stand in viz/, by path."""
    viz = ENGINE_FOLDER.parent
    modules = [*ENGINE_FOLDER.glob("*.js"), *(viz / "web" / "src" / "shared").glob("*.js")]
    return {"/": ENGINE_PAGE.encode()} | {f"/{path.relative_to(viz).as_posix()}": path.read_bytes() for path in modules}


def _open_engine(browser: Browser, address: str, given: list[str]) -> Page:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_function("() => Boolean(window.engine)")
    page.evaluate(START, given)
    return page
