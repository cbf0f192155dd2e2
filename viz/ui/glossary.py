"""The glossary: what a term means, shown where the term stands and as a list in the menu of every page."""

from __future__ import annotations

import html
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import streamlit as st

FILE = Path(__file__).parent / "glossary.toml"


@dataclass(frozen=True)
class Entry:
    """A term, and what it means in two sentences."""

    term: str
    text: str
    formula: str = ""
    also: tuple[str, ...] = ()
    """Other forms of the term, such as its plural."""

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.term, *self.also)

    @property
    def meaning(self) -> str:
        """The two sentences, and the formula in a line of its own."""
        return f"{self.text}\n{self.formula}" if self.formula else self.text


@cache
def entries() -> tuple[Entry, ...]:
    """Return the entries in alphabetical order."""
    found = (Entry(**one | {"also": tuple(one.get("also", ()))}) for one in tomllib.loads(FILE.read_text())["entry"])
    return tuple(sorted(found, key=lambda entry: entry.term.lower()))


def with_meanings(markdown: str) -> str:
    """Return Markdown in which a term has its meaning, where it stands first: by hover, focus and tap.

    What stands in quotes is a token or a sentence, and is left as it is.
    """
    shown: set[Entry] = set()

    def mark(found: re.Match[str]) -> str:
        entry = _by_form().get(_spelling(found[0]))
        if entry is None or entry in shown:
            return found[0]
        shown.add(entry)
        meaning = html.escape(entry.meaning).replace("\n", "&#10;")
        return f'<span class="term" tabindex="0" data-meaning="{meaning}">{found[0]}</span>'

    return _pattern().sub(mark, markdown)


def glossary() -> None:
    """Draw all entries, folded away."""
    listed = "".join(f"<dt>{html.escape(one.term)}</dt><dd>{_as_html(one)}</dd>" for one in entries())
    st.html(f'<details class="glossary"><summary>Glossary</summary><dl>{listed}</dl></details>')


def _as_html(entry: Entry) -> str:
    return "<br>".join(map(html.escape, entry.meaning.split("\n")))


def _spelling(words: str) -> str:
    return words.replace("\\", "").lower()


@cache
def _by_form() -> dict[str, Entry]:
    return {form.lower(): entry for entry in entries() for form in entry.forms}


@cache
def _pattern() -> re.Pattern[str]:
    """A form of a term, the longest first; or what is passed over: a quotation, a keyboard's keys."""
    forms = sorted(_by_form(), key=len, reverse=True)
    written = "|".join(re.escape(form).replace(r"\-", r"\\?-") for form in forms)
    own, passed = rf"(?<![\w-])(?<!\\_)(?:{written})(?!\\?[\w-])", r"“[^”]*”|arrow keys|the key n\b|next key"
    return re.compile(f"{passed}|{own}", re.IGNORECASE)
