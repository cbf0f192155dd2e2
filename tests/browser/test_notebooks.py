"""The widget in JupyterLab and marimo, and the picture that nbconvert has in its place.

Their packages are no requirement of this project: an environment of its own holds them, see :data:`MISSING`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from attenscope.viz.notebook.views import NO_STEPS_TEXT
from tests.browser.conftest import ROOT, free_port, missing
from tests.test_install import copied, install
from tests.viz.fakes import FakeTranslator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MISSING = (
    "no environment with notebooks: python -m venv .venv-notebook && .venv-notebook/bin/pip install jupyterlab marimo "
    "anywidget numpy plotly safetensors, or name its Python in $NOTEBOOKS"
)
STARTS_WITHIN = 90
OPEN_TO_ALL = ("--ServerApp.token=", "--ServerApp.password=")
CELLS = (
    "import attenscope\ntrace = attenscope.AttentionTrace.load('my.safetensors')",
    "widget = attenscope.show(trace, 'heatmap', kind='cross', layer=2, head=3)\nwidget",
    "attenscope.show(trace, 'links', kind='decoder')",
    "trace",
    "print(*widget.selected_head, *widget.pinned)",
    """for name, value in {'layer': 9, 'kind': 'nothing', 'view': 'decode'}.items():
    try:
        setattr(widget, name, value)
    except Exception as error:
        print(type(error).__name__, error)""",
    "widget.kind, widget.layer = 'encoder', 0",
)
MARIMO = """import marimo

app = marimo.App()


@app.cell
def _():
    import attenscope
    import marimo as mo

    trace = attenscope.AttentionTrace.load("my.safetensors")
    widget = mo.ui.anywidget(attenscope.show(trace, "heatmap", kind="cross", layer=2, head=3))
    widget
    return (widget,)


@app.cell
def _(widget):
    " ".join(str(widget.value[name]) for name in ("kind", "layer", "head"))
    return
"""


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("NOTEBOOKS") or str(ROOT / ".venv-notebook" / "bin" / "python")
    asked = [found, "-c", "import jupyterlab, marimo, anywidget, numpy, plotly, safetensors"]
    if shutil.which(found) is None or subprocess.run(asked, check=False, capture_output=True).returncode:
        missing(MISSING)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package, a trace and a notebook."""
    here = tmp_path_factory.mktemp("notebooks")
    install(sys.executable, copied(here), "--no-deps", "--no-index", "--target", str(here / "site"))
    FakeTranslator().translate("one two three").trace.save(here / "my.safetensors")
    names = {"name": "python3", "display_name": "Python 3", "language": "python"}
    empty: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [empty | {"id": f"cell-{at}", "source": source} for at, source in enumerate(CELLS)]
    notebook = {"cells": cells, "metadata": {"kernelspec": names}, "nbformat": 4, "nbformat_minor": 5}
    (here / "try.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (here / "try.py").write_text(MARIMO, encoding="utf-8")
    return here


def settings(folder: Path) -> dict[str, str]:
    """The environment of a notebook, whose own folders are those of nobody else."""
    own = {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR")}
    return {**os.environ, **own, "PYTHONPATH": str(folder / "site"), "HOME": str(folder)}


@contextmanager
def serving(folder: Path, *command: str, page: str) -> Iterator[str]:
    """The address of a server, whose command line ends in ``--port``."""
    port = free_port()
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, env=settings(folder), stdout=output, stderr=subprocess.STDOUT
        )
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + STARTS_WITHIN
            while time.monotonic() < deadline and process.poll() is None:
                try:
                    urllib.request.urlopen(f"{url}{page}", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.3)
            else:
                raise RuntimeError(log.read_text(errors="replace"))
            yield f"{url}{page}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


@contextmanager
def visited(chromium: Browser, url: str) -> Iterator[Page]:
    """A page that no script of ours breaks and that asks nobody else for anything."""
    context = chromium.new_context(viewport={"width": 1440, "height": 1400})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "anywidget" in said.text else None)
    own = re.compile(r"(https?|wss?)://(127\.0\.0\.1|localhost)[:/]|data:|blob:")
    page.on("request", lambda sent: None if own.match(sent.url) else faults.append(sent.url))
    page.goto(url)
    yield page
    context.close()
    assert not faults, faults


