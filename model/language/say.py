"""Messages in the current language: whole sentences with named values, written in English where they are said.

``say("{model} kept no snapshots.", model=name)``; gettext finds the sentence in the catalogue, then the values are put
in. Sentences are never joined from parts: another language orders them otherwise.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from .catalogue import SOURCE, catalogue
from .current import current_language

GERMAN = str.maketrans(",.", ".,")
MINUS = "\N{MINUS SIGN}"


def say(message: str, **values: Any) -> str:
    """The message in the current language, with values put in its {fields}, numbers as the language writes them."""
    language = current_language()
    return _filled(message if language == SOURCE else catalogue(language).gettext(message), values, language)


def say_many(one: str, many: str, count: int, **values: Any) -> str:
    """The same of a message whose words depend on the number `count`, which stands in it as {count}."""
    language = current_language()
    return _filled(catalogue(language).ngettext(one, many, count), {"count": count, **values}, language)


def to_say(message: str) -> str:
    """The message as it stands, marked for the catalogues: a constant that :func:`say` says when it is read."""
    return message


def sentences(*texts: str) -> str:
    """Whole sentences one after the other, as the language parts them; empty ones are left out."""
    return ("" if current_language() == "zh" else " ").join(filter(None, texts))


def listed(items: Iterable[str]) -> str:
    """Items in a row, as the language parts them."""
    return ("、" if current_language() == "zh" else ", ").join(items)


def number(value: float, form: str = "") -> str:
    """A number formatted as Python's format specifier says, with a minus sign as wide as its digits.

    It has the language's other signs too: 1.234,5 and 12 % in German.
    """
    text = format(value, form).replace("-", MINUS)
    return _in_german(text) if current_language() == "de" else text


def separators() -> str:
    """The signs before decimals and between thousands, as plotly's ``layout.separators`` has them."""
    return ",." if current_language() == "de" else ".,"


def _filled(text: str, values: Mapping[str, Any], language: str) -> str:
    if not values:
        return text
    return _Numbers(language).vformat(text, (), values)


class _Numbers(string.Formatter):
    """Python's format of a message, its numbers as a language writes them."""

    def __init__(self, language: str) -> None:
        self.language = language

    def format_field(self, value: Any, format_spec: str) -> str:
        text = super().format_field(value, format_spec)
        if not isinstance(value, Real) or isinstance(value, bool):
            return text
        text = _in_german(text) if self.language == "de" else text
        # What has no format is a value of code, such as an axis or an argument as it was typed.
        return text.replace("-", MINUS) if format_spec else text


def _in_german(number: str) -> str:
    return number.translate(GERMAN).replace("%", "\N{NARROW NO-BREAK SPACE}%")
