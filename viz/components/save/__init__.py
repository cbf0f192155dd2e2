"""Buttons that save what a frame of the page shows, as PNG or SVG: drawn by the browser, as it stands there."""

from __future__ import annotations

from ..bundle import component

_mount = component("save")


def save_buttons(frame: str, name: str, *, key: str) -> None:
    """Save the pictures inside the container with the key `frame` as `name`.png or `name`.svg."""
    _mount(key=key, data={"frame": frame, "name": name})
