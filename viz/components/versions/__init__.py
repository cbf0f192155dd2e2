"""Translations of one sentence below each other, their differences marked; choose one to see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ..bundle import component

_mount = component("versions")


@dataclass(frozen=True)
class Version:
    """One row."""

    what: str
    """How it was made, in a word or two."""
    words: Sequence[tuple[str, str]]
    """Runs of words, spaces included, with their mark: ``same``, ``new`` or ``gone``."""
    numbers: Sequence[str]
    """One for each heading."""


def versions(
    rows: Sequence[Version], headings: Sequence[str], current: int, *, key: str, on_choice: Callable[[int], None]
) -> None:
    """Draw `rows`, the `current` one marked (-1 for none); `on_choice(number)` hears of a click."""

    def chosen() -> None:
        on_choice(int(st.session_state[key].choice["number"]))

    _mount(key=key, data=versions_data(rows, headings, current), on_choice_change=chosen)


def versions_data(rows: Sequence[Version], headings: Sequence[str], current: int) -> dict[str, Any]:
    """What versions.js reads."""
    listed = [{"what": row.what, "words": row.words, "numbers": row.numbers} for row in rows]
    return {"headings": headings, "versions": listed, "current": current}
