"""The visitor's talk in their session; until they make one, the talk that ships with the app."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import streamlit as st

from attenscope.language import current_language, load_translated_toml, say, to_say
from attenscope.viz.talk import attachments
from attenscope.viz.talk.file import LONGEST_TALK_FILE, format_talk, parse_talk
from attenscope.viz.talk.scenes import Mistake, Scene, Talk
from attenscope.viz.web.page_components import keep_draft_in_browser, keep_files_in_browser

SHIPPED_TALK_FILE = Path(__file__).parent / "talk.toml"
TRANSLATED_FIELDS = ("title", "point", "notes")
"""Fields of a scene that are translated."""
OWN_TALK_TITLE = to_say("A talk of my own")
MOST_UNDONE = 30
"""Changes that can be taken back."""
_UNDO_KEY = "talks before"


def load_shipped_talk() -> tuple[Talk, tuple[Mistake, ...]]:
    """The talk that comes with the app, in the current language."""
    return _read_shipped_talk(current_language())


@cache
def _read_shipped_talk(language: str) -> tuple[Talk, tuple[Mistake, ...]]:
    found, mistakes = parse_talk(SHIPPED_TALK_FILE.read_text(encoding="utf-8"))
    said = load_translated_toml(SHIPPED_TALK_FILE, language)
    scenes = (
        replace(scene, **{name: of[name] for name in TRANSLATED_FIELDS})
        for scene, of in zip(found.scenes, said["scene"], strict=True)
    )
    return replace(found, title=said["title"], scenes=tuple(scenes)), mistakes


def get_talk() -> tuple[Talk, tuple[Mistake, ...]]:
    """The visitor's talk, and what was wrong in the file it was read from."""
    return st.session_state.get("talk") or load_shipped_talk()


def refresh_shipped_talk_language() -> None:
    """Redraw the fields of the shipped talk after the visitor has chosen another language."""
    before = st.session_state.get("talk-language", current_language())
    st.session_state["talk-language"] = current_language()
    if before != current_language() and not st.session_state.get("talk"):
        st.session_state["talk-revision"] = get_talk_revision() + 1


def is_own_talk() -> bool:
    """Whether the talk is the visitor's own."""
    return bool(st.session_state.get("talk"))


def can_undo() -> bool:
    """Whether there is a talk before the last change."""
    return bool(st.session_state.get(_UNDO_KEY))


def undo_change() -> None:
    """Take the last change back; for callbacks."""
    before = st.session_state.get(_UNDO_KEY)
    if before:
        st.session_state["talk"], at = before.pop()
        st.session_state["talk-revision"] = get_talk_revision() + 1
        st.session_state["scene-at"] = at


def _save_undo_state() -> None:
    """Keep the talk as it is, before it is changed."""
    before = st.session_state.setdefault(_UNDO_KEY, [])
    before.append((st.session_state.get("talk"), get_edited_scene_index()))
    del before[:-MOST_UNDONE]


def set_talk(new: Talk, mistakes: tuple[Mistake, ...] = (), at: int | None = None) -> None:
    """Make `new` the visitor's talk, its scene `at` the one that is edited."""
    _save_undo_state()
    st.session_state["talk"] = new, mistakes
    st.session_state["talk-revision"] = get_talk_revision() + 1
    if at is not None:
        st.session_state["scene-at"] = min(max(at, 0), max(len(new.scenes) - 1, 0))


def sync_talk_draft_with_browser(page: str) -> None:
    """Keep the visitor's own talk in their browser, and take it from there where the session has lost it.

    The page Talk then says so.
    """
    own = st.session_state.get("talk")
    keep_draft_in_browser(
        "talk", format_talk(own[0]) if own else "", on_found=lambda source: _restore_talk(source, page)
    )
    keys, there = attachments.get_all_file_keys(), attachments.get_stored_file_keys()
    keep_draft_in_browser("talk-files", json.dumps(keys) if keys else "", on_found=_restore_file_keys)
    lost = {name: key for name, key in keys.items() if name not in there}
    keep_files_in_browser(
        there, lost, attachments.encode_file_for_browser, on_found=attachments.restore_file_from_browser
    )


def _restore_talk(source: str, page: str) -> None:
    if "talk" in st.session_state or len(source) > LONGEST_TALK_FILE:
        return
    found, mistakes = parse_talk(source)
    if found.scenes:
        set_talk(found, mistakes, at=0)
        if page == "talk":
            st.toast(say("Your talk is here again, as this browser kept it. Open has the one that ships with the app."))


def _restore_file_keys(source: str) -> None:
    """Know the files beside the talk again, by keys that only this visitor's browser has."""
    try:
        found = json.loads(source[:LONGEST_TALK_FILE])
    except ValueError:
        return
    if isinstance(found, dict):
        attachments.restore_file_keys_from_browser(found)


def get_talk_revision() -> int:
    """Return a number that grows with every change of the whole talk; it is in the keys of fields, to redraw them."""
    return st.session_state.get("talk-revision", 0)


def get_edited_scene_index() -> int:
    """The scene that is edited, from 0."""
    return st.session_state.get("scene-at", 0)


def set_edited_scene(at: int) -> None:
    """Edit this scene."""
    st.session_state["scene-at"] = at


def rename_talk(revision: int, title: str) -> None:
    """Give the talk a title; `revision` as in :func:`edit_scene`."""
    if revision != get_talk_revision():
        return
    current_talk, mistakes = get_talk()
    _set_edited_talk(replace(current_talk, title=title), mistakes)


def edit_scene(revision: int, at: int, **changes: object) -> None:
    """Change fields of a scene where they stand; the fields on the page already show it.

    Args:
        revision: The revision of the talk for which the field was drawn. A change for an earlier one is ignored: when a
            run is cut short after an undo, Streamlit reports the fields of the talk before it once more.
        at: The scene, from 0.
        changes: Its fields, by name.
    """
    if revision != get_talk_revision():
        return
    current_talk, mistakes = get_talk()
    scenes = list(current_talk.scenes)
    scenes[at] = replace(scenes[at], **changes)  # type: ignore[arg-type]
    _set_edited_talk(replace(current_talk, scenes=tuple(scenes)), mistakes)


def _set_edited_talk(edited: Talk, mistakes: tuple[Mistake, ...]) -> None:
    """Keep what the fields on the page say.

    A run that is cut short has Streamlit report every field that it drew anew as changed, each as it was drawn: the
    same talk is no change, and nothing to undo.
    """
    if edited != get_talk()[0]:
        _save_undo_state()
        st.session_state["talk"] = edited, mistakes


def refresh_editor_fields() -> None:
    """Redraw the fields on the page after a change that was not made in them."""
    st.session_state["talk-revision"] = get_talk_revision() + 1


def rearrange_scenes(at: int, change: Callable[[list[Scene]], int]) -> None:
    """Let `change` move, remove or add scenes; it returns the scene that is edited next."""
    current_talk, mistakes = get_talk()
    scenes = list(current_talk.scenes)
    to = change(scenes)
    set_talk(replace(current_talk, scenes=tuple(scenes)), mistakes, to)
