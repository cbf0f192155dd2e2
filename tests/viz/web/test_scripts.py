"""What Python mounts of dist/: built scripts and sheets, with the reader's messages before them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import streamlit

from attenscope.language import LANGUAGES, load_catalogue, use_language
from attenscope.viz import streamlit_internals
from attenscope.viz.web import component_scripts
from attenscope.viz.web.component_scripts import (
    DIST_FOLDER,
    STANDALONE,
    build_fetching_module,
    build_messages_statement,
    build_scripts_constant,
    build_standalone_module,
    list_needed_scripts,
    read_component_style_sheet,
    read_standalone_script,
    translate_script_messages,
)
from tests import messages
from tests.scripts import COMPONENTS_FOLDER, list_scripts

BUILT = sorted(path.stem for path in DIST_FOLDER.glob("*.js"))
COMPONENTS = sorted(path.stem for path in COMPONENTS_FOLDER.glob("*/*.js") if path.stem == path.parent.name)
FETCHED = re.compile(r"\./scripts/(\w+)\.js\?([0-9a-f]{8})")
SAID: dict[str, list[list[str]]] = json.loads((DIST_FOLDER / "messages.json").read_text(encoding="utf-8"))


def test_every_component_is_built() -> None:
    assert len(COMPONENTS) > 20
    assert set(COMPONENTS) <= set(BUILT)
    sheets = {path.stem for path in COMPONENTS_FOLDER.glob("*/*.css") if path.stem == path.parent.name}
    assert len(sheets) > 20
    assert sheets <= {path.stem for path in DIST_FOLDER.glob("*.css")}
    assert set(SAID) <= set(BUILT)


@pytest.mark.parametrize("name", STANDALONE)
def test_a_standalone_script_is_one_expression_that_can_stand_in_any_page(name: str) -> None:
    script = read_standalone_script(name)
    assert script.startswith("(()=>{")
    assert script.endswith("})()")
    assert "</script" not in script.lower()


@pytest.mark.parametrize("name", [name for name in BUILT if name not in STANDALONE])
def test_a_built_script_stands_behind_those_that_it_builds_on(name: str) -> None:
    *before, last = list_needed_scripts([name])
    assert last == name
    assert all(set(list_needed_scripts([one])) <= {*before, name} for one in before)
    code = build_scripts_constant([name])
    starts = [code.index(f"scripts.{one} = (") for one in [*before, name]]
    assert starts == sorted(starts)
    assert "</script" not in code.lower()
    assert build_standalone_module(name) == f"{code}export default scripts.{name};\n"


def test_a_page_names_the_version_of_each_script_that_it_fetches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("shared.js", "overview.js", "messages.json"):
        (tmp_path / name).write_bytes((DIST_FOLDER / name).read_bytes())
    monkeypatch.setattr(component_scripts, "DIST_FOLDER", tmp_path)
    before = build_fetching_module("overview", "./scripts")
    assert [name for name, _ in FETCHED.findall(before)] == ["shared", "overview"]
    assert len(before) < 600  # It is sent with every message.
    (tmp_path / "shared.js").write_text("export default({})=>{return{}}\n")
    addresses = [FETCHED.findall(text) for text in (before, build_fetching_module("overview", "./scripts"))]
    assert [one == other for one, other in zip(*addresses, strict=True)] == [False, True]


def test_a_sheet_begins_with_what_all_components_share() -> None:
    assert read_component_style_sheet("overview").startswith(read_component_style_sheet("shell"))
    assert read_component_style_sheet("overview") != read_component_style_sheet("shell")


def test_messages_stand_before_scripts_in_the_language_that_is_spoken() -> None:
    assert build_messages_statement(["overview"]) == 'const MESSAGES = {"language": "en", "said": {}};\n'
    assert build_scripts_constant(["overview"]).startswith(
        'const scripts = { MESSAGES: {"language": "en", "said": {}} };\n'
    )
    with use_language("de"):
        declared = build_scripts_constant(["overview"]).partition(" };\n")[0]
    spoken = json.loads(declared.removeprefix("const scripts = { MESSAGES: "))
    assert spoken["language"] == "de"
    assert spoken["said"]["Layer {layer}, head {head}"] == load_catalogue("de").gettext("Layer {layer}, head {head}")
    said = {form for name in list_needed_scripts(["overview"]) for forms in SAID.get(name, []) for form in forms}
    assert set(spoken["said"]) == said


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_forms_of_a_message_stand_there(language: str) -> None:
    name, (one, many) = next((name, forms) for name in SAID for forms in SAID[name] if len(forms) == 2)
    with use_language(language):
        spoken = {one: one, many: many} | translate_script_messages([name])
    catalogue = load_catalogue(language)
    assert (spoken[one], spoken[many]) == (catalogue.ngettext(one, many, 1), catalogue.ngettext(one, many, 2))


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "en"])
def test_every_message_of_a_script_has_a_translation(language: str) -> None:
    found = {one.id if isinstance(one.id, str) else tuple(one.id): one for one in messages.read(language)}
    said = {forms[0] if len(forms) == 1 else tuple(forms) for of in SAID.values() for forms in of}
    assert len(said) > 100
    assert [one for one in said if one not in found or not messages.is_translated(found[one])] == []


def test_no_message_is_also_a_form_of_another() -> None:
    """They stand in one dictionary by the English ones."""
    said = {tuple(forms) for of in SAID.values() for forms in of}
    every = [form for forms in said for form in forms]
    assert sorted(every) == sorted(set(every))


def test_every_literal_message_of_the_sources_is_declared() -> None:
    wanted = set(messages.in_scripts())
    assert {forms[0] if len(forms) == 1 else tuple(forms) for of in SAID.values() for forms in of} == wanted


@pytest.mark.parametrize("path", list_scripts(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_scripts_never_write_html(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert unsafe not in text


def test_what_a_view_sends_after_it_has_left_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is left while a step is under way: the callback would ask for a value that is gone."""
    mounted: dict[str, Any] = {}
    monkeypatch.setattr(streamlit_internals, "serve_folder", lambda *_: "")
    monkeypatch.setattr(component_scripts, "_register_component", lambda *_: mounted.update)
    monkeypatch.setattr(streamlit, "session_state", {"player": "step 3"})
    heard: list[str] = []
    mount = component_scripts.create_mount_function("decode_player")
    mount(key="player", data={}, on_step_change=lambda: heard.append(component_scripts.component_value("player")))
    mounted["on_step_change"]()
    assert heard == ["step 3"]
    del streamlit.session_state["player"]
    mounted["on_step_change"]()
    assert heard == ["step 3"]
