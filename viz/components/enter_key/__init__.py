"""Enter finishes a sentence, also in a box of several lines; draws nothing."""

from __future__ import annotations

from ..bundle import component

_mount = component("enter_key")


def enter_key(box: str) -> None:
    """Let Enter submit the text area with the key `box`, as Control+Enter does; Shift+Enter is left alone."""
    _mount(key=f"enter-key-{box}", data={"box": box})
