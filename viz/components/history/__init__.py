"""One action of a visitor is one step of the browser's history; draws nothing."""

from __future__ import annotations

from collections.abc import Iterable

from ..bundle import component

_mount = component("history")


def history(scrubbed: Iterable[str]) -> None:
    """Keep the steps of Back and Forward; a change of the parameters `scrubbed` alone is none."""
    _mount(key="browser-history", data={"scrubbed": sorted(scrubbed)})
