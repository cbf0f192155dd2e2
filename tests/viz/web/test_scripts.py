"""What Python mounts of dist/: built scripts and sheets, with the reader's messages before them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attenscope.language import LANGUAGES, load_catalogue, use_language
from attenscope.viz.web.bundle import (
    DIST_FOLDER,
    build_module,
    declare_messages,
    read_component_sheet,
    read_script,
    translate_messages,
)
from tests import messages
from tests.scripts import COMPONENTS_FOLDER, list_scripts

BUILT = sorted(path.stem for path in DIST_FOLDER.glob("*.js"))
COMPONENTS = sorted(path.stem for path in COMPONENTS_FOLDER.glob("*/*.js") if path.stem == path.parent.name)
SAID: dict[str, list[list[str]]] = json.loads((DIST_FOLDER / "messages.json").read_text(encoding="utf-8"))


def test_every_component_is_built() -> None:
    assert len(COMPONENTS) > 25
    assert set(COMPONENTS) <= set(BUILT)
    sheets = {path.stem for path in COMPONENTS_FOLDER.glob("*/*.css") if path.stem == path.parent.name}
    assert len(sheets) > 20
    assert sheets <= {path.stem for path in DIST_FOLDER.glob("*.css")}
    assert set(SAID) <= set(BUILT)


@pytest.mark.parametrize("name", BUILT)
def test_a_built_script_is_one_expression_that_can_stand_in_any_page(name: str) -> None:
    script = read_script(name)
    assert script.startswith("(()=>{")
    assert script.endswith("})()")
    assert "</script" not in script.lower()
    assert build_module(name).endswith(f"export default {script};\n")


def test_a_sheet_begins_with_what_all_components_share() -> None:
    assert read_component_sheet("overview").startswith(read_component_sheet("theme_watch"))
    assert read_component_sheet("overview") != read_component_sheet("theme_watch")


def test_messages_stand_before_a_script_in_the_language_that_is_spoken() -> None:
    assert declare_messages(["overview"]) == 'const MESSAGES = {"language": "en", "said": {}};\n'
    with use_language("de"):
        declared = declare_messages(["overview"])
    spoken = json.loads(declared.removeprefix("const MESSAGES = ").removesuffix(";\n"))
    assert spoken["language"] == "de"
    assert spoken["said"]["Layer {layer}, head {head}"] == load_catalogue("de").gettext("Layer {layer}, head {head}")
    assert set(spoken["said"]) == {form for forms in SAID["overview"] for form in forms}


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_forms_of_a_message_stand_there(language: str) -> None:
    name, (one, many) = next((name, forms) for name in SAID for forms in SAID[name] if len(forms) == 2)
    with use_language(language):
        spoken = {one: one, many: many} | translate_messages([name])
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
