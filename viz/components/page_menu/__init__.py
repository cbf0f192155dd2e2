"""What can be done with any page: present it, copy its address, and the keys that work on it."""

from __future__ import annotations

from ..bundle import component

_mount = component("page_menu")

KEYS: tuple[tuple[str, str], ...] = (
    ("p", "the view on the whole screen, and back"),
    ("← → ↑ ↓", "the next tile, cell or step of what has the focus"),
    ("Home, End", "the first and the last step"),
    ("Space", "plays a decoding, and pauses it"),
    ("Enter", "opens the tile, pins the cell"),
    ("Esc", "closes a menu, leaves the whole screen"),
)
"""The keys and what each does."""


def page_menu(*, key: str) -> None:
    """Draw buttons that present the page and copy its address, and the list of keys."""
    words = {"present": "Present this page", "copy": "Copy the link", "copied": "Copied", "keys": "Keys"}
    _mount(key=key, data={"words": words, "keys": [list(one) for one in KEYS]})
