"""Names of Streamlit's own page that style sheets and scripts look for: those that the installed version has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import streamlit

from tests.scripts import NOT_OWN, VIZ, list_scripts

NAMES_FILE = VIZ / "web" / "src" / "shell" / "streamlit.js"
LOOKED_FOR = re.compile(r"""data-testid[~^$*|]?=["']?([\w-]+)|(?<![\w-])\.(st[A-Z]\w*)""")
WRITTEN = re.compile(rb"""["'`](st[A-Z]\w+|InputInstructions)["'`]""")


def list_names_looked_for() -> dict[str, list[str]]:
    """Each name with the files of `viz/` that look for it."""
    found: dict[str, list[str]] = {}
    for path in sorted(VIZ.rglob("*")):
        if path.suffix in (".css", ".js", ".py") and not NOT_OWN & set(path.parts):
            for names in LOOKED_FOR.findall(path.read_text(encoding="utf-8")):
                found.setdefault("".join(names), []).append(str(path.relative_to(VIZ)))
    return found


def test_the_installed_streamlit_has_every_name_that_is_looked_for() -> None:
    scripts = (Path(streamlit.__file__).parent / "static").rglob("*.js")
    written = {name.decode() for path in scripts for name in WRITTEN.findall(path.read_bytes())}
    looked_for = list_names_looked_for()
    assert len(looked_for) > 40
    assert {name: files for name, files in looked_for.items() if name not in written} == {}


def test_one_file_of_the_scripts_knows_the_names() -> None:
    knowing = [path for path in list_scripts() if "data-testid" in path.read_text(encoding="utf-8")]
    assert knowing == [NAMES_FILE]


def test_a_page_says_of_its_names_what_they_are_in_comments() -> None:
    """Streamlit draws a string that stands alone in a page's script, also one below a name."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in sorted((VIZ / "pages").glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body[1:]  # behind the docstring
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    assert found == []
