"""What can be done with any page: present it, copy its address, and the keys that work on it."""

from __future__ import annotations

from model.language.say import say, to_say

from ..bundle import component

_mount = component("page_menu")

KEYS: tuple[tuple[str, str], ...] = (
    ("p", to_say("the view on the whole screen, and back")),
    ("← → ↑ ↓", to_say("the next tile, cell or step of what has the focus")),
    (to_say("Home, End"), to_say("the first and the last step")),
    (to_say("Space"), to_say("plays a decoding, and pauses it")),
    (to_say("Enter"), to_say("opens the tile, pins the cell")),
    (to_say("Esc"), to_say("closes a menu, leaves the whole screen")),
)
"""The keys and what each does."""


def page_menu(*, key: str) -> None:
    """Draw buttons that present the page and copy its address, and the list of keys."""
    words = {
        "present": say("Present this page"),
        "copy": say("Copy the link"),
        "copied": say("Copied"),
        "keys": say("Keyboard"),
    }
    _mount(key=key, data={"words": words, "keys": [[say(keys), say(what)] for keys, what in KEYS]})
