"""Who imports whom: the contracts of pyproject.toml bite, and one name leads to every module."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.types import ROOT, import_command

FORBIDDEN = {
    "viz/figures": ("attenscope", "streamlit", "torch"),
    "viz": ("torch", "bench", "tests"),
    "model": ("attenscope", "streamlit", "plotly", "bench", "tests"),
}
"""What the files of a folder do without when they run, besides their own folder; types may be named.

The model side imports itself relatively: `python -m model` and an editable install give it other names.
"""
FOUNDATIONS = ("model/trace.py", "model/network/config.py")
"""What stands on nothing but messages and the writing of files."""
MODULES = sorted(path for part in ("model", "viz") for path in (ROOT / part).rglob("*.py"))
WITHOUT_TORCH = ("trace", "untrusted_trace", "masks.rule", "masks.conventions", "masks.read_files")
WRONG = {
    "analysis/flow.py": "from ..atlas import query\n",
    "masks/row_checks.py": "import torch\n",
    "viz/figures/heatmap.py": "import streamlit\n",
    "viz/why/texts.py": "from attenscope.viz.heads import texts\n",
}
"""File -> an import that no contract allows: upwards, of torch, of Streamlit, from one page into another."""


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def running_names(path: Path) -> tuple[str, ...]:
    """The modules that the imports of a file that run name in full."""
    return tuple(name for node in running_imports(parse(path)) for name in imported_names(node))


def imported_modules(path: Path) -> Iterator[str]:
    """The names in the absolute imports of a file, also inside functions."""
    for node in ast.walk(parse(path)):
        yield from imported_names(node)


def imported_names(node: ast.AST) -> Iterator[str]:
    """The modules that a statement imports by their full names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield node.module or ""


def running_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import that runs, also inside a function: what stands under TYPE_CHECKING does not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from running_imports(child)


@pytest.mark.sweep
@pytest.mark.parametrize("folder", FORBIDDEN)
def test_what_a_folder_does_without(folder: str) -> None:
    own = "attenscope." + folder.removeprefix("model").replace("/", ".")
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / folder).rglob("*.py")
        for name in running_names(path)
        if name.partition(".")[0] in FORBIDDEN[folder] and not (folder != "model" and f"{name}.".startswith(own))
    ]
    assert found == []


@pytest.mark.parametrize("file", FOUNDATIONS)
def test_a_foundation_imports_no_other_file(file: str) -> None:
    tree = parse(ROOT / file)
    own = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level}
    assert own <= {"language", "atomic_write"}


def test_a_module_is_imported_by_its_installed_name() -> None:
    """`model` and `viz` are names in the checkout alone."""
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        for name in imported_modules(path)
        if name.partition(".")[0] in ("model", "viz")
    ]
    assert found == []


def test_every_import_that_is_not_allowed_is_found(tmp_path: Path) -> None:
    """Each breaks a contract of its own, so that one look at all of them tells whether each was seen."""
    tree = tmp_path / "attenscope"
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "*.js", "*.css", "locale", "gold")
    shutil.copytree(ROOT / "model", tree, ignore=ignored)
    shutil.copytree(ROOT / "viz", tree / "viz", ignore=ignored)
    future = "from __future__ import annotations\n"
    for file, wrong in WRONG.items():
        text = (tree / file).read_text(encoding="utf-8")
        (tree / file).write_text(text.replace(future, future + wrong, 1), encoding="utf-8")
    done = subprocess.run(import_command(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"Contracts: {6 - len(WRONG)} kept, {len(WRONG)} broken." in done.stdout, done.stdout


def test_the_app_loads_what_requirements_bring() -> None:
    """What a module imports when it is loaded comes with requirements.txt, or with Streamlit."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    beside = {"pyarrow", "starlette", "PIL", "attenscope"}
    brought = {line.partition("==")[0].replace("-", "_") for line in lines} | beside
    optional = {"transformers": "model/hugging_face/", "pytest": "model/testing.py"}
    for path in [*MODULES, ROOT / "app.py"]:
        for node in parse(path).body:
            for name in imported_names(node):
                package, place = name.partition(".")[0], str(path.relative_to(ROOT))
                allowed = package in brought or package in sys.stdlib_module_names
                assert allowed or place.startswith(optional.get(package, "?")), f"{place} imports {name}"


def test_reading_and_judging_need_no_torch() -> None:
    modules = [f"attenscope.{name}" for name in WITHOUT_TORCH]
    code = f"import importlib, sys; sys.modules['torch'] = None; [importlib.import_module(name) for name in {modules}]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.sweep
def test_the_folder_names_lead_to_the_same_modules() -> None:
    """Whatever was imported first: in copies of one process, which has loaded torch and nothing of ours."""
    code = (
        "import model.translate, attenscope.translate, attenscope, model.testing;"
        "from model.capture import capture_attention;"
        "assert model.translate.Translator is attenscope.translate.Translator;"
        "assert capture_attention is attenscope.capture_attention;"
        "assert model.testing.__spec__.name == 'attenscope.testing'"
    )
    each = (
        "import os, sys, torch\n"
        "for code in sys.argv[1:]:\n"
        "    if not os.fork(): exec(code); os._exit(0)\n"
        "    if os.wait()[1]: sys.exit(code)\n"
    )
    orders = [first + code for first in ("", "import attenscope;", "import attenscope.viz.figures;")]
    done = subprocess.run([sys.executable, "-c", each, *orders], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_few_modules_cache() -> None:
    """What pages share, and what a page alone computes."""
    found = {str(path.relative_to(ROOT)) for path in MODULES if "st.cache_" in path.read_text(encoding="utf-8")}
    pages = ("ui", "why", "heads", "positions", "training")
    assert found == {f"viz/{page}/cache.py" for page in pages}
