"""How `model/`, `viz/` and `app.py` are named once they are installed: all inside one package, attenscope.

`model` and `viz` are names that other people's projects have too. The wheel therefore holds `model/` as attenscope,
`viz/` as attenscope.viz and `viz/figures/` as attenscope.figures, and its imports are written accordingly.
"""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

INSTALLED = {"viz.figures": "attenscope.figures", "viz": "attenscope.viz", "model": "attenscope"}
"""Names here -> names in the wheel, the longest first."""
START = Path("attenscope", "viz", "start")
"""A folder of the app's script alone: Streamlit lets a script import whatever lies beside it, before all else."""
BESIDE = {"app.py": "attenscope_app.py", ".streamlit/config.toml": ".streamlit/config.toml"}
"""What stands there: file here -> file in START."""
DATA = ["*.js", "*.css", "*.json", "icon.png", "*.toml", "*.wasm", "*.mo"]
CHECKPOINTS = ["everyday-en-de/**", "everyday-zh-en/**", "sentences.*", "phenomena.*"]
"""What the wheel holds of checkpoints/: the two for use. Those that teach presets and training stay in the project."""
TRAINING_TEXT = ["*/written-*.tsv", "*/rewritten.tsv.xz"]
"""What it leaves out of them: only who trains reads it."""
COMMANDS = {
    "python -m model": "attenscope",
    "python -m viz.export": "attenscope export",
    "python -m viz": "attenscope app",
}
MARKER = "<!--"
"""Stands in the lines between which a model card is written anew: they are the same everywhere."""


def installed(name: str) -> str:
    """Return the installed name of a module, or the same where it is none of this project."""
    for here, there in INSTALLED.items():
        if f"{name}.".startswith(f"{here}."):
            return there + name.removeprefix(here)
    return name


def imported(package: str, node: ast.ImportFrom) -> str:
    """Return the full name of the module that a statement in `package` imports from."""
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    return ".".join([*above, *filter(None, [node.module])])


def renamed(source: str, package: str) -> str:
    """Return the source of a module of `package` with the imports and commands that hold once it is installed."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            target = installed(imported(package, node))
            if target != imported(installed(package), node):
                line = node.lineno - 1
                lines[line] = re.sub(r"\bfrom [.\w]+ import\b", f"from {target} import", lines[line], count=1)
    return "".join(line if MARKER in line else _with_commands(line) for line in lines)


def _with_commands(line: str) -> str:
    for here, there in COMMANDS.items():
        line = line.replace(here, there)
    return line


def parts() -> dict[str, Path]:
    """Return the folder of every package of the wheel by its name in it."""
    names = [part + dot + name for part in ("model", "viz") for dot, name in _packages(Path(part))]
    return {installed(name): Path(*name.split(".")) for name in names}


def _packages(folder: Path) -> list[tuple[str, str]]:
    return [("", ""), *((".", name) for name in find_namespace_packages(str(folder)) if "__pycache__" not in name)]


class Build(build_py):
    """Copies the packages as setuptools does, then names what stands in them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        wheel = Path(self.build_lib)
        for here, there in BESIDE.items():
            (wheel / START / there).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here, wheel / START / there)
        for name, folder in {**parts(), ".".join(START.parts): Path()}.items():
            for path in wheel.joinpath(*name.split(".")).glob("*.py"):
                text = path.read_text(encoding="utf-8")
                path.write_text(renamed(text, ".".join(folder.parts)), encoding="utf-8")


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": Build},
        packages=[*parts(), "attenscope.checkpoints"],
        package_dir={name: str(folder) for name, folder in parts().items()} | {"attenscope.checkpoints": "checkpoints"},
        package_data={"": DATA, "attenscope.checkpoints": CHECKPOINTS, "attenscope.word_alignment": ["gold/*/*"]},
        exclude_package_data={"attenscope.checkpoints": TRAINING_TEXT},
    )
