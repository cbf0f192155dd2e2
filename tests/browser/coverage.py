"""What pages run of the project's scripts, as V8 counts it, for viz/web/coverage.mjs; `make coverage` says where to.

Without $COVERAGE nothing is counted, and pages get the scripts of viz/web/dist.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Error, Page

from attenscope.viz.web import component_scripts

FOLDER = Path(os.environ["COVERAGE"]).resolve() if "COVERAGE" in os.environ else None
if FOLDER:
    component_scripts.DIST_FOLDER = FOLDER / "dist"  # The same scripts, built with their source maps.


@contextmanager
def counted(page: Page) -> Iterator[None]:
    """Count what the page runs until the end, of documents that are still open then."""
    if not FOLDER:
        yield
        return
    session = page.context.new_cdp_session(page)
    for method in ("Profiler.enable", "Debugger.enable"):
        session.send(method)
    session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})
    yield
    _write_counts(session, FOLDER / "browser")


def _write_counts(session: CDPSession, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    counts: list[dict[str, Any]] = []
    for one in session.send("Profiler.takePreciseCoverage")["result"]:
        try:
            source: str = session.send("Debugger.getScriptSource", {"scriptId": one["scriptId"]})["scriptSource"]
        except Error:  # It is of a frame that has left.
            continue
        name = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
        (folder / f"{name}.js").write_text(source, encoding="utf-8", errors="replace", newline="")
        counts.append({"url": one["url"], "text": name, "functions": one["functions"]})
    (folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps(counts))
