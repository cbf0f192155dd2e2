"""Messages in the reader's language: gettext catalogues, the current language, long texts, and argparse."""

from __future__ import annotations

import argparse
import functools
import gettext
import os
import re
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

# Messages in the current language: whole sentences with named values, written in English where they are said.
#
# ``say("{model} has no history.", model=name)``; gettext finds the sentence in the catalogue, then the values are
# put in. Sentences are never joined from parts: another language orders them otherwise.


GERMAN_SIGNS = str.maketrans(",.", ".,")
MINUS_SIGN = "\N{MINUS SIGN}"


IS_INSTALLED = Path(__file__).parent.name == "attenscope"
"""In the checkout this folder is called model."""
_INSTALLED_COMMANDS = {
    "python -m model": "attenscope",
    "python -m viz.export": "attenscope export",
    "python -m viz": "attenscope app",
}
"""Commands as they are typed in the checkout -> once the package is installed."""


def say(message: str, **values: Any) -> str:
    """Return the message in the current language, its {fields} filled in, numbers as the language writes them."""
    language = current_language()
    return _fill_message(
        message if language == SOURCE_LANGUAGE else load_catalogue(language).gettext(message), values, language
    )


def replace_commands_when_installed(text: str) -> str:
    """Return a text with its commands as one types them here: ``python -m model`` is ``attenscope`` once installed."""
    if IS_INSTALLED:
        for in_checkout, installed in _INSTALLED_COMMANDS.items():
            text = text.replace(in_checkout, installed)
    return text


def say_many(one: str, many: str, count: int, **values: Any) -> str:
    """Return a message whose words depend on the number `count`, which stands in it as {count}."""
    language = current_language()
    return _fill_message(load_catalogue(language).ngettext(one, many, count), {"count": count, **values}, language)


def to_say(message: str) -> str:
    """Mark a message for the catalogues and return it unchanged: a constant that :func:`say` translates later."""
    return message


def join_sentences(*texts: str) -> str:
    """Join whole sentences as the language separates them; empty ones are left out."""
    return ("" if current_language() == "zh" else " ").join(filter(None, texts))


def join_items(items: Iterable[str]) -> str:
    """Join items as the language separates them."""
    return ("、" if current_language() == "zh" else ", ").join(items)


def format_number(value: float, form: str = "") -> str:
    """Format a number by Python's format specifier, with a minus sign as wide as its digits.

    It has the language's other signs too: 1.234,5 and 12 % in German.
    """
    text = format(value, form).replace("-", MINUS_SIGN)
    return _format_german(text) if current_language() == "de" else text


def number_separators() -> str:
    """Return the signs before decimals and between thousands, as plotly's ``layout.separators`` has them."""
    return ",." if current_language() == "de" else ".,"


def _fill_message(text: str, values: Mapping[str, Any], language: str) -> str:
    text = replace_commands_when_installed(text)
    if not values:
        return text
    return _NumberFormatter(language).vformat(text, (), values)


class _NumberFormatter(string.Formatter):
    """Python's format of a message, its numbers as a language writes them."""

    def __init__(self, language: str) -> None:
        self.language = language

    def format_field(self, value: Any, format_spec: str) -> str:
        text = super().format_field(value, format_spec)
        if not isinstance(value, Real) or isinstance(value, bool):
            return text
        text = _format_german(text) if self.language == "de" else text
        # What has no format is a value of code, such as an axis or an argument as it was typed.
        return text.replace("-", MINUS_SIGN) if format_spec else text


def _format_german(number: str) -> str:
    return number.translate(GERMAN_SIGNS).replace("%", "\N{NARROW NO-BREAK SPACE}%")


# The catalogues: every message of the interface in each language, loaded once a process.


SOURCE_LANGUAGE = "en"
"""The language that messages are written in."""
LANGUAGES = {SOURCE_LANGUAGE: "English", "de": "Deutsch", "zh": "中文"}
"""What there is a catalogue of, by code, named as its readers name it."""
LANGUAGE_TAGS = {"zh": "zh-Hans"}
"""The language tags of HTML and browsers, where the code alone says too little."""
COMPLETE_LANGUAGES = (SOURCE_LANGUAGE, "de", "zh")
"""The languages that every page speaks; no other is offered."""
PSEUDO_LANGUAGE = "en-XA"
"""English with accents and 40% longer: what stands without them is not translated, and what is cut off has no room.
The name is that of Chromium's and Android's pseudo-locale."""
CATALOGUE_DOMAIN = "attenscope"
LOCALE_FOLDER = Path(__file__).parent / "locale"

