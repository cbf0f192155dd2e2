"""What the targets of the Makefile run, as ``make --dry-run`` prints it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(("target", "watcher"), [("run", "none"), ("dev", "auto")])
def test_only_the_app_under_development_watches_files(target: str, watcher: str) -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    (served,) = [line for line in printed.splitlines() if "-m viz" in line]
    assert re.findall(r"--server\.fileWatcherType (\w+)", served) == [watcher]
