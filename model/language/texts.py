"""Long texts in TOML files: the English file says everything, a file beside it only the prose of another language.

``talk.toml`` has the scenes of a talk; ``talk.de.toml`` their titles and notes in German, scene by scene, and nothing
that is the same in every language.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .catalogue import PSEUDO, SOURCE, catalogue


@functools.cache
def texts_in(path: Path, language: str) -> dict[str, Any]:
    """What an English TOML file says, with the prose of a language where there is any; not to be changed.

    Tables in a list are matched by their place in it.
    """
    english = _read(path)
    if language == PSEUDO:
        return _with(english, _read(beside(path, "de")), lambda own, _: _accented(own))
    if language == SOURCE:
        return english
    return _with(english, _read(beside(path, language)), lambda _, translated: translated)


def beside(path: Path, language: str) -> Path:
    """The file with the prose of a language: ``talk.de.toml`` of ``talk.toml``."""
    return path.with_suffix(f".{language}{path.suffix}")


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _with(own: Any, translated: Any, choose: Callable[[Any, Any], Any]) -> Any:
    """`own` with what `choose` takes wherever `translated` says something."""
    if isinstance(translated, dict):
        return own | {name: _with(own.get(name), value, choose) for name, value in translated.items()}
    if isinstance(translated, list) and any(isinstance(one, dict) for one in translated):
        return [_with(*pair, choose) for pair in zip(own, translated, strict=True)]
    return choose(own, translated)


def _accented(own: Any) -> Any:
    return [*map(_accented, own)] if isinstance(own, list) else catalogue(PSEUDO).gettext(own)
