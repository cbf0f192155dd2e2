"""Buttons that save a view as PNG or SVG: a file that shows it is drawn out of sight, and pictures are taken of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..bundle import component

_mount = component("save")


def save_buttons(
    name: str,
    how: Mapping[str, Any],
    asked: Mapping[str, Any] | None,
    page: str,
    *,
    key: str,
    on_take: Callable[[], None],
) -> None:
    """Save pictures as `name`.png or `name`.svg; `how` holds their `scale`, `width`, and `clear`: no background.

    A press is told by `on_take`; mounted then with what was `asked` and the `page` to draw, the browser saves it.
    """
    _mount(key=key, data={"name": name, "page": page, "asked": asked or {}, **how}, on_take_change=on_take)
