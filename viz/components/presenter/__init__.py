"""Presenter mode: this page, or a talk's scenes one after another, with nothing on the screen but the pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from ..bundle import component

_mount = component("presenter")
COLLECTED = "collected views"
"""Of the session of a scene that is being saved in a talk's file: the list that its views are put into."""


def presenting() -> bool:
    """Whether this page is a scene on the whole screen: in a frame, large, with nothing but its pictures."""
    return bool(st.context.is_embedded) and st.query_params.get("present") == "1"


def on_stage() -> bool:
    """Whether this page is a scene, on the whole screen or for a talk's file: read from the back row."""
    return presenting() or COLLECTED in st.session_state


def live() -> bool:
    """Whether the scene takes sentences from the audience."""
    return st.query_params.get("live") == "1"


def shown_file() -> str:
    """The key of the file that the scene shows, "" for none (:mod:`viz.traces.kept`)."""
    return st.query_params.get("file", "")


def presenter(file: str = "") -> None:
    """Let the key p, or ``present=1`` in the address, show this page alone; draws nothing.

    `file` is the key of the file that the page shows, if it shows one (:mod:`viz.traces.kept`).
    """
    _mount(key="presenter", data={"scenes": None, "file": file})


def show(
    title: str, scenes: Sequence[Mapping[str, Any]], at: int = 0, *, own: bool, on_left: Callable[[int], None]
) -> None:
    """Let the key p, a button, or ``present=1`` in the address, show the scenes of a talk, as JSON-like mappings.

    Each has the texts ``address`` (inside the app), ``title``, ``notes`` and ``point``, and the lists ``hide`` and
    ``omit`` of parts and ``guess`` of choices, with what :func:`viz.talk.guess.clicked` says of them; ``live`` says
    whether it takes sentences. `own` says whether the talk is the visitor's. A second button begins at the scene `at`,
    from 0, and `on_left(scene)` hears which one was shown when the stage was left.
    """
    left = lambda: on_left(int(st.session_state["show"].left["scene"]))  # noqa: E731
    data = {"title": title, "scenes": [dict(scene) for scene in scenes], "at": at, "own": own}
    _mount(key="show", data=data, on_left_change=left)
