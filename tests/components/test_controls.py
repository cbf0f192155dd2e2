"""Components with which something is chosen, and those that draw nothing but mind the page around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from attenscope.viz.web import maps
from attenscope.viz.web.component_scripts import pack_arrays
from tests.components.bare_page import BarePage

NAMES: Any = {"encoder": "Encoder", "cross": "Cross", "decoder": "Decoder"}
LAYERS: Any = {"encoder": 2, "decoder": 3, "cross": 3}


def test_a_block_of_the_transformer_chooses_its_kind_and_layer(bare: BarePage) -> None:
    view = bare.mount("transformer", maps.transformer_data(LAYERS, ("cross", 1, 2), NAMES, 4))
    pressed = view.locator(".block[aria-pressed=true]")
    expect(pressed).to_have_count(2)
    expect(pressed.nth(0)).to_have_attribute("title", "Cross-attention, layer 2")
    expect(view.get_by_text("next word")).to_be_visible()
    view.get_by_label("Encoder self-attention, layer 1").click()
    view.get_by_label("Head 4").click()
    view.locator(".name", has_text="Decoder").click()
    assert bare.pop_sent_values() == [
        ["pick", {"kind": "encoder", "layer": 0}],
        ["pick", {"head": 3}],
        ["pick", {"kind": "decoder"}],
    ]
    expect(view.locator(".name[aria-pressed=true]")).to_have_text("Decoder")
    view.get_by_label("Head 4").press("ArrowLeft")
    expect(view.get_by_label("Head 3")).to_be_focused()
    view.get_by_label("Encoder self-attention, layer 1").press("ArrowRight")
    expect(view.get_by_label("Encoder self-attention, layer 2")).to_be_focused()


def test_stacks_that_have_no_room_stand_below_each_other(bare: BarePage) -> None:
    names = {kind: name * 12 for kind, name in NAMES.items()}
    view = bare.mount("transformer", maps.transformer_data({"decoder": 12}, ("decoder", maps.EVERY_LAYER, 0), names, 0))
    expect(view.locator(".block[aria-pressed=true]")).to_have_count(12)
    expect(view.locator(".block").nth(0)).to_have_text("")  # Numbers of so many have no room.
    view.locator(".block").nth(3).click()
    assert bare.pop_sent_values() == [["pick", {"kind": "decoder"}]]
    view = bare.mount("transformer", maps.transformer_data(LAYERS, ("cross", 0, 0), names, 0))
    bare.page.set_viewport_size({"width": 400, "height": 700})
    expect(view).to_have_class("transformer whole stacked")
    bare.page.set_viewport_size({"width": 2400, "height": 700})
    expect(view).to_have_class("transformer whole")
    bare.unmount()


def test_heads_are_switched_off_and_on_alone_and_by_layer(bare: BarePage) -> None:
    boards = [{"kind": "cross", "name": "Cross-attention", "layers": 2, "heads": 2}]
    view = bare.mount("switchboard", {"boards": boards, "off": [["cross", 0, 1]]})
    expect(view.locator(".head[aria-pressed=false]")).to_have_attribute(
        "aria-label", "Cross-attention, layer 1, head 2"
    )
    view.get_by_label("Cross-attention, layer 2, head 1").click()
    view.get_by_label("Cross-attention, layer 1, head 2").click()
    view.get_by_title("Switch all heads of layer 2").click()
    view.get_by_title("Switch all heads of layer 2").click()
    assert [len(told) for _, told in bare.pop_sent_values()] == [2, 1, 2, 0]
    expect(view.locator(".head[aria-pressed=false]")).to_have_count(0)
    view.locator(".head").nth(0).press("ArrowDown")
    expect(view.locator(".head").nth(2)).to_be_focused()


def test_the_language_is_told_and_the_theme_kept_for_all_pages(bare: BarePage) -> None:
    bare.page.evaluate("""() => {
      window.pressed = [];
      for (const name of ["stMainMenuButton", "stMainMenuItem-theme-Dark"]) {
        const item = document.body.appendChild(document.createElement("button"));
        item.dataset.testid = name;
        item.onclick = () => pressed.push(name);
      }
      localStorage.setItem("stActiveTheme-/-v2", '"Light"');
    }""")
    words = {"language": "Language", "theme": "Theme", "themes": ["as the system", "light", "dark"]}
    data = {
        "words": words,
        "languages": [["en", "English"], ["de", "Deutsch"]],
        "current": "de",
        "pages": ["", "heads"],
    }
    view = bare.mount("preferences", data)
    language, theme = view.get_by_label("Language"), view.get_by_label("Theme")
    expect(language).to_have_value("de")
    expect(theme).to_have_value("Light")
    language.select_option("English")
    assert bare.pop_sent_values() == [["chosen", "en"]]
    theme.select_option("dark")
    bare.page.wait_for_function("() => pressed.length === 2")
    assert bare.page.evaluate("() => localStorage.getItem('stActiveTheme-/heads-v2')") == '"Dark"'


def test_the_preferences_are_there_where_a_browser_keeps_nothing(bare: BarePage) -> None:
    words = {"language": "Language", "theme": "Theme", "themes": ["as the system", "light", "dark"]}
    bare.page.evaluate(
        "Object.defineProperty(window, 'localStorage', { configurable: true,"
        " get: () => { throw new DOMException('', 'SecurityError'); } })"
    )
    view = bare.mount("preferences", {"words": words, "languages": [["en", "English"]], "current": "en", "pages": [""]})
    expect(view.get_by_label("Theme")).to_have_value("System")
    view.get_by_label("Theme").select_option("dark")
    expect(view.get_by_label("Language")).to_have_value("en")
    bare.page.reload()


def test_the_menu_copies_the_address_and_presents_the_page(bare: BarePage) -> None:
    bare.page.evaluate("""() => {
      window.keys = [];
      window.copied = "";
      document.addEventListener("keydown", ({ key }) => keys.push(key));
      document.addEventListener("copy", () => (copied = getSelection().toString() || document.activeElement.value));
    }""")
    view = bare.mount("page_menu", {"copy": "Copy the link", "copied": "Copied", "present": "Full screen"})
    view.get_by_text("Copy the link").click()
    expect(view.get_by_text("Copied")).to_be_visible()
    assert bare.page.evaluate("() => copied") == bare.page.url
    view.get_by_text("Full screen").click()
    assert bare.page.evaluate("() => keys") == ["p"]


APP = """<div data-testid="stApp" data-test-script-state="running" style="--accent: red; color-scheme: light">
  <div data-testid="stMainBlockContainer"><div data-testid="stElementContainer">words</div></div></div>"""
ADD = "(html) => document.body.insertAdjacentHTML('beforeend', html)"


def test_a_page_appears_once_its_script_has_run_and_nothing_moves(bare: BarePage) -> None:
    bare.page.evaluate(ADD, APP)
    bare.mount("shell", {"part": "arrival", "page": "explore", "language": "de"}, "arrival")
    root = bare.page.locator("html")
    expect(root).to_have_attribute("lang", "de")
    bare.page.wait_for_timeout(300)
    assert root.get_attribute("data-arrived") is None
    bare.page.evaluate(
        "() => { document.querySelector('[data-testid=stApp]').dataset.testScriptState = 'notRunning'; }"
    )
    expect(root).to_have_attribute("data-arrived", "explore")
    bare.mount("shell", {"part": "arrival", "page": "heads", "language": "de"}, "arrival")
    assert root.get_attribute("data-arrived") is None
    expect(root).to_have_attribute("data-arrived", "heads")


def test_another_colour_scheme_is_told_once(bare: BarePage) -> None:
    bare.page.evaluate(ADD, APP)
    bare.mount("shell", {"part": "theme", "drawn": "light"})
    assert bare.pop_sent_values() == []
    dark = """(name) => {
      const app = document.querySelector("[data-testid=stApp]");
      app.style.colorScheme = "dark";
      app.className = name;
    }"""
    bare.page.evaluate(dark, "a")
    bare.page.evaluate(dark, "b")
    assert bare.pop_sent_values() == [["shown", "dark"]]


def test_enter_submits_once_what_is_drawn_before_is_there_and_what_is_pasted_at_once(bare: BarePage) -> None:
    bare.page.evaluate(ADD, '<div class="st-key-sentence"><textarea></textarea></div>')
    bare.page.evaluate("""() => {
      window.heard = [];
      document.querySelector("textarea").addEventListener("keydown", ({ key, ctrlKey }) => heard.push([key, ctrlKey]));
      document.addEventListener("attenscope-submit", ({ detail }) => window.wait && detail.push(window.wait));
    }""")
    bare.mount("shell", {"part": "enter", "box": "sentence"}, "enter")
    bare.mount("shell", {"part": "paste", "box": "sentence"}, "paste")
    box, heard = bare.page.locator("textarea"), "() => heard.splice(0)"
    box.press("Enter")
    assert bare.page.evaluate(heard) == [["Enter", True]]
    box.press("Shift+Enter")
    assert bare.page.evaluate(heard)[-1] == ["Enter", False]
    bare.page.evaluate("() => { window.wait = new Promise((done) => (window.go = done)); }")
    box.press("Enter")
    assert bare.page.evaluate("() => [heard.length, 'submitting' in document.documentElement.dataset]") == [0, True]
    bare.page.evaluate("() => window.go()")
    bare.page.wait_for_function("() => heard.length")
    assert bare.page.evaluate("() => 'submitting' in document.documentElement.dataset") is False
    bare.page.evaluate(heard)
    bare.page.keyboard.insert_text("a whole sentence")
    bare.page.wait_for_function("() => heard.length")
    assert bare.page.evaluate(heard) == [["Enter", True]]
    box.press("b")
    assert bare.page.evaluate(heard) == [["b", False]]
    bare.unmount("enter")
    bare.unmount("paste")
    box.press("Enter")
    assert bare.page.evaluate(heard) == [["Enter", False]]


def test_a_draft_is_kept_and_given_back_once(bare: BarePage) -> None:
    bare.mount("shell", {"part": "draft", "name": "talk", "text": "my talk"}, "one")
    bare.unmount("one")
    bare.mount("shell", {"part": "draft", "name": "talk", "text": ""}, "two")
    bare.mount("shell", {"part": "draft", "name": "talk", "text": ""}, "two")
    assert bare.pop_sent_values() == [["found", {"text": "my talk"}]]


def test_files_are_asked_for_kept_and_given_back_when_they_are_lost(bare: BarePage) -> None:
    known = {"a.npz": "key-a"}

    def files(body: bytes = b"", **more: object) -> bytes:
        return pack_arrays({"part": "files", "known": known, "lost": {}, "sent": None} | more, body)

    bare.mount("shell", files())
    bare.page.wait_for_function("() => window.sent.length")
    assert bare.pop_sent_values() == [["wanted", {"name": "a.npz"}]]
    bare.mount("shell", files(np.arange(3, dtype=np.uint8).tobytes(), sent="a.npz"))
    bare.mount("shell", files(known={}, lost={"b": "key-b", "a.npz": "key-a"}))
    bare.page.wait_for_function("() => window.sent.length")
    assert bare.pop_sent_values() == [["found", {"name": "a.npz", "data": "AAEC"}]]


@pytest.mark.parametrize("trusted", [True, False])
def test_an_action_is_one_step_of_the_history_and_what_is_scrubbed_none(bare: BarePage, trusted: bool) -> None:
    bare.page.evaluate(ADD, APP.replace("running", "notRunning") + "<button>act</button>")
    bare.page.evaluate("() => { document.documentElement.dataset.arrived = 'explore'; }")
    bare.mount("shell", {"part": "history", "scrubbed": ["step"], "ofSentence": ["word"]})
    count = "() => history.length"
    before = bare.page.evaluate(count)
    act = bare.page.get_by_text("act")
    if trusted:
        act.click()
    else:
        act.dispatch_event("click")
    bare.page.evaluate("() => history.replaceState(null, '', '/?layer=1&step=3')")
    bare.page.evaluate("() => history.pushState(null, '', '/?layer=1&head=2')")
    assert bare.page.evaluate(count) == before + trusted, "what the script writes besides belongs to the same step"
    assert bare.page.url.endswith("/?layer=1&head=2")
    act.click()
    bare.page.evaluate("() => history.replaceState(null, '', '/?layer=1&head=2&step=9')")
    assert bare.page.evaluate(count) == before + trusted
    if trusted:
        bare.page.go_back()
        bare.page.evaluate("() => history.replaceState(null, '', '/?layer=7')")
        assert not bare.page.url.endswith("layer=7"), "an entry stays as it was until the visitor acts"
