"""The checkout as a tree that type checkers and import-linter understand: ``python -m tests.types`` runs them on it.

`attenscope.py` gives `model/` and `viz/` their names when Python runs; tools that only read files need a folder of
that name.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / "build" / "types"
"""Links alone; made anew each time."""
PROGRAMS = Path(sys.executable).parent
SETTINGS = ROOT / "pyproject.toml"


def make_tree() -> Path:
    """Return the folder in which `attenscope` is a package: a link to each entry of `model/`, and one to `viz/`."""
    package = TREE / "attenscope"
    package.mkdir(parents=True, exist_ok=True)
    for old in package.iterdir():
        old.unlink()
    for path in [*(ROOT / "model").iterdir(), ROOT / "viz"]:
        if path.name != "__pycache__":
            (package / path.name).symlink_to(os.path.relpath(path, package))
    return TREE


def import_command() -> list[str]:
    """Return the command that checks the contracts of pyproject.toml in the current folder."""
    return [str(PROGRAMS / "lint-imports"), str(SETTINGS), "--no-logo", "--no-cache"]


def main() -> int:
    """Check the directions of imports, then the types; in the tree, where `attenscope.py` is not in the way."""
    environment = os.environ | {"MYPYPATH": f"{make_tree()}:{ROOT}", "PYTHONPATH": str(TREE)}
    types = [str(PROGRAMS / "mypy"), "--config-file", str(SETTINGS)]
    sources = [str(ROOT / name) for name in ("app.py", "bench", "publish", "tests")]
    for command in (import_command(), [*types, "-p", "attenscope"], [*types, *sources]):
        if code := subprocess.run(command, cwd=TREE, env=environment, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