ACCENTED_LETTERS = str.maketrans(
    "abcdefghijklmnoprstuwyzACDEGHIKLMNORSTUYZ", "áƀçđéƒğĥíĵķļɱñóþŕšťúŵýžÁÇĎÉĞĤÍĶĻṀÑÓŔŠŤÚÝŽ"
)
UNTRANSLATED_PARTS = re.compile(r"(\{[^}]*\}|`[^`]*`|<[^>]*>|https?://\S+|:[a-z_]+/[a-z_]+:)")
"""What a message has that is not read as words: values, code, markup, addresses, icons."""
DOUBLED_LETTERS = re.compile("[aeiounAEIOU]")


class PseudoTranslations(gettext.NullTranslations):
    """The messages as they stand in the source, accented and longer."""

    def gettext(self, message: str) -> str:
        """Return the message two fifths longer, with an accent on nearly every letter."""
        parts = UNTRANSLATED_PARTS.split(message)
        parts[::2] = [
            DOUBLED_LETTERS.sub(lambda match: match[0] * 2, part).translate(ACCENTED_LETTERS) for part in parts[::2]
        ]
        return "".join(parts)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Return the same of the form that English has for `n`."""
        return self.gettext(msgid1 if n == 1 else msgid2)


@functools.cache
def load_catalogue(language: str) -> gettext.NullTranslations:
    """Load the messages in a language. Raises ValueError where there is no catalogue of it."""
    if language == PSEUDO_LANGUAGE:
        return PseudoTranslations()
    if language == SOURCE_LANGUAGE:
        return gettext.NullTranslations()
    if language not in LANGUAGES:
        raise ValueError(f"There is no catalogue of {language!r}, only of {', '.join(LANGUAGES)}.")
    return gettext.translation(CATALOGUE_DOMAIN, LOCALE_FOLDER, [language])


def find_closest_language(wanted: str) -> str:
    """The language to use for one that a browser names, such as "de-AT" or "zh-Hans-CN"; English where none fits."""
    base = wanted.replace("_", "-").partition("-")[0].lower()
    return base if base in COMPLETE_LANGUAGES else SOURCE_LANGUAGE


# The current language: that of the enclosing block, else that of the visitor for whom this thread runs.


P = ParamSpec("P")
R = TypeVar("R")

_CURRENT_LANGUAGE: ContextVar[str | None] = ContextVar("the language that is spoken", default=None)
_of_visitor: Callable[[], str] = lambda: SOURCE_LANGUAGE  # noqa: E731


def current_language() -> str:
    """Return the code of the current language."""
    return _CURRENT_LANGUAGE.get() or _of_visitor()


def set_language(language: str) -> None:
    """Say everything in a language from here on, in a thread that runs for one visitor alone."""
    _CURRENT_LANGUAGE.set(language)


@contextmanager
def use_language(language: str) -> Iterator[None]:
    """Say everything in a language for one block of code. Raises ValueError where there is no catalogue of it."""
    load_catalogue(language)
    token = _CURRENT_LANGUAGE.set(language)
    try:
        yield
    finally:
        _CURRENT_LANGUAGE.reset(token)


def bind_language(work: Callable[P, R]) -> Callable[P, R]:
    """Bind `work` to the current language, whenever and in whatever thread it is called."""
    language = current_language()

    def call_in_language(*arguments: P.args, **named: P.kwargs) -> R:
        with use_language(language):
            return work(*arguments, **named)

    return call_in_language


def set_visitor_language_source(of_visitor: Callable[[], str]) -> None:
    """Take the language from `of_visitor` where none is set: it knows for whom the calling thread runs.

    An app that serves visitors calls this once; everything else speaks English.
    """
    global _of_visitor
    _of_visitor = of_visitor


# Long texts in TOML files: the English file says everything, a file beside it only the prose of another language.
#
# ``talk.toml`` has the scenes of a talk; ``talk.de.toml`` their titles and notes in German, scene by scene, and
# nothing that is the same in every language.


@functools.cache
def load_translated_toml(path: Path, language: str) -> dict[str, Any]:
    """Load an English TOML file, with its prose in a language where there is a translation; not to be changed.

    Tables in a list are matched by their place in it.
    """
    english = _read_toml(path)
    if language == PSEUDO_LANGUAGE:
        return _merge_translation(
            english, _read_toml(translation_path(path, "de")), lambda own, _: _pseudo_translate_texts(own)
        )
    if language == SOURCE_LANGUAGE:
        return english
    return _merge_translation(english, _read_toml(translation_path(path, language)), lambda _, translated: translated)


def translation_path(path: Path, language: str) -> Path:
    """Return the file with the prose of a language: ``talk.de.toml`` of ``talk.toml``."""
    return path.with_suffix(f".{language}{path.suffix}")


def _read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _merge_translation(own: Any, translated: Any, choose: Callable[[Any, Any], Any]) -> Any:
    """`own` with what `choose` takes wherever `translated` says something."""
    if isinstance(translated, dict):
        return own | {name: _merge_translation(own.get(name), value, choose) for name, value in translated.items()}
    if isinstance(translated, list) and any(isinstance(one, dict) for one in translated):
        return [_merge_translation(*pair, choose) for pair in zip(own, translated, strict=True)]
    return choose(own, translated)


def _pseudo_translate_texts(own: Any) -> Any:
    return (
        [*map(_pseudo_translate_texts, own)] if isinstance(own, list) else load_catalogue(PSEUDO_LANGUAGE).gettext(own)
    )


# The command line: its language, and the words of argparse in it.


LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The variables that name the language of messages; the first that is set counts."""
ARGPARSE_MESSAGES = (
    to_say("usage: "),
    to_say("positional arguments"),
    to_say("options"),
    to_say("show this help message and exit"),
    to_say("%(prog)s: error: %(message)s\n"),
    to_say("argument %(argument_name)s: %(message)s"),
    to_say("the following arguments are required: %s"),
    to_say("one of the arguments %s is required"),
    to_say("not allowed with argument %s"),
    to_say("unrecognized arguments: %s"),
    to_say("expected one argument"),
    to_say("expected at least one argument"),
    to_say("invalid choice: %(value)r (choose from %(choices)s)"),
    to_say("invalid %(type)s value: %(value)r"),
)
"""What argparse says, and asks the default catalogue of the process for."""


