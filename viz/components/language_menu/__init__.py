"""The choice of the language, in the header."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from model.language.say import say

from ..bundle import component, told

_mount = component("language_menu")


def language_menu(languages: Mapping[str, str], current: str, choose: Callable[[str], None], *, key: str) -> None:
    """Draw a list of languages, each code with its name; `choose` is called with the code of one that is picked."""
    data = {"label": say("Language"), "languages": list(languages.items()), "current": current}
    _mount(key=key, data=data, on_chosen_change=lambda: choose(told(key).chosen))
