"""The sources of `model/` and `viz/` as they are written: which file imports which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("model", "viz", "app")


class Import(NamedTuple):
    """`file` imports `target`: a file of the project, or, from outside, the top name of a package."""

    file: str
    target: str
    level: int
    """The dots of a relative import."""
    runs: bool
    """Not only for a type checker."""

    def __str__(self) -> str:
        return f"{self.file} -> {self.target}"


@cache
def files() -> dict[str, Path]:
    """Every file by its dotted name; a package's `__init__` has the name of the package."""
    paths = [path for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))]
    names = {path: path.relative_to(ROOT).with_suffix("").parts for path in [*paths, ROOT / "app.py"]}
    return {".".join(name[:-1] if name[-1] == "__init__" else name): path for path, name in names.items()}


@cache
def tree(file: str) -> ast.Module:
    return ast.parse(files()[file].read_text(encoding="utf-8"))


def is_package(file: str) -> bool:
    return files()[file].name == "__init__.py"


def room(file: str) -> str:
    """The folder of a file; a file that stands beside the rooms of `model` or `viz` is a room of its own."""
    return file if is_package(file) or file.count(".") < 2 else file.rpartition(".")[0]


def statements(node: ast.AST, runs: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import, also inside a function, and whether it runs: under TYPE_CHECKING it does not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, runs
        typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from statements(child, runs and not typing_only)


def full_names(file: str, statement: ast.Import | ast.ImportFrom) -> list[str]:
    """What is imported: `from ..text import words` in model/decoding/greedy.py is "model.text.words"."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    package = file.split(".") if is_package(file) else file.split(".")[:-1]
    base = package[: len(package) - statement.level + 1] if statement.level else []
    return [".".join([*base, *filter(None, [statement.module]), alias.name]) for alias in statement.names]


def target(name: str) -> str:
    """The file of the project that holds `name`, else the name of the package outside."""
    top = name.partition(".")[0]
    if top not in PARTS:
        return top
    while name not in files():
        name, dot, _ = name.rpartition(".")
        assert dot, f"{name} is no file of the project"
    return name


@cache
def imports() -> tuple[Import, ...]:
    """Every import of every file, without those of itself."""
    found = (
        Import(file, target(name), getattr(statement, "level", 0), runs)
        for file in files()
        for statement, runs in statements(tree(file))
        for name in full_names(file, statement)
    )
    return tuple(arrow for arrow in found if arrow.file != arrow.target)