def run_cells(page: Page, cells: Sequence[int]) -> None:
    """Run cells, each once: a key that comes before the kernel listens is pressed again."""
    for at in cells:
        prompt = page.locator(".jp-Cell .jp-InputPrompt").nth(at)
        for _ in range(20):
            page.locator(".jp-Cell").nth(at).locator(".jp-InputArea").click()
            page.keyboard.press("Shift+Enter")
            with suppress(AssertionError):
                expect(prompt).not_to_have_text("[ ]:", timeout=3000)
                break
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=60_000)


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_jupyterlab_shows_it_and_python_reads_what_is_chosen(
    python: str, folder: Path, chromium: Browser, theme: str
) -> None:
    themes = folder / "JUPYTERLAB_SETTINGS_DIR" / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    themes.parent.mkdir(parents=True, exist_ok=True)
    themes.write_text(json.dumps({"theme": f"JupyterLab {theme}"}), encoding="utf-8")
    news = themes.with_name("notification.jupyterlab-settings")
    news.write_text(json.dumps({"fetchNews": "false"}), encoding="utf-8")
    shutil.copy(folder / "try.ipynb", folder / f"{theme}.ipynb")
    lab = (python, "-m", "jupyter", "lab", "--allow-root", "--no-browser", *OPEN_TO_ALL)
    with (
        serving(folder, *lab, page=f"/lab/tree/{theme}.ipynb") as url,
        visited(chromium, f"{url}?reset") as page,
    ):
        expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_visible(timeout=90_000)
        run_cells(page, range(4))
        drawn = page.locator("[data-widget] .attenscope")
        expect(drawn).to_have_count(2)
        expect(drawn.nth(0)).to_have_attribute("data-painted", "heatmap cross 2.3")
        expect(drawn.nth(1)).to_have_attribute("data-painted", "links decoder 0.0")
        expect(drawn.nth(0)).to_have_css("color", "rgb(236, 234, 243)" if theme == "Dark" else "rgb(28, 27, 34)")
        assert drawn.nth(0).locator("canvas.shrunk").count() == 0
        expect(page.locator(".jp-OutputArea img[alt^='Encoder self-attention']")).to_be_visible()
        drawn.nth(0).get_by_role("button", name="Layer 1, head 2").click()
        expect(drawn.nth(0)).to_have_attribute("data-painted", "heatmap cross 0.1")
        expect(drawn.nth(0).locator(".heatmap")).to_have_attribute("data-painted", "Cross-attention · layer 1, head 2")
        run_cells(page, range(4, 7))
        said = [page.locator(".jp-Cell").nth(at).locator(".jp-OutputArea-output").inner_text() for at in (4, 5)]
        assert said[0].strip() == "cross 0 1 None None"
        assert said[1].splitlines() == [
            "TraitError The cross map has layers 0 to 2: 9 is none of them.",
            "TraitError This trace has no 'nothing' map: it has encoder, decoder, cross.",
            f"TraitError {NO_STEPS_TEXT}",
        ]
        expect(drawn.nth(0)).to_have_attribute("data-painted", "heatmap encoder 0.1")
        page.screenshot(path=str(folder / f"lab-{theme}.png"))


def test_marimo_shows_it_and_runs_the_cells_that_read_it(python: str, folder: Path, chromium: Browser) -> None:
    command = (python, "-m", "marimo", "run", "try.py", "--headless", "--no-token")
    with serving(folder, *command, page="/") as url, visited(chromium, url) as page:
        drawn = page.locator("[data-widget] .attenscope")
        expect(drawn).to_have_attribute("data-painted", "heatmap cross 2.3", timeout=60_000)
        expect(page.get_by_text("cross 2 3")).to_be_visible()
        drawn.get_by_role("button", name="Layer 2, head 1").click()
        expect(drawn).to_have_attribute("data-painted", "heatmap cross 1.0")
        expect(page.get_by_text("cross 1 0")).to_be_visible()
        page.screenshot(path=str(folder / "marimo.png"))


def test_a_converted_notebook_has_the_picture_and_needs_no_network(
    python: str, folder: Path, chromium: Browser
) -> None:
    command = [python, "-m", "nbconvert", "--to", "html", "--execute", "--ExecutePreprocessor.store_widget_state=False"]
    done = subprocess.run(
        [*command, "try.ipynb"], cwd=folder, env=settings(folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto((folder / "try.html").as_uri())
    widget, links, trace = (page.locator(".jp-OutputArea").nth(at).locator("img") for at in range(3))
    expect(widget).to_have_count(2)
    expect(links).to_have_count(2)
    expect(trace).to_have_count(3)
    expect(widget.nth(1)).to_have_attribute("alt", "Cross-attention · layer 3, head 4: queries down, keys across")
    assert all(page.locator("img").nth(at).evaluate("(one) => one.naturalWidth > 0") for at in range(7))
    context.close()
