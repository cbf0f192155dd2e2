"""The messages of pictures: in English, unless who draws them for a visitor speaks for them (:func:`spoken_by`)."""

from __future__ import annotations

import string
from collections.abc import Iterable
from numbers import Real
from typing import Any, Protocol


class Speaker(Protocol):
    """What says a message in somebody's language, as :mod:`model.language.say` does."""

    def say(self, message: str, **values: Any) -> str: ...

    def say_many(self, one: str, many: str, count: int, **values: Any) -> str: ...

    def number(self, value: float, form: str = "") -> str: ...

    def separators(self) -> str: ...

    def sentences(self, *texts: str) -> str: ...

    def listed(self, items: Iterable[str]) -> str: ...


class English(string.Formatter):
    """Messages as they stand in the source, with their values."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value formatted; a number that has a format as :meth:`number` writes it."""
        text = super().format_field(value, format_spec)
        return text.replace("-", "−") if format_spec and isinstance(value, Real) else text

    def say(self, message: str, **values: Any) -> str:
        """Return the message with values in its {fields}."""
        return self.vformat(message, (), values) if values else message

    def say_many(self, one: str, many: str, count: int, **values: Any) -> str:
        """Return the same of a message whose words depend on {count}."""
        return self.say(one if count == 1 else many, count=count, **values)

    def number(self, value: float, form: str = "") -> str:
        """Return a number formatted as Python's format specifier says, with a minus sign as wide as its digits."""
        return format(value, form).replace("-", "−")

    def separators(self) -> str:
        """Return the signs before decimals and between thousands."""
        return ".,"

    def sentences(self, *texts: str) -> str:
        """Return sentences in a row, without the empty ones."""
        return " ".join(filter(None, texts))

    def listed(self, items: Iterable[str]) -> str:
        """Return items in a row."""
        return ", ".join(items)


_speaker: Speaker = English()


def spoken_by(speaker: Speaker) -> None:
    """Have `speaker` say the messages of all pictures from now on; it knows for whom the calling thread draws."""
    global _speaker
    _speaker = speaker


def say(message: str, **values: Any) -> str:
    """The message in the reader's language, with values in its {fields}."""
    return _speaker.say(message, **values)


def say_many(one: str, many: str, count: int, **values: Any) -> str:
    """The same of a message whose words depend on the number `count`, which stands in it as {count}."""
    return _speaker.say_many(one, many, count, **values)


def number(value: float, form: str = "") -> str:
    """A number as the reader's language writes it."""
    return _speaker.number(value, form)


def separators() -> str:
    """The signs before decimals and between thousands, as plotly's ``layout.separators`` has them."""
    return _speaker.separators()


def sentences(*texts: str) -> str:
    """Whole sentences one after the other, as the language parts them; empty ones are left out."""
    return _speaker.sentences(*texts)


def listed(items: Iterable[str]) -> str:
    """Items in a row, as the language parts them."""
    return _speaker.listed(items)


def to_say(message: str) -> str:
    """The message as it stands, marked for the catalogues: a constant that :func:`say` says when it is read."""
    return message
