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


def module_of(path: Path) -> str:
    """``model/capture/base.py`` -> model.capture.base; a package's __init__ is the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def arrows(folder: str) -> dict[str, set[str]]:
    """Module -> the modules of `folder` that it imports anywhere, for its types alone included."""
    paths = {module_of(path): path for path in sources(folder)}
    found: dict[str, set[str]] = {}
    for module, path in paths.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        targets: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
                base = ".".join(filter(None, (above, node.module)))
                names = (f"{base}.{alias.name}" for alias in node.names)
                targets |= {name if name in paths else base for name in names}
        found[module] = (targets & set(paths)) - {module}
    return found


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """How far each node is above those that import nothing; AssertionError naming a circle."""
    found: dict[str, int] = {}
    while len(found) < len(graph):
        ready = [node for node in graph if node not in found and graph[node] <= set(found)]
        assert ready, f"there is a circle among {sorted(set(graph) - set(found))}"
        found |= {node: max((found[other] + 1 for other in graph[node]), default=0) for node in ready}
    return found


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sources("model"), ids=identity)
def test_model_knows_no_page_and_imports_itself_relatively(path: Path) -> None:
    assert not tops(path) & {"viz", "streamlit", "plotly", *PROJECT}


def test_no_circle_among_the_modules_of_the_model() -> None:
    levels(arrows("model"))


def test_no_circle_among_the_rooms_of_the_model() -> None:
    """A room is a folder of model/, or a module beside them; one inside another belongs to it."""
    rooms: dict[str, set[str]] = {}
    for module, targets in arrows("model").items():
        room = ".".join(module.split(".")[:2])
        own = rooms.setdefault(room, set())
        own |= {".".join(target.split(".")[:2]) for target in targets} - {room}
    levels(rooms)


def test_the_capture_of_foreign_models_stands_between_two_levels() -> None:
    """Below it what both captures share, above it the one entrance."""
    own = "model.capture.foreign"
    graph = arrows("model")
    above = {module for module, targets in graph.items() for one in targets if one.startswith(own)}
    assert {module for module in above if not module.startswith(own)} == {"model.capture.hook_points"}
    below = {one for module, targets in graph.items() if module.startswith(own) for one in targets}
    shared = {one for one in below if one.startswith("model.capture") and not one.startswith(own)}
    assert shared == {"model.capture.base", "model.capture.kinds"}


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
