"""Where the folders of the project stand in the wheel: `model/` is the package attenscope, `viz/` is attenscope.viz.

`model` and `viz` are names that other people's projects have too. The files are copied as they are: in the checkout
`attenscope.py` gives the same folders the same names.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

NAMES = {"model": "attenscope", "viz": "attenscope.viz"}
"""Folder here -> package in the wheel."""
START = Path("attenscope", "viz", "start")
"""A folder of the app's script alone: Streamlit lets a script import whatever lies beside it, before all else."""
START_FILES = {"app.py": "attenscope_app.py", ".streamlit/config.toml": ".streamlit/config.toml"}
"""What stands there: file here -> file in START."""
DATA = ["*.css", "*.json", "icon.png", "*.toml", "*.webp", "*.wasm", "*.mo", "py.typed"]
LEFT_OUT = ("__pycache__", "web.src", "web.node_modules", "web.dist", "export.browser", "export.live")
"""Folders that are no packages of the wheel."""
CHECKPOINTS = ["everyday-en-de/**", "everyday-zh-en/**", "sentences.*", "phenomena.*"]
"""What the wheel holds of checkpoints/: the two for use. Those that teach presets stay in the project."""
FILES = {
    "attenscope.checkpoints": CHECKPOINTS,
    "attenscope.viz.web": ["dist/*"],  # what browsers get, built; its sources stay in the project
    "attenscope.word_alignment": ["gold/*/*"],
}
TRAINING_FILES = ["*/written-*.tsv.xz", "*/rewritten*.tsv.xz", "*/snapshots/*"]
"""What it leaves out of them: the text of a training and its snapshots, half as large as all else together."""


def list_packages() -> dict[str, str]:
    """Return the folder of every package of the wheel by its name in it."""
    found = {}
    for folder, package in NAMES.items():
        found[package] = folder
        for name in find_namespace_packages(folder):
            if not any(one in name for one in LEFT_OUT):
                found[f"{package}.{name}"] = f"{folder}/{name.replace('.', '/')}"
    return found


class Build(build_py):
    """Copies the packages as setuptools does, and the script that Streamlit runs."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for here, there in START_FILES.items():
            target = Path(self.build_lib) / START / there
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here, target)


if __name__ == "__main__":
    packages = list_packages()
    setup(
        cmdclass={"build_py": Build},
        packages=[*packages, "attenscope.checkpoints"],
        package_dir=packages | {"attenscope.checkpoints": "checkpoints"},
        package_data={"": DATA, **FILES},
        exclude_package_data={"attenscope.checkpoints": TRAINING_FILES},
    )
