"""Components around the pictures: page arrival, history, theme, drafts, kept files, saving and menus."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import streamlit as st

from attenscope.language import LANGUAGE_TAGS, current_language, say
from attenscope.viz.web.bundle import component_value, create_mount, pack_arrays, read_script

# The shell, which draws nothing: one component (src/shell), mounted for each of its parts.


_mount_shell = create_mount("shell")


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


def track_history(scrubbed: Iterable[str]) -> None:
    """Keep the steps of Back and Forward; a change of the parameters `scrubbed` alone is none."""
    _mount_shell(key="browser-history", data={"part": "history", "scrubbed": sorted(scrubbed)})


# Theme: the page runs again when its visitor switches between light and dark.


def watch_colour_scheme(drawn: str) -> None:
    """Watch for a colour scheme other than `drawn` (light or dark)."""
    _mount_shell(key="theme-watch", data={"part": "theme", "drawn": drawn}, on_shown_change=lambda: None)


# Enter key: it submits a sentence, also in a box of several lines.


def submit_on_enter(box: str) -> None:
    """Let Enter submit the text area with the key `box`, as Control+Enter does; Shift+Enter is left alone."""
    _mount_shell(key=f"enter-key-{box}", data={"part": "enter", "box": box})


# Drafts: texts kept in the visitor's browser, so that a reload, a crash or a restart of the server loses nothing.


def store_draft(name: str, text: str, *, on_found: Callable[[str], None]) -> None:
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


_mount_save_buttons = create_mount("save")
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
    encoder = read_script("film") if asked and asked["kind"] in MOVING_KINDS else ""
    data = {"name": name, "page": page, "asked": asked or {}, "moves": moves, "encoder": encoder, **how}
    _mount_save_buttons(key=key, data=data, on_take_change=on_take)


# The menu Share of every page: copy its address, and present it.


_mount_page_menu = create_mount("page_menu")


def draw_page_menu(*, key: str) -> None:
    """Draw buttons that copy the page's address and present the page."""
    words = {"copy": say("Copy the link"), "copied": say("Copied"), "present": say("Present this page")}
    _mount_page_menu(key=key, data=words)


# What a visitor sets for all pages: the language and the theme.


_mount_preferences = create_mount("preferences")


def draw_preferences(languages: Mapping[str, str], current: str, choose: Callable[[str], None], *, key: str) -> None:
    """Draw lists of languages, each code with its name, and of themes; `choose(code)` hears of another language."""
    words = {
        "language": say("Language"),
        "theme": say("Theme"),
        "themes": [say("as the system"), say("light"), say("dark")],
    }
    data = {"words": words, "languages": list(languages.items()), "current": current}
    _mount_preferences(key=key, data=data, on_chosen_change=lambda: choose(component_value(key).chosen))
