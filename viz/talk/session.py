"""The visitor's talk: theirs alone, kept while their session lasts; until they make one, the talk that ships."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.language.current import current_language
from model.language.say import say, to_say
from model.language.texts import texts_in

from ..components.draft import draft
from ..components.kept_files import kept_files
from . import beside
from .scenes import Mistake, Scene, Talk
from .talk_file import LONGEST_FILE, read, write

if TYPE_CHECKING:
    pass

SHIPPED = Path(__file__).parent / "talk.toml"
PROSE = ("title", "point", "notes")
"""What is said of a scene in each language."""
MINE = to_say("A talk of my own")
MOST_UNDONE = 30
"""Changes that can be taken back."""
_BEFORE = "talks before"


def shipped_talk() -> tuple[Talk, tuple[Mistake, ...]]:
    """The talk that comes with the app, in the current language."""
    return _shipped(current_language())


@once
def _shipped(language: str) -> tuple[Talk, tuple[Mistake, ...]]:
    found, mistakes = read(SHIPPED.read_text(encoding="utf-8"))
    said = texts_in(SHIPPED, language)
    scenes = (
        replace(scene, **{name: of[name] for name in PROSE})
        for scene, of in zip(found.scenes, said["scene"], strict=True)
    )
    return replace(found, title=said["title"], scenes=tuple(scenes)), mistakes


def talk() -> tuple[Talk, tuple[Mistake, ...]]:
    """The visitor's talk, and what was wrong in the file it was read from."""
    return st.session_state.get("talk") or shipped_talk()


def follow_language() -> None:
    """Have the fields show the shipped talk in another language, once the visitor has chosen that."""
    before = st.session_state.get("talk-language", current_language())
    st.session_state["talk-language"] = current_language()
    if before != current_language() and not st.session_state.get("talk"):
        st.session_state["talk-revision"] = revision() + 1


def is_own() -> bool:
    """Whether the talk is the visitor's own."""
    return "talk" in st.session_state


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
    keys, there = beside.known(), beside.keys()
    draft("talk-files", json.dumps(keys) if keys else "", on_found=_restore_files)
    lost = {name: key for name, key in keys.items() if name not in there}
    kept_files(there, lost, beside.saved, on_found=beside.restore)


def _restore(source: str, page: str) -> None:
    if "talk" in st.session_state or len(source) > LONGEST_FILE:
        return
    found, mistakes = read(source)
    if found.scenes:
        put(found, mistakes, at=0)
        if page == "talk":
            st.toast(say("Your talk is here again, as this browser kept it. Open has the one that ships with the app."))


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


def renew() -> None:
    """Have the fields on the page show the talk as it is now, after a change that was not made in them."""
    st.session_state["talk-revision"] = revision() + 1


def rearrange(at: int, change: Callable[[list[Scene]], int]) -> None:
    """Let `change` move, remove or add scenes; it says which one is edited next."""
    current_talk, mistakes = talk()
    scenes = list(current_talk.scenes)
    to = change(scenes)
    put(replace(current_talk, scenes=tuple(scenes)), mistakes, to)
