"""The visitor's talk: theirs alone, kept while their session lasts; until they make one, the talk that ships."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ..components.draft import draft
from ..traces.kept import KeptError
from ..traces.session import current as current_trace
from ..traces.session import current_run
from ..ui.addresses import masks
from ..ui.addresses.shared import MODEL, SENTENCE
from ..ui.captions import plain
from . import beside
from .scenes import MOST_SCENES, Mistake, Scene, Talk
from .talk_file import read, write

if TYPE_CHECKING:
    from ..ui.url_state.page import Page

SHIPPED = Path(__file__).parent / "talk.toml"
MINE = "A talk of my own"
OF_A_MODEL = ("model", "sentence", "changes")
"""Of the address of Explore, what says nothing of an opened trace."""
TITLED = 60
"""Characters of a sentence that a scene's first title has."""
MOST_UNDONE = 30
"""Changes that can be taken back."""
_BEFORE = "talks before"
LONGEST_FILE = 512 * 1024
"""Of a talk, in bytes or characters; a hundred scenes with notes are far smaller."""


def shipped_talk() -> tuple[Talk, tuple[Mistake, ...]]:
    """The talk that comes with the app."""
    return read(SHIPPED.read_text(encoding="utf-8"))


def talk() -> tuple[Talk, tuple[Mistake, ...]]:
    """The visitor's talk, and what was wrong in the file it was read from."""
    return st.session_state.get("talk") or shipped_talk()


def can_undo() -> bool:
    """Whether there is a talk before the last change."""
    return bool(st.session_state.get(_BEFORE))


def undo() -> None:
    """Take the last change back; for callbacks."""
    before = st.session_state.get(_BEFORE)
    if before:
        st.session_state["talk"], at = before.pop()
        st.session_state["talk-revision"] = revision() + 1
        st.session_state["scene-at"] = at


def _remember() -> None:
    """Keep the talk as it is, before it is changed."""
    before = st.session_state.setdefault(_BEFORE, [])
    before.append((st.session_state.get("talk"), current()))
    del before[:-MOST_UNDONE]


def put(new: Talk, mistakes: tuple[Mistake, ...] = (), at: int | None = None) -> None:
    """Make `new` the visitor's talk, its scene `at` the one that is edited."""
    _remember()
    st.session_state["talk"] = new, mistakes
    st.session_state["talk-revision"] = revision() + 1
    if at is not None:
        st.session_state["scene-at"] = min(max(at, 0), max(len(new.scenes) - 1, 0))


def keep_draft(page: str) -> None:
    """Keep the visitor's own talk in their browser, and take it from there where the session has lost it.

    On the page Talk it is said that it was.
    """
    own = st.session_state.get("talk")
    draft("talk", write(own[0]) if own else "", on_found=lambda source: _restore(source, page))
    keys = beside.keys()
    draft("talk-files", json.dumps(keys) if keys else "", on_found=_restore_files)


def _restore(source: str, page: str) -> None:
    if "talk" in st.session_state or len(source) > LONGEST_FILE:
        return
    found, mistakes = read(source)
    if found.scenes:
        put(found, mistakes, at=0)
        if page == "talk":
            st.toast("Your talk is here again, as this browser kept it. Open has the one that ships with the app.")


def _restore_files(source: str) -> None:
    """Know the files beside the talk again, by keys that only this visitor's browser has."""
    try:
        found = json.loads(source[:LONGEST_FILE])
    except ValueError:
        return
    if isinstance(found, dict):
        beside.take_back(found)


def revision() -> int:
    """Grows with every change of the talk as a whole, so that its fields show what it says now."""
    return st.session_state.get("talk-revision", 0)


def current() -> int:
    """The scene that is edited, from 0."""
    return st.session_state.get("scene-at", 0)


def choose(at: int) -> None:
    """Edit this scene."""
    st.session_state["scene-at"] = at


def rename(title: str) -> None:
    """Give the talk a title."""
    _remember()
    current_talk, mistakes = talk()
    st.session_state["talk"] = replace(current_talk, title=title), mistakes


def edit(at: int, **changes: object) -> None:
    """Change fields of a scene where they stand; the fields on the page already show it."""
    _remember()
    current_talk, mistakes = talk()
    scenes = list(current_talk.scenes)
    scenes[at] = replace(scenes[at], **changes)  # type: ignore[arg-type]
    st.session_state["talk"] = replace(current_talk, scenes=tuple(scenes)), mistakes


def rearrange(at: int, change: Callable[[list[Scene]], int]) -> None:
    """Let `change` move, remove or add scenes; it says which one is edited next."""
    current_talk, mistakes = talk()
    scenes = list(current_talk.scenes)
    to = change(scenes)
    put(replace(current_talk, scenes=tuple(scenes)), mistakes, to)


def add_view_button(page: Page) -> None:
    """A quiet button in the header that makes the view on the screen the next scene of the visitor's talk."""
    with st.container(key="add-view"):
        what = "Make this view the next scene of your talk (page Talk)"
        st.button("Add to talk", key="add-this-view", type="tertiary", help=what, on_click=_add, args=(page,))


def _add(page: Page) -> None:
    if _is_of_the_session(page.name):
        st.toast("A scene is an address or a file: what was pasted is neither. Upload it as a file on the page Talk.")
        return
    mine, mistakes = st.session_state.get("talk") or (Talk(MINE), ())
    if len(mine.scenes) >= MOST_SCENES:
        st.toast(f"A talk has at most {MOST_SCENES} scenes: save this one and begin another.")
        return
    opened = current_trace() if page.name == "explore" else None
    try:
        trace = beside.keep_trace(opened) if opened else ""
    except KeptError as error:
        st.toast(plain(str(error)))
        return
    carried = () if trace else (MODEL, SENTENCE)
    view = {one.name: st.session_state[one.key] for one in carried if st.session_state.get(one.key)}
    view |= {name: value for name, value in page.current_view().items() if not trace or name not in OF_A_MODEL}
    source = opened.drawable.source if opened else view.get(SENTENCE.name, "")
    scene = Scene(_title(page.name, view, source), page.name, view, trace=trace)
    put(replace(mine, scenes=(*mine.scenes, scene)), mistakes, len(mine.scenes))
    kept = f" {trace} is kept beside it: Save on the page Talk hands out both as a zip." if trace else ""
    st.toast(plain(f"Scene {len(mine.scenes) + 1} of your talk. Give it a title and notes on the page Talk.{kept}"))


def shows_opened(page: str) -> bool:
    """Whether the page shows the traces of a training that the visitor opened: no scene holds them."""
    return page == "training" and current_run() is not None


def _is_of_the_session(page: str) -> bool:
    """Whether the view is of something that no scene holds: a training that was opened, a pasted or uploaded mask."""
    judging = page == "masks" and masks.PART.get() == "judge"
    return shows_opened(page) or (judging and masks.FROM.get() != "build")


def _title(page: str, view: dict[str, str], source: str) -> str:
    """What a scene is called until it is given a title: its sentence and what is seen of it."""
    what = view.get("view") or view.get("plot") or view.get("move") or view.get("why") or view.get("method")
    kind = f"{view['kind']} attention" if "kind" in view else ""
    head = f"layer {view.get('layer', 1)}, head {view.get('head', 1)}" if "layer" in view or "head" in view else ""
    seen = ", ".join(filter(None, (page.capitalize(), what, kind, head)))
    shown = source if len(source) <= TITLED else f"{source[: TITLED - 1]}…"
    return f"“{shown}” · {seen}" if shown else seen
