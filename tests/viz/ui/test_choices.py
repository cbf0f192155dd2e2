"""Choices: what is chosen is the same in every language, and only its words are the visitor's."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from attenscope import viz
from attenscope.checkpoint.load import list_checkpoints
from attenscope.viz.ui import controls
from attenscope.viz.visitor_language import LANGUAGE_KEY

VIZ = Path(viz.__file__).parent
DRAWN_BY_OFFER = {"selectbox", "radio", "segmented_control", "pills", "multiselect", "select_slider"}
SAYING = {"say", "say_many", "label", "name_of"}
NAMED = ("key", "slot")
FILES = sorted(VIZ.rglob("*.py"))
OFFERS = """
import streamlit as st
from attenscope.language import say
from attenscope.viz.ui import controls
draw = controls.draw_untranslated_choice
st.session_state["got"] = draw(st.{widget}, "x", ("light", "dark"), key="colour", format_func=say)
"""


def calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def says(node: ast.AST) -> bool:
    """Whether words of the visitor's language are made in it; those that a `format_func` makes do not count."""
    names = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    return any(ast.unparse(name).rpartition(".")[2] in SAYING for name in names)


def test_choices_are_drawn_by_one_function_and_no_key_is_a_word() -> None:
    found = []
    for file in FILES:
        for name, call in calls(file):
            place, widget = f"{file.relative_to(VIZ)}:{call.lineno}", name.rpartition(".")[2]
            if name.startswith("st.") and widget in DRAWN_BY_OFFER:
                found.append(f"{place}: draw_untranslated_choice draws it")
            keys = [one.value for one in call.keywords if one.arg in NAMED]
            options = call.args[2:3] if widget == "draw_untranslated_choice" else []
            if any(map(says, (*keys, *options))):
                found.append(f"{place}: a key or an option is a word")
    assert found == []


@pytest.mark.parametrize("widget", ["selectbox", "radio"])
def test_a_browser_gets_the_words_of_another_language_and_keeps_its_choice(widget: str) -> None:
    app = AppTest.from_string(OFFERS.format(widget=widget))
    app.session_state[LANGUAGE_KEY] = "en"
    app.run()
    getattr(app, widget)(key="colour").set_value("dark").run()
    assert app.session_state["got"] == "dark"
    app.session_state[LANGUAGE_KEY] = "de"
    app.run()
    assert getattr(app, widget)(key="colour").proto.set_value
    assert app.session_state["got"] == "dark"


class Recorded:
    """The keys and the options of all choices that a page draws."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: dict[str, list[Any]] = {}
        offer = controls.draw_untranslated_choice

        def recording(draw: Any, label: str, options: Any, *rest: Any, key: str, **more: Any) -> Any:
            self.found[key] = list(options)
            return offer(draw, label, options, *rest, key=key, **more)

        monkeypatch.setattr(controls, "draw_untranslated_choice", recording)

    def of(self, address: str, language: str) -> dict[str, list[Any]]:
        parts = urlsplit(address)
        app = AppTest.from_file(str(VIZ / "pages" / f"{parts.path.strip('/') or 'explore'}.py"), default_timeout=120)
        app.query_params.update(dict(parse_qsl(parts.query)))
        app.session_state[LANGUAGE_KEY] = language
        self.found = {}
        app.run()
        assert not app.exception
        return self.found


SENTENCE = "sentence=He+turned+the+offer+down."
VIEWS = (
    *(f"/?{SENTENCE}&view={view}" for view in ("heatmap", "links", "flow", "pipeline", "compare")),
    *(f"/why?{SENTENCE}&why={view}" for view in ("source+words", "heads", "score", "two+sentences")),
    *(f"/positions?{SENTENCE}&plot={view}" for view in ("table", "waves", "similarity", "sentence", "experiments")),
    *(f"/masks?{SENTENCE}&{view}" for view in ("from=build", "part=gallery", "part=try+on+the+model", "part=convert")),
    f"/decode?{SENTENCE}",
    f"/training?{SENTENCE}",
    "/heads?heads=map",
    "/heads?heads=projection",
    "/talk",
)


@pytest.mark.sweep
@pytest.mark.timeout(300)
@pytest.mark.skipif("everyday-en-de" not in list_checkpoints(), reason="the checkpoint is not here")
@pytest.mark.parametrize("address", VIEWS)
def test_the_options_of_a_page_are_the_same_in_every_language(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    english = recorded.of(address, "en")
    assert english
    assert recorded.of(address, "de") == english


def test_words_of_options_that_are_gone_choose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the scenes of a talk before Undo, whose titles a browser may still send."""
    state: dict[str, Any] = {}
    monkeypatch.setattr(controls.st, "session_state", state)
    heard: list[Any] = []
    callbacks: list[Callable[[], None]] = []

    def draw(label: str, options: Sequence[int], *, key: str, on_change: Callable[[], None]) -> None:
        callbacks.append(on_change)

    controls.draw_untranslated_choice(
        draw, "Scenes", range(3), key="scene", on_change=lambda: heard.append(state["scene"])
    )
    for sent in (1, "4 A title", 2, [0, 2], ["4 A title"]):
        state["scene"] = sent
        callbacks[0]()
    assert heard == [1, 2, [0, 2]]
