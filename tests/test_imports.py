"""Who may import whom, read from the sources themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = {"model", "viz", "bench", "tests"}


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(module, relative level) of every import that runs; what stands under TYPE_CHECKING does not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.level
        yield from imports(node)


def imported(path: Path) -> list[tuple[str, int]]:
    return list(imports(ast.parse(path.read_text(encoding="utf-8"))))


def tops(path: Path) -> set[str]:
    """Top-level names of the absolute imports of a file."""
    return {name.partition(".")[0] for name, level in imported(path) if level == 0}


def relative(path: Path) -> set[str]:
    """First names of the imports from the file's own package."""
    return {name.partition(".")[0] for name, level in imported(path) if level == 1 and name}


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sources("model"), ids=identity)
def test_model_knows_no_page_and_imports_itself_relatively(path: Path) -> None:
    assert not tops(path) & {"viz", "streamlit", "plotly", *PROJECT}


@pytest.mark.parametrize("path", sources("viz/figures"), ids=identity)
def test_figures_know_numpy_plotly_and_each_other(path: Path) -> None:
    assert not tops(path) & {"torch", "streamlit", *PROJECT}
    assert all(level <= 1 for _, level in imported(path))


@pytest.mark.parametrize("path", sources("viz"), ids=identity)
def test_viz_leaves_torch_to_the_model(path: Path) -> None:
    assert "torch" not in tops(path)


@pytest.mark.parametrize("name", ["network/config", "network/masks", "trace"])
def test_the_foundations_import_no_project_module(name: str) -> None:
    path = ROOT / "model" / f"{name}.py"
    assert not relative(path)
    assert not tops(path) & PROJECT


def test_a_trace_is_read_without_torch() -> None:
    assert "torch" not in tops(ROOT / "model" / "trace.py")


def test_capture_works_on_a_strangers_model() -> None:
    assert "network.transformer" not in {name for name, _ in imported(ROOT / "model" / "capture" / "hook_points.py")}


@pytest.mark.parametrize("path", [*sources("viz"), ROOT / "app.py"], ids=identity)
def test_only_cache_caches(path: Path) -> None:
    if path != ROOT / "viz" / "ui" / "cache.py":
        assert "st.cache_" not in path.read_text(encoding="utf-8")
