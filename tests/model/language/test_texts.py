"""Long texts in three languages: nothing is missing, and each has the numbers, quotes and terms of the English."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attenscope.language import PSEUDO_LANGUAGE, SOURCE_LANGUAGE, load_translated_toml, translation_path
from attenscope.viz import tour
from attenscope.viz.explore import examples
from attenscope.viz.talk import session
from attenscope.viz.ui import captions
from tests import messages
from tests.model.language.test_terms import breaches

FILES = (captions.GLOSSARY_FILE, tour.TOUR_FILE, examples.EXAMPLES_FILE, session.SHIPPED_TALK_FILE)
PROSE = {"title", "text", "button", "phenomenon", "see", "point", "notes", "term", "also", "passed", "formula"}
"""What is said otherwise in another language; all else is what is shown, and stands in the English file alone."""
SHOWN = {"address", "try", "view"}
"""Tables of what is shown, whose names are those of an address."""
MAY_STAY = {"passed", "formula"}
"""What holds in another language as it stands, where that says nothing else."""
OWN = {"reading"}
"""What a translation may have where the English text has none."""
KEYBOARD = re.compile("pressing the key|number keys")
"""Keys that are no keys of attention."""
NUMBER = re.compile(r"-?\d[\d,.]*\d|\d")
QUOTE = re.compile("“([^”]*)”")

both = pytest.mark.parametrize("language", messages.TRANSLATED)
each = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def leaves(table: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value of a file that is no table, by where it stands."""
    if isinstance(table, dict):
        for name, value in table.items():
            yield from leaves(value, (*path, name))
    elif isinstance(table, list) and any(isinstance(one, dict) for one in table):
        for at, one in enumerate(table):
            yield from leaves(one, (*path, str(at)))
    else:
        yield path, table


def in_english_signs(text: str, language: str) -> str:
    """A text with quotation marks and numbers as English writes them."""
    if language != "de":
        return text
    swapped = NUMBER.sub(lambda found: found[0].translate(str.maketrans(",.", ".,")), text)
    return re.sub("„([^“]*)“", r"“\1”", swapped)


def find_numbers(text: str, language: str = SOURCE_LANGUAGE) -> list[str]:
    """The numbers in a text, as English writes them."""
    return NUMBER.findall(in_english_signs(text, language))


def pairs(file: Path, language: str) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Every text that is translated: where it stands, in English and in the language."""
    english = dict(leaves(load_translated_toml(file, SOURCE_LANGUAGE)))
    for path, said in leaves(load_translated_toml(file, language)):
        if path[-1] in PROSE - {"also", "passed"}:
            yield path, english.get(path, ""), said


@both
@each
def test_a_translation_has_all_prose_of_the_english_file_and_nothing_else(file: Path, language: str) -> None:
    english = dict(leaves(load_translated_toml(file, SOURCE_LANGUAGE)))
    own = dict(leaves(load_translated_toml(translation_path(file, language), SOURCE_LANGUAGE)))
    prose = {path for path in english if path[-1] in PROSE and not SHOWN & {*path}}
    assert {path for path in prose if path[-1] not in MAY_STAY} <= {*own}
    assert {path for path in own if path[-1] not in OWN} <= prose
    assert all(english[path] == said for path, said in leaves(load_translated_toml(file, language)) if path not in own)
    assert all(said or path[-1] == "also" for path, said in own.items())


@both
@each
def test_a_text_has_the_numbers_and_quotes_the_words_of_the_english_one(file: Path, language: str) -> None:
    for path, english, said in pairs(file, language):
        assert Counter(find_numbers(said, language)) == Counter(find_numbers(english)), (path, said)
        quoted = Counter(QUOTE.findall(in_english_signs(said, language)))
        assert quoted == Counter(QUOTE.findall(english)), (path, said)


@both
@each
def test_a_text_keeps_to_the_terms(file: Path, language: str) -> None:
    for path, english, said in pairs(file, language):
        assert not breaches(KEYBOARD.sub("", english), said, language), (path, english, said)


@both
def test_the_sentences_of_a_translation_are_its_own(language: str) -> None:
    for file in FILES:
        for path, english, said in pairs(file, language):
            assert said != english or path[-1] in ("term", "phenomenon", "formula"), (path, said)


def test_the_pseudo_language_accents_prose_alone() -> None:
    first, english = (
        load_translated_toml(tour.TOUR_FILE, language)["step"][0] for language in (PSEUDO_LANGUAGE, SOURCE_LANGUAGE)
    )
    assert first["address"] == english["address"]
    assert first["text"].isascii() is False
    assert all(first[name] != english[name] for name in ("title", "text", "button"))
