"""The language of a command line, and the words of argparse in it."""

from __future__ import annotations

import argparse
import gettext
import os
from collections.abc import Mapping

from .catalogue import COMPLETE, DOMAIN, LOCALE, PSEUDO, SOURCE, closest
from .current import current_language
from .say import say, to_say

LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The variables that name the language of messages; the first that is set counts."""
ARGPARSE = (
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


def of_terminal(environment: Mapping[str, str] = os.environ) -> str:
    """Return the language of a command line as gettext finds it: none but English where the locale is C.

    ``LANGUAGE`` may list several, of which the first that is offered counts; else the locale says it.
    """
    locale = next((found for name in LOCALES if (found := environment.get(name))), "")
    if _base(locale) in ("", "c", "posix"):
        return SOURCE
    wanted = [one for one in environment.get("LANGUAGE", "").split(":") if one] or [locale]
    if wanted[0].replace("_", "-") == PSEUDO:
        return PSEUDO
    return next((closest(one) for one in wanted if _base(one) in COMPLETE), SOURCE)


def add_language(parser: argparse.ArgumentParser) -> None:
    """Give a command that writes what people read the option of its language, at first that of the terminal."""
    parser.add_argument(
        "--language",
        choices=COMPLETE,
        default=current_language(),
        help=say("the language of what is written (default: that of the terminal)"),
    )


def speak_for_argparse(language: str) -> None:
    """Let argparse, whose words come from the default catalogue of the process, have them from this project's.

    It reads the language of the terminal by itself, so where that is not spoken, it has no catalogue. No page reads the
    default catalogue.
    """
    gettext.bindtextdomain(DOMAIN, str(LOCALE))
    gettext.textdomain("messages" if language == SOURCE else DOMAIN)


def _base(locale: str) -> str:
    """The language of a locale such as "de_AT.UTF-8", in lower case."""
    return locale.partition(".")[0].partition("@")[0].partition("_")[0].partition("-")[0].lower()
