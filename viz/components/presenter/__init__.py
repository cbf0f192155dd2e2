"""Presenter mode: this page, or a talk's scenes one after another, with nothing on the screen but the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from ..bundle import component

if TYPE_CHECKING:
    from ...talk.scenes import Scene, Talk

_mount = component("presenter")
SCENE = 350
"""Pixels of a figure's height on the whole screen, which then grows as the frame does: type and strokes with it."""


def presenting() -> bool:
    """Whether this page is a scene on the whole screen: in a frame, large, with nothing but its pictures."""
    return bool(st.context.is_embedded) and st.query_params.get("present") == "1"


def presenter() -> None:
    """Let the key p, or ``present=1`` in the address, show this page alone; draws nothing."""
    _mount(key="presenter", data={"scenes": None})


def show(talk: Talk, scenes: Sequence[Scene]) -> None:
    """Let the key p, a button, or ``present=1`` in the address, show `scenes` of the talk."""
    listed: list[dict[str, Any]] = [
        {
            "address": scene.address(talk.model),
            "title": scene.title,
            "notes": scene.notes,
            "point": scene.point,
            "hide": scene.hide,
            "omit": scene.omit,
        }
        for scene in scenes
    ]
    _mount(key="show", data={"title": talk.title, "scenes": listed})