def terminal_language(environment: Mapping[str, str] = os.environ) -> str:
    """Return the language of a command line as gettext finds it: none but English where the locale is C.

    ``LANGUAGE`` may list several, of which the first that is offered counts; else the locale says it.
    """
    locale = next((found for name in LOCALE_VARIABLES if (found := environment.get(name))), "")
    if _base_language(locale) in ("", "c", "posix"):
        return SOURCE_LANGUAGE
    wanted = [one for one in environment.get("LANGUAGE", "").split(":") if one] or [locale]
    if wanted[0].replace("_", "-") == PSEUDO_LANGUAGE:
        return PSEUDO_LANGUAGE
    return next(
        (find_closest_language(one) for one in wanted if _base_language(one) in COMPLETE_LANGUAGES), SOURCE_LANGUAGE
    )


def add_language_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--language``, by default that of the terminal, to a command that writes what people read."""
    parser.add_argument(
        "--language",
        choices=COMPLETE_LANGUAGES,
        default=current_language(),
        help=say("the language of what is written (default: that of the terminal)"),
    )


def translate_argparse(language: str) -> None:
    """Let argparse, whose words come from the default catalogue of the process, have them from this project's.

    It reads the language of the terminal by itself, so where that is not spoken, it has no catalogue. No page reads the
    default catalogue.
    """
    gettext.bindtextdomain(CATALOGUE_DOMAIN, str(LOCALE_FOLDER))
    gettext.textdomain("messages" if language == SOURCE_LANGUAGE else CATALOGUE_DOMAIN)


def _base_language(locale: str) -> str:
    """The language of a locale such as "de_AT.UTF-8", in lower case."""
    return locale.partition(".")[0].partition("@")[0].partition("_")[0].partition("-")[0].lower()
