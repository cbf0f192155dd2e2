"""The catalogues: every message of the interface in each language, loaded once a process."""

from __future__ import annotations

import functools
import gettext
import re
from pathlib import Path

SOURCE = "en"
"""The language that messages are written in."""
LANGUAGES = {SOURCE: "English", "de": "Deutsch", "zh": "中文"}
"""What there is a catalogue of, by code, named as its readers name it."""
TAGS = {"zh": "zh-Hans"}
"""How HTML and browsers call a language, where its code alone says too little."""
COMPLETE = (SOURCE, "de", "zh")
"""The languages that every page speaks; no other is offered."""
PSEUDO = "en-XA"
"""English with accents and 40% longer: what stands without them is not translated, and what is cut off has no room.
The name is that of Chromium's and Android's pseudo-locale."""
DOMAIN = "attenscope"
LOCALE = Path(__file__).parent / "locale"

ACCENTED = str.maketrans("abcdefghijklmnoprstuwyzACDEGHIKLMNORSTUYZ", "áƀçđéƒğĥíĵķļɱñóþŕšťúŵýžÁÇĎÉĞĤÍĶĻṀÑÓŔŠŤÚÝŽ")
KEPT = re.compile(r"(\{[^}]*\}|`[^`]*`|<[^>]*>|https?://\S+|:[a-z_]+/[a-z_]+:)")
"""What a message has that is not read as words: values, code, markup, addresses, icons."""
DOUBLED = re.compile("[aeiounAEIOU]")


class Pseudo(gettext.NullTranslations):
    """The messages as they stand in the source, accented and longer."""

    def gettext(self, message: str) -> str:
        """Return the message two fifths longer, with an accent on nearly every letter."""
        parts = KEPT.split(message)
        parts[::2] = [DOUBLED.sub(lambda match: match[0] * 2, part).translate(ACCENTED) for part in parts[::2]]
        return "".join(parts)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Return the same of the form that English has for `n`."""
        return self.gettext(msgid1 if n == 1 else msgid2)


@functools.cache
def catalogue(language: str) -> gettext.NullTranslations:
    """The messages in a language. Raises ValueError for one that there is no catalogue of."""
    if language == PSEUDO:
        return Pseudo()
    if language == SOURCE:
        return gettext.NullTranslations()
    if language not in LANGUAGES:
        raise ValueError(f"There is no catalogue of {language!r}, only of {', '.join(LANGUAGES)}.")
    return gettext.translation(DOMAIN, LOCALE, [language])


def closest(wanted: str) -> str:
    """The language to use for one that a browser names, such as "de-AT" or "zh-Hans-CN"; English where none fits."""
    base = wanted.replace("_", "-").partition("-")[0].lower()
    return base if base in COMPLETE else SOURCE
