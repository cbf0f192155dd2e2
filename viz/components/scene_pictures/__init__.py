"""Pictures of a talk's scenes in its editor: drawn in the visitor's browser, out of sight, by the app's own pages."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from ..bundle import component

_mount = component("scene_pictures")
_KEY = "scene-pictures"
_SERVER = secrets.token_hex(8)
"""Of this process: another one may have other models, and other code that draws them."""


def scene_pictures(
    list_key: str,
    scenes: Sequence[Mapping[str, Any] | None],
    at: int,
    scheme: str,
    parts: Mapping[str, str],
    on_parts: Callable[[Sequence[str], Sequence[str]], None],
) -> None:
    """Draw the scene that is edited, and put a small picture before each label of the list with the key `list_key`.

    `scenes` are as :func:`viz.components.presenter.show` takes them, None for one that cannot be shown; `at` is the one
    that is edited, from 0. A picture is drawn when its row is in sight and nobody works on the page, one after the
    other, and kept by the browser while the scene, the colours (`scheme`) and the server stay the same. The `parts` of
    the scene, each with its name for people, are clicked on its picture: ``on_parts(hide, omit)`` hears which are then
    hidden, and which left out.
    """

    def told() -> None:
        found = st.session_state[_KEY].parts
        on_parts(*([str(one) for one in found.get(name, ())] for name in ("hide", "omit")))

    needed = ("address", "title", "hide", "omit")
    shown = [scene and {name: scene[name] for name in needed} for scene in scenes]
    data = {"list": list_key, "scenes": shown, "at": at, "server": _SERVER, "scheme": scheme, "parts": dict(parts)}
    _mount(key=_KEY, data=data, on_parts_change=told)
