"""Guessing a language only where it is plain."""

from __future__ import annotations

import pytest

from attenscope.text.words import LANGUAGE_NAMES, SCRIPT_LANGUAGES, detect_foreign_language, guess_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The old man who lives next door reads a book in the garden.", "en"),
        ("Ich habe das Buch nicht gelesen und du auch nicht.", "de"),
        ("Je ne sais pas où est le chat de ma mère.", "fr"),
        ("No sé dónde está el libro de mi madre.", "es"),
        ("我昨天在图书馆读了一本书。", "zh"),
        ("これは私の本です。", "ja"),
        ("أين المكتبة يا صديقي؟", "ar"),
        ("Где находится библиотека?", "ru"),
    ],
)
def test_plain_cases(text: str, language: str) -> None:
    assert guess_language(text) == language


@pytest.mark.parametrize("text", ["", "   ", "42", "😀", "Paris", "Hello", "taxi hotel radio", "!?"])
def test_doubtful_ones_stay_undecided(text: str) -> None:
    assert guess_language(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Hello!",
        "Colorless green ideas sleep furiously.",
        "The Chinese word 你好 means hello.",
        "I met him in Den Haag.",
        "He said “das ist ein Buch” to me.",
    ],
)
def test_english_gets_no_warning(text: str) -> None:
    assert detect_foreign_language(text, "en") is None


def test_another_language_is_named() -> None:
    assert detect_foreign_language("Ich habe das Buch nicht gelesen und du auch nicht.", "en") == "de"
    assert detect_foreign_language("Ich habe das Buch nicht gelesen und du auch nicht.", "de") is None
    assert detect_foreign_language("The book is on the table.", "zh") == "en"


def test_every_language_has_a_name() -> None:
    assert set(SCRIPT_LANGUAGES.values()) <= set(LANGUAGE_NAMES)
