"""Components around the pictures: arrival, history, theme, drafts, kept files, saving, menus, and the whole screen."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from attenscope.language import LANGUAGE_TAGS, current_language, say
from attenscope.viz.streamlit_internals import find_chart_script, is_history_navigation
from attenscope.viz.web.component_scripts import (
    component_value,
    create_mount_function,
    pack_arrays,
    read_standalone_script,
)

# The shell, which draws nothing: one component (src/shell), mounted for each of its parts.


_mount_shell = create_mount_function("shell")


# Arrival: a page appears once its parts have settled, so that nothing jumps while it loads.


def hide_until_ready(page: str) -> None:
    """Keep `page` out of sight, as the style sheet does, until its script has run and nothing in it moves.

    The document is said to be in the current language.
    """
    language = current_language()
    _mount_shell(
        key="arrival", data={"part": "arrival", "page": page, "language": LANGUAGE_TAGS.get(language, language)}
    )


# History: one action of a visitor is one step of the browser's history.


def track_history(*, scrubbed: Iterable[str], of_sentence: Iterable[str]) -> None:
    """Keep the steps of Back and Forward.

    Args:
        scrubbed: Parameters of the address whose change alone is no step.
        of_sentence: Parameters that mean nothing for another sentence.
    """
    names = {"scrubbed": sorted(scrubbed), "ofSentence": sorted(of_sentence)}
    _mount_shell(key="browser-history", data={"part": "history", **names})


# Theme: the page runs again when its visitor switches between light and dark.


def watch_colour_scheme(drawn: str) -> None:
    """Watch for a colour scheme other than `drawn` (light or dark)."""
    _mount_shell(key="theme-watch", data={"part": "theme", "drawn": drawn}, on_shown_change=lambda: None)


# Enter key: it submits a sentence, also in a box of several lines.


def submit_on_enter(box: str) -> None:
    """Let Enter submit the text area with the key `box`, as Control+Enter does; Shift+Enter is left alone."""
    _mount_shell(key=f"enter-key-{box}", data={"part": "enter", "box": box})


def submit_on_paste(box: str) -> None:
    """Let what is pasted into the text area with the key `box` be submitted at once."""
    _mount_shell(key=f"paste-{box}", data={"part": "paste", "box": box})


# Drafts: texts kept in the visitor's browser, so that a reload, a crash or a restart of the server loses nothing.


def keep_draft_in_browser(name: str, text: str, *, on_found: Callable[[str], None]) -> None:
    """Keep `text` under `name`; `on_found(text)` hears, once, of what is kept while `text` is empty."""
    key = f"draft-{name}"
    found = lambda: on_found(str(st.session_state[key].found["text"]))  # noqa: E731
    _mount_shell(key=key, data={"part": "draft", "name": name, "text": text}, on_found_change=found)


# Kept files: the browser keeps the files beside a talk, and gives them back when the server has lost them.


_FILES_KEY, _WANTED_FILE_KEY = "kept-files", "kept-files wanted"


def keep_files_in_browser(
    known: Mapping[str, str],
    lost: Mapping[str, str],
    data: Callable[[str], bytes],
    on_found: Callable[[str, bytes], None],
) -> None:
    """Have the browser keep the files `known` by name and key, whose bytes are `data(name)`.

    Of those that are `lost`, each that the browser has under the same key is told once to `on_found(name, bytes)`.
    """

    def handle_request() -> None:
        st.session_state[_WANTED_FILE_KEY] = _read_browser_value("wanted").get("name")

    def handle_files() -> None:
        told = _read_browser_value("found")
        try:
            on_found(str(told.get("name")), base64.b64decode(str(told.get("data")), validate=True))
        except binascii.Error:
            return

    name = st.session_state.pop(_WANTED_FILE_KEY, None)
    sent = name if name in known else None
    header = {"part": "files", "known": dict(known), "lost": dict(lost), "sent": sent}
    body = data(sent) if sent else b""
    _mount_shell(
        key=_FILES_KEY, data=pack_arrays(header, body), on_wanted_change=handle_request, on_found_change=handle_files
    )


def _read_browser_value(what: str) -> Mapping[str, Any]:
    """What the browser has sent under a name; empty where it is not a mapping."""
    value = getattr(st.session_state[_FILES_KEY], what)
    return value if isinstance(value, Mapping) else {}


# Saving a view as PNG or SVG: a file that shows it is drawn out of sight, and pictures are taken of it.


_mount_save_buttons = create_mount_function("save")
MOVING_KINDS = ("webm", "gif")
"""Kinds of film, by the endings of their files."""


def draw_save_buttons(
    name: str,
    how: Mapping[str, Any],
    asked: Mapping[str, Any] | None,
    page: str,
    *,
    key: str,
    moves: bool,
    on_take: Callable[[], None],
) -> None:
    """Save pictures as `name`.png or `name`.svg; `how` holds their `scale`, `width`, and `clear`: no background.

    Of a view that `moves` the browser also makes a film, `name`.webm or `name`.gif. A press calls `on_take`; mounted
    again with what was `asked` and the `page` to draw, the browser saves it.
    """
    encoder = read_standalone_script("film") if asked and asked["kind"] in MOVING_KINDS else ""
    data = {"name": name, "page": page, "asked": asked or {}, "moves": moves, "encoder": encoder, **how}
    _mount_save_buttons(key=key, data=data, on_take_change=on_take)


# The menu Share of every page: copy its address, and present it.


_mount_page_menu = create_mount_function("page_menu")


def draw_copy_and_present_buttons(*, key: str) -> None:
    """Draw buttons that copy the page's address and show the page full screen."""
    words = {"copy": say("Copy the link"), "copied": say("Copied"), "present": say("Full screen")}
    _mount_page_menu(key=key, data=words)


