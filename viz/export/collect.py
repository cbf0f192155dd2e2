"""A scene's page run once without a browser, to hand over what it would save (:mod:`viz.export.save`).

Each run has a session of its own, so nothing of it is seen by a visitor, and whatever a page can save by its menu a
talk can hold: no page is written twice. The runner is the one behind Streamlit's own AppTest. AppTest itself cannot be
used: each of its runs takes the place of the process's runtime and leaves none behind, and here a runtime is serving
visitors at that very moment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from streamlit.runtime import Runtime, RuntimeConfig
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.state import SessionState
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from ..talk.checks import check
from .page import talk_page
from .parts import COLLECTED, REMARKS, Slide

if TYPE_CHECKING:
    from model.network.config import TransformerConfig

    from ..figures.palette import Palette
    from ..talk.scenes import Scene, Talk
    from .save import Saved

PAGES = Path(__file__).parents[1] / "pages"
PATIENCE = 120.0
"""Seconds that one run of a page may take: the first loads the model."""
ROUNDS = 60
"""A page whose decoding is still under way is run again, so often at most, a second apart."""
MISSING = "This scene is shown by the app only: open the page {page} there."


def talk_file(
    talk: Talk,
    models: Mapping[str, TransformerConfig],
    palette: Palette,
    made: date,
    told: Callable[[int], None] = lambda done: None,
) -> str:
    """The whole talk as one HTML file; `models` are those there are, by name; `told` hears how many scenes are done.

    A scene that cannot be shown becomes a slide that says why.
    """
    slides = []
    for at, scene in enumerate(talk.scenes):
        told(at)
        slides.append(slide(scene, talk, models, palette))
    return talk_page(talk.title, slides, palette, made)


def slide(scene: Scene, talk: Talk, models: Mapping[str, TransformerConfig], palette: Palette) -> Slide:
    """One scene of a talk."""
    said = (scene.notes, scene.point, scene.hide, (*scene.omit, REMARKS))
    checked = check(replace(talk, scenes=(scene,)), models)
    if not checked.shown:
        return Slide(scene.title, None, *said, missing=" ".join(one.text for one in checked.mistakes))
    found = collect(scene.page, ({"model": talk.model} if talk.model else {}) | dict(scene.view))
    if not found:
        return Slide(scene.title, None, *said, missing=MISSING.format(page=scene.page.capitalize()))
    return Slide(scene.title, found[-1].view(palette), *said)


def collect(page: str, view: Mapping[str, str]) -> Sequence[Saved]:
    """What the page, at this address, offers to save; nothing where it cannot be saved or asks for what is not there.

    Raises RuntimeError when it does not come to an end.
    """
    script = str(PAGES / f"{page}.py")
    session = SafeSessionState(SessionState(), lambda: None)
    found: list[Saved] = []
    session[COLLECTED] = found
    for _ in range(ROUNDS):
        runner = LocalScriptRunner(script, session, PagesManager(script, ScriptCache(), setup_watcher=False))
        tree = runner.run(query_params=dict(view), timeout=PATIENCE)
        if found or not _working(tree):
            break
        time.sleep(1)
    return found


def _working(tree: object) -> bool:
    """Whether the page says that it is still decoding: it then has a button to stop."""
    return any(button.key == "stop" for button in getattr(tree, "button", ()))


def begin() -> None:
    """Outside of the app: the runtime that components are registered with. Before any of them is imported."""
    files = MemoryMediaFileStorage("/media"), MemoryUploadedFileManager("/upload")
    Runtime(RuntimeConfig(str(PAGES.parents[1] / "app.py"), *files))
    # Else it is said for every scene that none is running. The runtime sets the levels, so this comes after it.
    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").setLevel(logging.ERROR)
