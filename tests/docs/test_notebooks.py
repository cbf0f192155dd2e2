"""The notebooks of the documents, executed from the first cell to the last, as Jupyter runs their code."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def read_cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def run_cell(source: str, names: dict[str, object]) -> object:
    """Run a cell; return the value of its last line, which Jupyter would display."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def find_display(value: object) -> Callable[[], object] | None:
    """What Jupyter calls to show a value, where it has that."""
    found: Callable[[], object] | None = getattr(value, "_repr_html_", getattr(value, "_repr_mimebundle_", None))
    return found


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")  # those of other people's code
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    sources = ["".join(cell["source"]) for cell in read_cells(path) if cell["cell_type"] == "code"]
    shown = [run_cell(source, names) for source in sources]
    pictures = [show() for one in shown if (show := find_display(one))]
    assert pictures, "nothing to look at"
    assert all(pictures)


def test_three_notebooks_without_outputs() -> None:
    """Outputs are made when it is run: in git they would be large and old."""
    assert [path.stem for path in NOTEBOOKS] == ["broken-mask", "hugging-face-folder", "own-model"]
    for path in NOTEBOOKS:
        assert not any(cell.get("outputs") for cell in read_cells(path))
