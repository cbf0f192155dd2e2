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
    "broken or fixed": "which picture of a fault is the broken one: their names and the colour of what is wrong",
}
"""What a scene can hide until the next key, or leave out."""
PARTS_OF: Mapping[str, tuple[str, ...]] = {
    "explore": ("sentence", "translation", "heads", "picture"),
    "decode": ("sentence", "next token", "attention", "matrix", "candidates", "player", "decoding", "tree", "best"),
    "why": ("sentence", "translation", "picture"),
    "heads": ("sentence", "picture"),
    "positions": ("sentence", "translation", "heads", "picture"),
    "training": ("sentence", "picture"),
    "masks": ("sentence", "picture", "verdict", "broken or fixed"),
}
"""Which of these a page has."""
MOST_SCENES = 99
LONGEST = {"title": 200, "point": 300, "notes": 8000, "page": 60, "trace": 120, "arrays": 120}
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
    trace: str = ""
    """The name of a saved trace beside the talk that the scene shows (:mod:`viz.talk.beside`)."""
    arrays: str = ""
    """The name of a file with a mask or weights beside the talk, for the page Masks."""
    guess: tuple[str, ...] = ()
    """Parts of the picture among which the audience chooses before the next key, see :mod:`viz.talk.guess`."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Where its keys stand in the file it was read from, from 1; "" is its first line."""

    def address(self, model: str = "", **more: str) -> str:
        """Path and query of the view inside the app; `model` is that of the talk, `more` is added."""
        query = self.query(model) | more
        path = "/" if self.page == "explore" else f"/{self.page}"
        return f"{path}?{urlencode(query)}" if query else path

    def query(self, model: str = "") -> dict[str, str]:
        """The address of the view: `model` is that of the talk; a file with arrays is read as one that is uploaded."""
        return ({"model": model} if model else {}) | ({"from": "upload"} if self.arrays else {}) | dict(self.view)

    def presenter_data(
        self, model: str = "", keys: Mapping[str, str] | None = None, language: str = ""
    ) -> dict[str, Any]:
        """What :func:`viz.components.presenter.show` needs of it; `keys` are those of the files beside the talk.

        `language` is the one that its page speaks on the stage; "" for that of its view, else of the browser.
        """
        key = (keys or {}).get(self.trace or self.arrays, "")
        texts = {"title": self.title, "notes": self.notes, "point": self.point}
        more = {"lang": language, "live": "1" if self.live else "", "file": key}
        address = self.address(model, **{name: value for name, value in more.items() if value})
        parts = {"hide": self.hide, "omit": self.omit, "guess": self.guess}
        return {"address": address, **texts, **parts, "live": self.live}


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
