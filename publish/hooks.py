"""What mkdocs calls while it builds the site: pages made from the sources, and the folder of the live model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from publish.command_line import build_measure_page, build_use_page
from tests.types import make_tree

ROOT = Path(__file__).parents[1]
LIVE_FOLDER = "live"
"""Where the live model lies in the site; `docs/assets/live.js` asks for it there."""
SPHINX_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(<code>)(?:~?\.?[\w.]+\.)?(?=\w+</code>)")
FOUND_LAST = "---\nsearch:\n  boost: 0.2\n---\n\n"
"""Before pages for people who work on the project: the search lists them after those for people who use it."""
_state: dict[str, str] = {}


def on_startup(command: str, dirty: bool) -> None:
    """Remember whether the site is built or served while it is written; and make the tree that mkdocstrings reads."""
    _state["command"] = command
    os.environ["LANGUAGE"] = "en"
    make_tree()


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from the sources."""
    made = {
        "command-line.md": build_use_page(),
        "command-line-measure.md": build_measure_page(),
        "contributing.md": FOUND_LAST + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        "changelog.md": FOUND_LAST + (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Show the names that docstrings refer to in the way of Sphinx as what they are: code."""
    return SPHINX_ROLE.sub(r"\1", html)


def on_post_build(config: Any) -> None:
    """Put the model beside the pages that show it live: in half precision, and in 8 bits for phones."""
    if _state["command"] != "build":
        return
    folder = Path(config.site_dir) / LIVE_FOLDER
    command = [sys.executable, "-m", "viz.export", "live", "--folder", "--language", "en", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The live model could not be written:\n{done.stdout}{done.stderr}")