# What a visitor sets for all pages: the language and the theme.


_mount_preferences = create_mount_function("preferences")


def draw_preferences(
    languages: Mapping[str, str], current: str, pages: Collection[str], choose: Callable[[str], None], *, key: str
) -> None:
    """Draw lists of languages, each code with its name, and of themes; `choose(code)` hears of another language.

    The theme is chosen for all `pages`, by their names in the address.
    """
    words = {
        "language": say("Language"),
        "theme": say("Theme"),
        "themes": [say("as the system"), say("light"), say("dark")],
    }
    data = {"words": words, "languages": list(languages.items()), "current": current, "pages": list(pages)}
    _mount_preferences(key=key, data=data, on_chosen_change=lambda: choose(component_value(key).chosen))


# Presenter mode: a page, or a talk's scenes one after another, with nothing on the screen but the pictures.


_mount_presenter = create_mount_function("presenter")
_SERVER_ID = secrets.token_hex(8)
"""Identifies this process: another one may have other models, and other code that draws them."""
LONGEST_TURN = 6
"""Digits of the number of a scene in its frame."""
COLLECTED_VIEWS = "collected views"
"""The session key of the list that collects the views of a scene while it is saved in a talk's file."""


def is_presenting() -> bool:
    """Whether this page is a scene on the whole screen: in a frame, large, with nothing but its pictures."""
    return bool(st.context.is_embedded) and get_scene_turn() > 0


def get_scene_turn() -> int:
    """Which of the scenes of its frame this is, from 1, as ``present=1`` says; 0 where nothing is presented."""
    text = st.query_params.get("present", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_TURN else 0


def forget_previous_scene() -> None:
    """Empty the session where a frame goes on to another scene: that one is what its address says, and nothing else.

    Call it before anything reads the session.
    """
    if is_presenting() and is_history_navigation():
        st.session_state.clear()


def is_on_stage() -> bool:
    """Whether this page is a scene, on the whole screen or for a talk's file: read from the back row."""
    return is_presenting() or COLLECTED_VIEWS in st.session_state


def can_audience_type_sentence() -> bool:
    """Whether the scene takes sentences from the audience."""
    return st.query_params.get("live") == "1"


def get_scene_file_key() -> str:
    """The key of the file that the scene shows, "" for none (:mod:`attenscope.viz.traces.upload_store`)."""
    return st.query_params.get("kept", "")


def mount_page_presenter(file: str = "") -> None:
    """Let the key p, or ``present=1`` in the address, show this page alone; draws nothing.

    `file` is the key of the file that the page shows, if it shows one (:mod:`attenscope.viz.traces.upload_store`).
    """
    _mount_presenter(key="presenter", data={"scenes": None, "file": file})


def mount_talk_presenter(
    title: str,
    scenes: Sequence[Mapping[str, Any]],
    at: int = 0,
    *,
    own: bool,
    scheme: str,
    on_left: Callable[[int], None],
) -> None:
    """Let the key p, a button, or ``present=1`` in the address, show the scenes of a talk, as JSON-like mappings.

    Each has the texts ``address`` (inside the app), ``title``, ``notes`` and ``point``, and the lists ``hide`` and
    ``omit`` of parts and ``guess`` of choices, as the scenes of a talk define them; ``live`` says whether it takes
    sentences. `own` says whether the talk is the visitor's. A second button begins at the scene `at`,
    from 0, and `on_left(scene)` hears which one was shown when the stage was left. A third one rehearses: the browser
    draws all scenes and keeps them while they, the colours (`scheme`) and the server stay the same.
    """
    left = lambda: on_left(int(st.session_state["show"].left["scene"]))  # noqa: E731
    data = {"title": title, "scenes": [dict(scene) for scene in scenes], "at": at, "own": own}
    data |= {"server": _SERVER_ID, "scheme": scheme, "script": find_chart_script().name}
    _mount_presenter(key="show", data=data, on_left_change=left)


# Pictures of a talk's scenes in its editor: drawn in the visitor's browser, out of sight, by the app's own pages.


_mount_scene_pictures = create_mount_function("scene_pictures")
_PICTURES_KEY = "scene-pictures"


def draw_scene_preview_and_thumbnails(
    list_key: str,
    scenes: Sequence[Mapping[str, Any] | None],
    at: int,
    scheme: str,
    parts: Mapping[str, str],
    on_parts: Callable[[Sequence[str], Sequence[str]], None],
) -> None:
    """Draw the scene that is edited, and put a small picture before each label of the list with the key `list_key`.

    `scenes` are as :func:`mount_talk_presenter` takes them, None for one that cannot be shown; `at` is the one
    that is edited, from 0. Its picture is drawn when nobody works on the page, and kept by the browser while the scene,
    the colours (`scheme`) and the server stay the same; those of the list are kept by a rehearsal. The `parts` of the
    scene, each with its name for people, are clicked on its picture: ``on_parts(hide, omit)`` hears which are then
    hidden, and which left out.
    """

    def handle_message() -> None:
        found = st.session_state[_PICTURES_KEY].parts
        on_parts(*([str(one) for one in found.get(name, ())] for name in ("hide", "omit")))

    needed = ("address", "title", "hide", "omit", "guess")
    shown = [scene and {name: scene[name] for name in needed} for scene in scenes]
    data = {"list": list_key, "scenes": shown, "at": at, "server": _SERVER_ID, "scheme": scheme, "parts": dict(parts)}
    _mount_scene_pictures(key=_PICTURES_KEY, data=data, on_parts_change=handle_message)
