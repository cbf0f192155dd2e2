"""The notebook widget in a page of its own, with a model that answers as anywidget's does: what is drawn and told."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from attenscope.viz.figures.figure_style import Look
from attenscope.viz.notebook.views import NOTEBOOK_VIEWS, NotebookState, build_widget_script, encode_widget_content
from tests.browser.conftest import visit
from tests.viz.fakes import FakeTranslator

RESULT = FakeTranslator().translate("one two three")
PAGE = """<!doctype html><meta charset="utf-8"><body style="margin: 1rem">
<script type="module">
import widget from "data:text/javascript;base64,%s";
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer);
window.told = [];
window.models = [];
window.show = (values) => {
  const heard = [];
  const model = {
    values: { ...values, content: bytes(values.content) },
    get(name) { return this.values[name]; },
    set(name, value) { window.told.push([models.indexOf(this), name, value]); this.values[name] = value; },
    save_changes() {},
    on: (name, call) => heard.push(call),
    off: (name, call) => heard.splice(heard.indexOf(call), 1),
    answer(content) { this.values.content = bytes(content); heard.forEach((call) => call()); },
  };
  models.push(model);
  const el = document.body.appendChild(document.createElement("section"));
  model.end = widget.render({ model, el });
};
window.ready = true;
</script>"""


def content(view: Any, **more: Any) -> str:
    chosen: dict[str, Any] = {"kind": "cross", "layer": 1, "head": 2, "translation": RESULT} | more
    trace = chosen.pop("trace", RESULT.trace)
    return base64.b64encode(encode_widget_content(NotebookState(trace, view, **chosen), Look())).decode()


def show(page: Page, view: str, **more: Any) -> Locator:
    values = {"view": view, "kind": "cross", "layer": 1, "head": 2, "content": content(view, **more)}
    before = page.locator("body > section").count()
    page.evaluate("(values) => show(values)", values)
    drawn = page.locator("body > section").nth(before).locator(".attenscope")
    expect(drawn).to_have_attribute("data-painted", f"{view} {more.get('kind', 'cross')} 1.2")
    return drawn


@pytest.fixture
def notebook(chromium: Browser, tmp_path: Path) -> Iterator[Page]:
    file = tmp_path / "notebook.html"
    file.write_text(PAGE % base64.b64encode(build_widget_script().encode()).decode(), encoding="utf-8")
    with visit(chromium, "file:", viewport={"width": 1200, "height": 900}, reduced_motion="reduce") as page:
        page.goto(file.as_uri())
        page.wait_for_function("window.ready")
        yield page


def told(page: Page) -> list[Any]:
    found: list[Any] = json.loads(page.evaluate("JSON.stringify(told.splice(0))"))
    return found


@pytest.mark.sweep
def test_a_chosen_head_is_told_and_drawn_at_once_and_other_widgets_stay(notebook: Page) -> None:
    """Two widgets of maps alike in size: what one of them says is not meant for the other."""
    first, second = show(notebook, "heatmap"), show(notebook, "heatmap")
    first.locator(".tile").nth(0).click()
    assert told(notebook) == [[0, "layer", 0], [0, "head", 0]]
    expect(first.locator(".heatmap")).to_have_attribute("data-painted", "Cross-attention · layer 1, head 1 …")
    expect(second.locator(".heatmap")).to_have_attribute("data-painted", "Cross-attention · layer 2, head 3")
    tile = first.locator(".tile").nth(0).element_handle()
    notebook.evaluate("([text]) => models[0].answer(text)", [content("heatmap", layer=0, head=0)])
    expect(first.locator(".heatmap")).to_have_attribute("data-painted", "Cross-attention · layer 1, head 1")
    assert tile is not None
    assert tile.evaluate("(one) => one.isConnected && one === one.getRootNode().activeElement")


@pytest.mark.sweep
def test_kinds_views_and_pins_are_told(notebook: Page) -> None:
    drawn = show(notebook, "text")
    drawn.get_by_role("button", name="encoder", exact=True).click()
    drawn.get_by_role("button", name="links", exact=True).click()
    assert told(notebook) == [[0, "kind", "encoder"], [0, "view", "links"]]
    drawn.locator(".texts button").first.click()
    assert told(notebook) == [[0, "pinned", [0, None]]]
    expect(drawn.locator(".texts button").first).to_have_attribute("aria-pressed", "true")
    overview = show(notebook, "overview")
    overview.locator(".tile").nth(5).click()
    assert told(notebook) == [[1, "layer", 1], [1, "head", 1], [1, "view", "heatmap"]]


@pytest.mark.sweep
def test_keys_of_the_notebook_stay_its_own(notebook: Page) -> None:
    player = show(notebook, "decode").locator(".decode-player")
    expect(player).to_have_attribute("data-step", "1")
    notebook.keyboard.press("ArrowRight")
    expect(player).to_have_attribute("data-step", "1")
    player.locator("input[type=range]").focus()
    notebook.keyboard.press("ArrowRight")
    expect(player).to_have_attribute("data-step", "2")


@pytest.mark.sweep
@pytest.mark.parametrize("view", NOTEBOOK_VIEWS)
def test_every_view_stands_in_light_and_dark_and_none_is_cut_off(notebook: Page, view: Any) -> None:
    for width, ink in ((1200, "rgb(28, 27, 34)"), (390, "rgb(28, 27, 34)"), (390, "rgb(236, 234, 243)")):
        notebook.set_viewport_size({"width": width, "height": 900})
        if ink.endswith("243)"):
            notebook.evaluate("document.body.style.background = '#111'")
        if notebook.locator("body > section").count() == 0:
            drawn = show(notebook, view)
        expect(drawn).to_have_css("color", ink)
        assert drawn.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        assert notebook.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.sweep
def test_a_widget_that_is_taken_away_leaves_nothing_behind(notebook: Page) -> None:
    show(notebook, "heatmap", trace=replace(RESULT.trace, model="<b>A model</b>"))
    expect(notebook.get_by_text("<b>A model</b>")).to_be_visible()
    notebook.evaluate("models[0].end()")
    expect(notebook.locator(".tile")).to_have_count(0)
    notebook.evaluate("document.body.style.background = '#111'")
    notebook.evaluate("([text]) => models[0].answer(text)", [content("links")])
    expect(notebook.locator(".tile")).to_have_count(0)
