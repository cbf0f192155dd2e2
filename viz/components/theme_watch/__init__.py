"""Runs the page again when its visitor switches between light and dark, and says its language; shows nothing."""

from __future__ import annotations

from model.language.current import current_language

from ..bundle import component

_mount = component("theme_watch")


def theme_watch(drawn: str) -> None:
    """Watch for a colour scheme other than `drawn` (light or dark); mark the page to be in the current language."""
    _mount(key="theme-watch", data={"drawn": drawn, "language": current_language()}, on_shown_change=lambda: None)
