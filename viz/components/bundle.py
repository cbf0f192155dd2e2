"""How a component's modules are joined: Streamlit takes one JavaScript text, so imports are followed and inlined.

All modules of a component then share one scope: a module's own imports come first, each file once, and the import
lines and the comments are dropped. Names must therefore be unique within a component. Messages (shared/say.js) are put
in the current language, and it is named (shared/number.js).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from model.language.catalogue import SOURCE, catalogue
from model.language.current import current_language

HERE = Path(__file__).parent
IMPORT = re.compile(r'^import .* from "(?P<path>\.[^"]+)";\n', re.MULTILINE)
COMMENT = re.compile(r"^[ ]*(?:/\*\*.*?\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
"""A line of nothing but a comment, or several: every rerun sends each visitor the scripts of a page anew."""

LANGUAGE = 'const LANGUAGE = "{}";'
"""How a script names the language that is spoken (shared/number.js)."""
MESSAGE = re.compile(r'"(?:[^"\\\n]|\\.)*"')
SAID = re.compile(rf"\bsay\(\s*{MESSAGE.pattern}|\bsayMany\(\s*{MESSAGE.pattern},\s*{MESSAGE.pattern}")
SHEET = re.compile(r'^@import "(?P<path>\.[^"]+)";\n', re.MULTILINE)


def bundle(entry: Path) -> str:
    """The JavaScript of `entry` with everything it imports, directly or not, before it, in the current language."""
    found: dict[Path, str] = {}
    _collect(entry.resolve(), found)
    spoken = "\n".join(found.values()).replace(LANGUAGE.format(SOURCE), LANGUAGE.format(current_language()))
    return SAID.sub(_translated, spoken)


def _translated(call: re.Match[str]) -> str:
    """The beginning of a call of `say` or `sayMany` with its one or two messages translated."""
    messages, spoken = [json.loads(one) for one in MESSAGE.findall(call[0])], catalogue(current_language())
    if len(messages) == 1:
        forms = iter([spoken.gettext(messages[0])])
    else:
        forms = iter([spoken.ngettext(messages[0], messages[1], count) for count in (1, 2)])
    return MESSAGE.sub(lambda _: json.dumps(next(forms), ensure_ascii=False), call[0])


def _collect(path: Path, found: dict[Path, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for match in IMPORT.finditer(text):
        needed = (path.parent / match["path"]).resolve()
        if needed not in found:
            _collect(needed, found)
    found[path] = COMMENT.sub("", IMPORT.sub("", text))


def component(name: str) -> Callable[..., Any]:
    """Return what mounts the view in the folder `name` (name.js, name.css); Streamlit hears of it when it first does.

    What packs the data of a view needs no Streamlit: a notebook mounts the same views without.
    """

    def mount(**arguments: Any) -> Any:
        return _registered(name, current_language())(**arguments)

    return mount


@functools.cache
def _registered(name: str, language: str) -> Any:
    import streamlit as st

    own = f"attenscope_{name}" if language == SOURCE else f"attenscope_{name}_{language}"
    return st.components.v2.component(own, css=style(name), js=bundle(HERE / name / f"{name}.js"))


def told(key: str) -> Any:
    """Return what the view mounted as `key` has told last; for callbacks."""
    import streamlit as st

    return st.session_state[key]


def style(name: str) -> str:
    """The CSS of the view in the folder `name`, after what all views share; a sheet it imports stands in its place."""
    sheets = HERE / "shared" / "shared.css", HERE / name / f"{name}.css"
    return "".join(map(_sheet, sheets))


def _sheet(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return SHEET.sub(lambda match: _sheet(path.parent / match["path"]), text)
