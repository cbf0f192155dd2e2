"""Our overview of all heads against BertViz's model view: bytes sent, time to build them, time until they are painted.

Each is a bare page on a local server, opened in the same headless Chromium: ours mounts the component's own JavaScript
on the bytes that Streamlit would hand it, theirs is the HTML that `model_view(html_action="return")` gives. The clock
runs from the start of the navigation until two animation frames after everything is in the page.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from bertviz import model_view
from playwright.sync_api import Browser

from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import Look
from attenscope.viz.web.component_scripts import build_standalone_module, read_component_style_sheet
from attenscope.viz.web.maps import encode_heads_overview
from bench.browser import chromium, painted_after, served
from bench.timing import Row, side_by_side

LAYERS, HEADS = 4, 8
REPETITIONS = {32: 7, 64: 5, 128: 3}  # by tokens
FEWER_BYTES, FASTER = 30, 1  # the goals

# What BertViz's page loads from a content network: the versions it names, or the nearest that npm has.
LIBRARIES = {
    "require.min.js": ("requirejs@2.3.6", "requirejs/require.js"),
    "d3.min.js": ("d3@5.7.0", "d3/dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.1.0", "jquery/dist/jquery.min.js"),
}

OUR_PAGE = """<!doctype html><meta charset="utf-8"><style>{css}</style><div id="view"></div><script type="module">
import overview from "./overview.js";
const data = new Uint8Array(await (await fetch("weights")).arrayBuffer());
overview({{ data, parentElement: document.getElementById("view"), setTriggerValue() {{}} }});
</script>"""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        files = libraries(Path(folder))
    with served(files) as url, chromium() as browser:
        return [row for tokens in REPETITIONS for row in _rows(tokens, files, url, browser)]


def _rows(tokens: int, files: dict[str, bytes], url: str, browser: Browser) -> Iterator[Row]:
    repetitions = REPETITIONS[tokens]
    weights = torch.rand(LAYERS, HEADS, tokens, tokens, generator=torch.Generator().manual_seed(0)).mul(8).softmax(-1)
    words = tuple(f"token{number}" for number in range(tokens))
    attention = AttentionMap("encoder", weights.numpy(), words, words, np.ones((tokens, tokens), dtype=bool))
    build_ours = partial(encode_heads_overview, attention, 0, 0, Look())
    build_theirs = partial(bertviz_page, weights, words)

    ours = our_files(build_ours())
    files |= ours | {"/theirs": build_theirs()}
    yield _row(tokens, "kB sent", sum(map(len, ours.values())) / 1e3, len(files["/theirs"]) / 1e3, FEWER_BYTES)

    build, their_build = side_by_side(build_ours, build_theirs, repetitions)
    yield _row(tokens, "ms to build", build * 1e3, their_build * 1e3, FASTER)

    painted, their_painted = [], []
    for _ in range(repetitions):
        painted.append(painted_after(browser, f"{url}/ours", "[data-painted] canvas"))
        their_painted.append(painted_after(browser, f"{url}/theirs", "svg line"))
    yield _row(tokens, "ms to painted", median(painted), median(their_painted), FASTER)


def _row(tokens: int, what: str, ours: float, theirs: float, goal: float) -> Row:
    words = f"at least {goal:g}" if goal > FASTER else "above 1"
    ratio = theirs / ours
    return Row(
        f"overview, {tokens} tokens: {what}, BertViz / ours", _figure(ours), _figure(theirs), ratio, words, ratio > goal
    )


def _figure(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def our_files(weights: bytes) -> dict[str, bytes]:
    """What a browser fetches to show the overview, by path: the page, the component with all it imports, the data."""
    page = OUR_PAGE.format(css=read_component_style_sheet("overview"))
    return {"/ours": page.encode(), "/overview.js": build_standalone_module("overview").encode(), "/weights": weights}


def bertviz_page(weights: torch.Tensor, words: tuple[str, ...]) -> bytes:
    """BertViz's own page, its three libraries taken from our server instead of a content network."""
    layers = [layer[None] for layer in weights]
    page = model_view(
        encoder_attention=layers, encoder_tokens=list(words), display_mode="light", html_action="return"
    ).data
    return re.sub(r"https://[^'\"\s]*/ajax/libs/[^'\"\s]*/", "/", page).encode()


def libraries(folder: Path) -> dict[str, bytes]:
    """The scripts BertViz's page asks for, by path; npm fetches them, or has them in its cache."""
    if shutil.which("npm") is None:
        raise SystemExit("BertViz's page needs three JavaScript libraries, which npm fetches: apt install npm")
    names = [name for name, _ in LIBRARIES.values()]
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefer-offline")
    subprocess.run(["npm", "install", *quiet, "--prefix", folder, *names], check=True, capture_output=True)
    return {f"/{name}": (folder / "node_modules" / path).read_bytes() for name, (_, path) in LIBRARIES.items()}
