"""A page appears once its parts stand where they stay, so that nothing jumps while it loads; draws nothing."""

from __future__ import annotations

from model.language.catalogue import TAGS
from model.language.current import current_language

from ..bundle import component

_mount = component("arrival")


def arrival(page: str) -> None:
    """Keep `page` out of sight, as the style sheet does, until its script has run and nothing in it moves.

    The document is said to be in the current language.
    """
    language = current_language()
    _mount(key="arrival", data={"page": page, "language": TAGS.get(language, language)})
