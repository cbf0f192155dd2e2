"""One word, one translation: what the catalogues say of the terms that CONTRIBUTING.md lists."""

from __future__ import annotations

import re

import pytest

from tests import messages

TABLE = messages.ROOT / "CONTRIBUTING.md"
ROW = re.compile(r"^\| (?P<en>[^|]+) \| (?P<de>[^|]+) \| (?P<zh>[^|]+) \|$", re.MULTILINE)
FIELD = re.compile(r"\{[^}]*\}")
OTHERWISE: dict[str, tuple[str, ...]] = {
    "key": (  # of the keyboard
        "There are more weights than points in the picture: neighbours are averaged in colour. The mouse and the "
        "arrow keys read each by itself.",
    ),
}
"""The messages in which a term's English word means something else, by the term."""


def terms() -> list[dict[str, list[str]]]:
    """Return the rows of the table: the forms of a term by language."""
    table = TABLE.read_text(encoding="utf-8").partition("## Terms")[2].partition("\n## ")[0]
    rows = [
        {language: cell.lower().split(", ") for language, cell in row.groupdict().items()}
        for row in ROW.finditer(table)
    ]
    return rows[1:]


def breaches(english: str, translation: str, language: str) -> list[str]:
    """Return the terms of a message for which its translation has none of the forms; names of fields are no words."""
    words = FIELD.sub("", english.lower())
    return [
        row["en"][0]
        for row in terms()
        if re.search(rf"(?<![\w-])(?:{'|'.join(map(re.escape, row['en']))})(?![\w-])", words)
        and english not in OTHERWISE.get(row["en"][0], ())
        and not any(form in translation.lower() for form in row[language])
    ]


def test_a_translation_that_breaks_the_table_is_found() -> None:
    assert len(terms()) > 40
    assert breaches("The heads of a layer", "Die Heads einer Schicht", "de") == []
    assert breaches("The heads of a layer", "Die Köpfe einer Ebene", "de") == ["head", "layer"]
    assert breaches("Overhead", "Aufwand", "de") == []


@pytest.mark.parametrize("language", messages.TRANSLATED)
def test_every_translation_keeps_to_the_table(language: str) -> None:
    for message in messages.read(language):
        english = [message.id] if isinstance(message.id, str) else list(message.id)
        said = [message.string] if isinstance(message.string, str) else list(message.string or ())
        for translation in filter(None, said):
            assert not breaches(english[-1], translation, language), (english, translation)
