"""How many of the project's files run when a visitor acts: ``python bench/files.py [CHECKOUT]``.

A sentence passes from the box on Explore to its picture, and a pasted 5x5 mask to its verdict. Both are typed into a
process that has answered once, so that nothing is counted that is only loaded. Another checkout is measured by the
same script.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
MASK = """1 0 0 0 0
1 1 0 0 0
1 1 1 0 0
1 1 1 1 0
1 1 1 1 1
"""


def count_files(act: Callable[[], Any]) -> tuple[int, int]:
    """Return how many files of `model/` and `viz/` run during an action, and how many of their functions."""
    functions: set[tuple[str, str, int]] = set()
    folders = (f"{ROOT}/model/", f"{ROOT}/viz/")

    def note_call(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folders) and code.co_name != "<module>":
            functions.add((code.co_filename, code.co_name, code.co_firstlineno))

    threading.setprofile(note_call)
    sys.setprofile(note_call)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len({file for file, _, _ in functions}), len(functions)


def main() -> None:
    """Print a line for each of the three actions."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    from streamlit.testing.v1 import AppTest

    from model.__main__ import main as run_command

    explore = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300).run()
    explore.text_area(key="sentence").set_value("The cat sleeps.").run()
    sentence = count_files(lambda: explore.text_area(key="sentence").set_value("My brother lives in Rome.").run())
    assert not explore.exception
    masks = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    masks.switch_page("viz/pages/masks.py").run()
    masks.text_area(key="mask_text").set_value(MASK.replace("1 1 1 1 0", "1 1 1 1 1")).run()
    page = count_files(lambda: masks.text_area(key="mask_text").set_value(MASK).run())
    assert not masks.exception
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        file = Path(folder) / "mask.csv"
        file.write_text(MASK.replace(" ", ","), encoding="utf-8")
        run_command(["diagnose", str(file)])
        verdict = count_files(lambda: run_command(["diagnose", str(file)]))
    assert "mask.csv" in printed.getvalue(), printed.getvalue()
    found = {"Explore, a new sentence": sentence, "Masks, a pasted 5x5 mask": page, "its verdict alone": verdict}
    for name, (files, functions) in found.items():
        print(f"{name}: {files} files, {functions} functions")


if __name__ == "__main__":
    main()
