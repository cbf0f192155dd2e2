"""What a talk is: scenes, each a view of a page and what is said to it.

:mod:`viz.talk.talk_file` reads and writes the file of a talk. Nothing here knows a model; what a scene asks of one is
checked in :mod:`viz.talk.checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

PARTS = {
    "sentence": "the sentence",
    "translation": "its translation",
    "heads": "the overview of all heads",
    "picture": "the large picture",
    "next token": "the token written next, and its candidates",
    "attention": "which words are attended to",
    "matrix": "how the decoder looks at its own words",
    "candidates": "the candidates for the next token",
    "player": "the steps and where one is",
    "decoding": "the decoding step by step",
    "tree": "the beam tree",
    "best": "the best translations of a beam",
    "verdict": "what was found",
}
"""What a scene can hide until the next key, or leave out."""
MOST_SCENES = 99
LONGEST = {"title": 200, "point": 300, "notes": 8000, "page": 60}
"""Characters of each text."""


@dataclass(frozen=True)
class Scene:
    """One view of a page, and what is said to it."""

    title: str
    page: str
    """As the file of the page is named: explore, decode, ..."""
    view: Mapping[str, str] = field(default_factory=dict)
    """The page's address: names and values after the question mark."""
    notes: str = ""
    point: str = ""
    """What the audience is to look at; stands under the picture."""
    hide: tuple[str, ...] = ()
    """Members of PARTS that are covered until the next key."""
    omit: tuple[str, ...] = ()
    """Members of PARTS that are not shown at all."""
    live: bool = False
    """Whether it takes sentences from the audience, see :mod:`viz.talk.live`."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Where its keys stand in the file it was read from, from 1; "" is its first line."""

    def address(self, model: str = "", **more: str) -> str:
        """Path and query of the view inside the app; `model` is that of the talk, `more` is added."""
        query = ({"model": model} if model else {}) | dict(self.view) | more
        path = "/" if self.page == "explore" else f"/{self.page}"
        return f"{path}?{urlencode(query)}" if query else path

    def presenter_data(self, model: str = "") -> dict[str, Any]:
        """What :func:`viz.components.presenter.show` needs of it."""
        texts = {"title": self.title, "notes": self.notes, "point": self.point}
        address = self.address(model, **({"live": "1"} if self.live else {}))
        return {"address": address, **texts, "hide": self.hide, "omit": self.omit, "live": self.live}


@dataclass(frozen=True)
class Talk:
    """Scenes in the order in which they are shown."""

    title: str
    scenes: tuple[Scene, ...] = ()
    model: str = ""
    """The model of every scene that names no other."""


@dataclass(frozen=True)
class Mistake:
    """What is wrong in a file, and what to do; the rest of the talk still runs."""

    line: int
    """From 1; 0 where the scene is of no file."""
    text: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.text}" if self.line else self.text
