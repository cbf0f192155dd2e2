"""The steps of the tour, each with something to look at and something to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from attenscope.language import current_language, load_translated_toml

TOUR_FILE = Path(__file__).parent / "tour.toml"
TOUR_MODEL = "everyday-en-de"
"""The released model on which a test checks what the texts say."""
PAGE_ONLY_PARAMETERS = {"order": "effect"}
"""Parameters of an address with values that a live file cannot show."""


@dataclass(frozen=True)
class TourStep:
    """One step: a view of the page, what to see in it, and another view that its button goes to."""

    title: str
    text: str
    button: str
    address: Mapping[str, str]
    """The view that the step begins with, as parameters of the address."""
    attempt: Mapping[str, str] = field(default_factory=dict)
    """The view that the button goes to; empty for the page Decode."""
    in_file: Mapping[str, str] = field(default_factory=dict)
    """Texts that a live file replaces, by name."""


def load_tour_steps() -> tuple[TourStep, ...]:
    """Return the steps that ship with the project, in the current language."""
    return _read_tour_steps(current_language())


@cache
def _read_tour_steps(language: str) -> tuple[TourStep, ...]:
    steps = load_translated_toml(TOUR_FILE, language)["step"]
    return tuple(TourStep(**{"attempt" if name == "try" else name: of for name, of in one.items()}) for one in steps)


def list_live_file_tour_steps(model: str) -> list[dict[str, Any]]:
    """Return what a live file with this model shows of the tour: the steps that need no server; none for others."""
    if model != TOUR_MODEL:
        return []
    sentence = {"sentence": load_tour_steps()[0].address["sentence"]}
    return [
        {"title": one.title, "text": one.text, "button": one.button, **one.in_file}
        | {"address": sentence | dict(one.address), "attempt": dict(one.attempt)}
        for one in load_tour_steps()
        if not (PAGE_ONLY_PARAMETERS.items() & {**one.address, **one.attempt}.items())
    ]
