"""A view as a picture or a film, drawn out of sight; and the welcome, which is drawn before any component."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import date
from xml.etree import ElementTree

import pytest
from playwright.sync_api import BrowserContext, expect

from attenscope.viz.export import offline_html
from attenscope.viz.export.offline_html import build_view_page
from attenscope.viz.export.parts import Component, View, Words
from attenscope.viz.figures.figure_style import LIGHT, Look
from attenscope.viz.web import charts, maps, players
from attenscope.viz.web.component_scripts import read_standalone_script
from tests.browser.conftest import watch
from tests.browser.coverage import counted
from tests.components.bare_page import ADDRESS, SECURE_ADDRESS, BarePage
from tests.components.test_charts import search_tree
from tests.components.test_weights import CROSS, RESULT, encode_head
from tests.components.test_words import encode_picture, sentence

SPACE = "{http://www.w3.org/2000/svg}"
START = players.PlayerStart(1, "aligning", "2.3", (1, 2))
HEADS = maps.encode_heads_overview(CROSS, 1, 2, Look())
SHOWN = View(
    "A view",
    [
        Words("A heading", "heading", "heading"),
        Component("heatmap", encode_head(CROSS, 1, 2, numbers=True)),
        Component("overview", HEADS, "heads"),
        Component("beam_tree", charts.beam_tree_data(search_tree())),
        Component("decode_player", players.encode_decode_player(RESULT, START, Look(), "a"), "decoding"),
    ],
)


@pytest.fixture
def saving(room: BrowserContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[BarePage]:
    """A bare page that the browser trusts with a film; pictures have the letters of the machine."""
    monkeypatch.setattr(offline_html, "build_font_faces", lambda *_, **__: "")
    with watch(room, SECURE_ADDRESS) as page, counted(page):
        yield BarePage(page, SECURE_ADDRESS)
    page.close()


def ask(saving: BarePage, kind: str, **more: object) -> bytes:
    """Press a button as a visitor does, answer as Python does, and return what the browser saves."""
    data = {"name": "shown", "page": "", "asked": {}, "moves": True, "encoder": "", "scale": 2, "width": 800}
    view = saving.mount("save", data | {"clear": False} | more)
    view.get_by_text(kind, exact=True).click()
    (told,) = saving.pop_sent_values()
    assert told[0] == "take"
    expect(view.locator("[aria-busy]")).to_have_text(kind)
    page = build_view_page(SHOWN, LIGHT, date(2025, 1, 2), width=800)
    encoder = read_standalone_script("film") if kind in ("GIF", "WebM") else ""
    with saving.page.expect_download() as handed:
        answer = {"page": page, "asked": told[1], "encoder": encoder}
        saving.mount("save", data | {"clear": False} | more | answer)
    expect(view.locator("[aria-busy]")).to_have_count(0)
    assert handed.value.suggested_filename == f"shown.{kind.lower()}"
    return handed.value.path().read_bytes()


@pytest.mark.parametrize("clear", [False, True])
def test_a_drawing_has_all_that_the_view_shows(saving: BarePage, clear: bool) -> None:
    root = ElementTree.fromstring(ask(saving, "SVG", clear=clear))
    texts = ["".join(one.itertext()) for one in root.iter(f"{SPACE}text")]
    assert texts[0] == "A heading"
    weights = [f"{value:.2f}" for value in CROSS.weights[1, 2].flat]
    assert set(weights) <= set(texts)
    assert {"ONE", "TWO", "THREE", "w1", "w3", "95%"} <= set(texts)
    assert "Play" not in texts, "what only works in a page is left out"
    images = list(root.iter(f"{SPACE}image"))
    assert len(images) >= 1 + 1
    papers = [one for one in root.iterfind(f"{SPACE}rect") if one.get("width") == root.get("width")]
    assert len(papers) == (not clear)


def test_a_picture_is_as_many_times_larger_as_is_asked(saving: BarePage) -> None:
    data = ask(saving, "PNG", scale=3)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width = int.from_bytes(data[16:20], "big")
    svg = ElementTree.fromstring(ask(saving, "SVG"))
    assert abs(width - 3 * float(svg.get("width", 0))) <= 3


PLAYED = """(bytes) => new Promise((done, failed) => {
  const film = document.createElement("video");
  film.onloadedmetadata = () => done([film.duration, film.videoWidth]);
  film.onerror = () => failed(film.error.message);
  film.src = `data:video/webm;base64,${bytes}`;
})"""


def test_a_film_is_encoded_where_the_browser_trusts_the_page(saving: BarePage, bare: BarePage) -> None:
    data = ask(saving, "WebM", scale=0.3)
    duration, width = saving.page.evaluate(PLAYED, base64.b64encode(data).decode())
    assert duration == pytest.approx(0.7 * len(RESULT.steps) + 2, abs=0.2)
    assert width == pytest.approx(0.3 * 824, abs=3)
    shown = {"name": "", "page": "", "asked": {}, "moves": True, "encoder": "", "scale": 1, "width": 1, "clear": True}
    view = bare.mount("save", shown)
    expect(view.get_by_text("WebM")).to_be_disabled()
    expect(view.get_by_text("GIF")).to_be_enabled()


def test_a_film_has_a_picture_for_each_step(saving: BarePage) -> None:
    data = ask(saving, "GIF", scale=0.3)
    assert data[:6] == b"GIF89a"
    assert data.count(b"\x21\xf9\x04") == len(RESULT.steps)  # Each has a graphic control.


def test_the_welcome_draws_its_sentence_until_the_page_stands(bare: BarePage) -> None:
    data = base64.b64encode(encode_picture(sentence())).decode()
    bare.page.evaluate(
        """(data) => {
          document.body.insertAdjacentHTML("beforeend", `<div data-welcome="${data}"></div>`);
          document.querySelector("[data-welcome]").attachShadow({ mode: "open" }).append(document.createElement("div"));
        }""",
        data,
    )
    bare.page.evaluate(
        """async ([address, welcome]) => {
          const { default: sentence } = await import(`${address}sentence.js`);
          const draw = new Function(`return ${welcome}`)();
          draw(sentence);
        }""",
        [ADDRESS, read_standalone_script("welcome")],
    )
    expect(bare.page.locator("[data-welcome] button[data-side=target]")).to_have_text(["ONE", "TWO", "THREE"])
    bare.page.evaluate("() => { document.documentElement.dataset.arrived = 'explore'; }")
    expect(bare.page.locator("[data-welcome]")).to_have_count(0)
