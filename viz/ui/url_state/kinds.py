"""The kinds of parameters: numbers, choices, switches, texts, and several values under one name."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from model.language.say import say

from .parameter import Parameter

T = TypeVar("T")


@dataclass(frozen=True)
class Number(Parameter[T]):
    """A number between bounds, whole where they are."""

    low: float = field(kw_only=True)
    high: float = field(kw_only=True)


@dataclass(frozen=True)
class Choice(Parameter[T]):
    """One of a few options."""

    options: tuple[T, ...] = field(kw_only=True)

    def hold(self, options: Sequence[T] | None = None, of: Hashable = None) -> T:
        """The value, one of all the options where no others are given."""
        return super().hold(self.options if options is None else options, of)

    def label(self, option: T) -> str:
        """What the visitor reads for an option; in English it stands in the address."""
        return say(self.write(option))


@dataclass(frozen=True)
class Several(Parameter[list[T]]):
    """Any number of values, each a text of its own in the address: ``dims=0&dims=7``."""

    def understands(self, texts: Sequence[str]) -> bool:
        """Whether any text means something: Streamlit leaves out the others."""
        return any(super(Several, self).understands([text]) for text in texts)


def number(name: str, default: Any, low: float, high: float, **more: Any) -> Number[Any]:
    """A number, whole where the bounds are; a default of None depends on what is looked at."""
    whole = isinstance(low, int) and isinstance(high, int)

    def read(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(f"{name} is a number from {low} to {high}.")
        return int(value) if whole else value

    return Number(name, default, read, low=low, high=high, **more)


def choice(
    name: str, options: Sequence[T], default: T | None = None, labels: Mapping[T, str] | None = None, **more: Any
) -> Choice[T]:
    """One of `options`, the first where no other is the default."""
    names = {option: (labels or {}).get(option, str(option)) for option in options}
    shown = {name: option for option, name in names.items()}

    def read(text: str) -> T:
        if text not in shown:
            raise ValueError(f"{name} is one of {', '.join(shown)}.")
        return shown[text]

    first = options[0] if default is None else default
    return Choice(name, first, read, write=names.__getitem__, options=tuple(options), **more)


def switch(name: str, default: bool = False, **more: Any) -> Parameter[bool]:
    """True or false."""

    def read(text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{name} is true or false.")
        return text.lower() == "true"

    return Parameter(name, default, read, write=lambda value: str(value).lower(), **more)


def text(name: str, default: str = "", **more: Any) -> Parameter[str]:
    """Any text up to a length."""
    return Parameter(name, default, str, **more)
