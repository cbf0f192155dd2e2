"""Runs the page again when its visitor switches between light and dark; shows nothing."""

from __future__ import annotations

from ..bundle import component

_mount = component("theme_watch")


def theme_watch(drawn: str) -> None:
    """Watch for a colour scheme other than `drawn` (light or dark)."""
    _mount(key="theme-watch", data={"drawn": drawn}, on_shown_change=lambda: None)
