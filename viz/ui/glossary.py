"""The glossary: what a term means, shown where the term stands and as a list in the menu of every page."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import streamlit as st

from model.language.current import current_language
from model.language.say import say
from model.language.texts import texts_in

FILE = Path(__file__).parent / "glossary.toml"
ENDINGS = {"de": "(?:e[mns]?|n|s)?"}
"""What each word of a term may end in besides, by language; elsewhere every form stands in the file."""
LONGER = {"de": r"\w"}
"""What makes a longer word of a term; a hyphen too, but in German, where it joins whole nouns."""
LETTERS = {"zh": re.ASCII}
"""Which letters do: Chinese has no borders of words."""


@dataclass(frozen=True)
class Entry:
    """A term, and what it means in two sentences."""

    term: str
    text: str
    formula: str = ""
    also: tuple[str, ...] = ()
    """Other forms of the term, such as its plural."""
    reading: str = ""
    """How it is put in order where its own signs have none: Chinese by pinyin."""

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.term, *self.also)

    @property
    def meaning(self) -> str:
        """The two sentences, and the formula in a line of its own."""
        return f"{self.text}\n{self.formula}" if self.formula else self.text


def entries() -> tuple[Entry, ...]:
    """Return the entries in the current language, in alphabetical order."""
    return _entries(current_language())


@cache
def _entries(language: str) -> tuple[Entry, ...]:
    found = (Entry(**one | {"also": tuple(one.get("also", ()))}) for one in texts_in(FILE, language)["entry"])
    return tuple(sorted(found, key=lambda entry: (entry.reading or entry.term).lower()))


def with_meanings(markdown: str) -> str:
    """Return Markdown in which a term has its meaning, where it stands first: by hover, focus and tap.

    What stands in quotes is a token or a sentence, and is left as it is.
    """
    language = current_language()
    shown: set[Entry] = set()

    def mark(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        entry = _entry_of(found[1], language)
        if entry in shown:
            return found[0]
        shown.add(entry)
        meaning = html.escape(entry.meaning).replace("\n", "&#10;")
        return f'<span class="term" tabindex="0" data-meaning="{meaning}">{found[0]}</span>'

    return _pattern(language).sub(mark, markdown)


def glossary() -> None:
    """Draw all entries, folded away."""
    heading = html.escape(say("Glossary"))
    listed = "".join(f"<dt>{html.escape(one.term)}</dt><dd>{_as_html(one)}</dd>" for one in entries())
    st.html(f'<details class="glossary"><summary>{heading}</summary><dl>{listed}</dl></details>')


def _as_html(entry: Entry) -> str:
    return "<br>".join(map(html.escape, entry.meaning.split("\n")))


@cache
def _forms(language: str) -> list[tuple[str, Entry]]:
    """Every form of a term with its entry, the longest first."""
    found = [(form, entry) for entry in _entries(language) for form in entry.forms]
    return sorted(found, key=lambda one: len(one[0]), reverse=True)


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """A form of a term, as a group; or, without the group, what is passed over: quotations and the file's `passed`."""
    terms = "|".join(_written(form, ENDINGS.get(language, "")) for form, _ in _forms(language))
    passed = "|".join(map(_written, texts_in(FILE, language)["passed"]))
    longer = LONGER.get(language, r"[\w-]")
    before, after = rf"(?:(?<!{longer})(?<!\\_)|(?!\w))", rf"(?:(?!\\?{longer})|(?<!\w))"
    whole = rf"„[^“]*“|“[^”]*”|(?:{passed}){after}|{before}({terms}){after}"
    return re.compile(whole, re.IGNORECASE | LETTERS.get(language, re.NOFLAG))


@lru_cache(maxsize=1024)
def _entry_of(found: str, language: str) -> Entry:
    """The entry of a form as the pattern finds it."""
    ending = ENDINGS.get(language, "")
    return next(one for form, one in _forms(language) if re.fullmatch(_written(form, ending), found, re.IGNORECASE))


def _written(form: str, ending: str = "") -> str:
    """The pattern of a form as Markdown has it, each of its words with an ending."""
    return " ".join(re.escape(word).replace(r"\-", r"\\?-") + ending for word in form.split(" "))
