"""Components that present a page or a talk on the whole screen, and draw small pictures of its scenes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from attenscope.viz.web.bundle import create_mount

# Presenter mode: a page, or a talk's scenes one after another, with nothing on the screen but the pictures.


_mount_presenter = create_mount("presenter")
_SERVER_ID = secrets.token_hex(8)
"""Identifies this process: another one may have other models, and other code that draws them."""
COLLECTED_VIEWS = "collected views"
"""The session key of the list that collects the views of a scene while it is saved in a talk's file."""


def is_presenting() -> bool:
    """Whether this page is a scene on the whole screen: in a frame, large, with nothing but its pictures."""
    return bool(st.context.is_embedded) and st.query_params.get("present") == "1"


def is_on_stage() -> bool:
    """Whether this page is a scene, on the whole screen or for a talk's file: read from the back row."""
    return is_presenting() or COLLECTED_VIEWS in st.session_state


def can_type_sentence() -> bool:
    """Whether the scene takes sentences from the audience."""
    return st.query_params.get("live") == "1"


def get_scene_file_key() -> str:
    """The key of the file that the scene shows, "" for none (:mod:`attenscope.viz.traces.upload_store`)."""
    return st.query_params.get("file", "")


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
    data |= {"server": _SERVER_ID, "scheme": scheme}
    _mount_presenter(key="show", data=data, on_left_change=left)


# Pictures of a talk's scenes in its editor: drawn in the visitor's browser, out of sight, by the app's own pages.


_mount_scene_pictures = create_mount("scene_pictures")
_PICTURES_KEY = "scene-pictures"


def draw_scene_pictures(
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
