"""Messages in a language: which one speaks, how values and numbers are put in, and what the catalogues must hold."""

from __future__ import annotations

import gettext
import io
import string
import threading
from collections.abc import Iterator

import pytest
from babel.messages.catalog import Catalog, Message

from attenscope import language
from attenscope.language import (
    COMPLETE_LANGUAGES,
    LANGUAGES,
    PSEUDO_LANGUAGE,
    SOURCE_LANGUAGE,
    bind_language,
    find_closest_language,
    format_number,
    join_items,
    join_sentences,
    number_separators,
    say,
    say_many,
    to_say,
    use_language,
)
from tests import messages


@pytest.fixture
def german(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A German catalogue of two messages, and German spoken."""
    catalog = Catalog(locale="de")
    catalog.add("{model} took {steps:,} steps.", "{steps:,} Schritte brauchte {model}.")
    catalog.add(("{count} head", "{count} heads"), ("{count} Kopf", "{count} Köpfe"))
    made = gettext.GNUTranslations(io.BytesIO(messages.compiled(catalog)))
    monkeypatch.setattr("attenscope.language.load_catalogue", lambda _: made)
    with use_language("de"):
        yield


def test_a_message_and_its_values_in_english() -> None:
    assert say("{model} took {steps:,} steps.", model="{x}", steps=12000) == "{x} took 12,000 steps."
    assert say("braces {stay} as they are") == to_say("braces {stay} as they are")
    assert [say_many("{count} head", "{count} heads", count) for count in (1, 2)] == ["1 head", "2 heads"]
    assert join_sentences("One.", "", "Two.") == "One. Two."
    assert join_items(["a", "b"]) == "a, b"
    assert format_number(1234.5, ",.1f") == "1,234.5"
    assert format_number(-1.5) == "−1.5"
    assert say("from {low:.1f} along axis {axis}", low=-0.5, axis=-1) == "from −0.5 along axis -1"
    assert format_number(0.00001, ".0e") == "1e−05"


@pytest.mark.usefixtures("german")
def test_the_order_of_words_and_the_signs_of_numbers_are_the_languages() -> None:
    assert say("{model} took {steps:,} steps.", model="a.b", steps=12000) == "12.000 Schritte brauchte a.b."
    assert [say_many("{count} head", "{count} heads", count) for count in (1, 2)] == ["1 Kopf", "2 Köpfe"]
    assert format_number(0.125, ".1%") == "12,5\N{NARROW NO-BREAK SPACE}%"
    assert number_separators() == ",."
    assert say("not in the catalogue") == "not in the catalogue"


def test_chinese_sentences_stand_without_a_space() -> None:
    with use_language("zh"):
        assert join_sentences("一。", "二。") == "一。二。"
        assert join_items("ab") == "a、b"


def test_a_block_speaks_before_the_visitor_and_no_other_thread_hears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "_of_visitor", lambda: "zh")
    heard: list[str] = []
    with use_language("de"), use_language(PSEUDO_LANGUAGE):
        assert language.current_language() == PSEUDO_LANGUAGE
        thread = threading.Thread(target=lambda: heard.append(language.current_language()))
        thread.start()
        thread.join()
    assert heard == [language.current_language()] == ["zh"]
    with pytest.raises(ValueError, match="no catalogue of 'fr', only of en, de, zh"), use_language("fr"):
        pass


def test_work_that_runs_later_speaks_the_language_in_which_it_was_asked_for() -> None:
    with use_language("zh"):
        later = bind_language(lambda name: f"{name}: {language.current_language()}")
    heard: list[str] = []
    thread = threading.Thread(target=lambda: heard.append(later("here")))
    thread.start()
    thread.join()
    assert heard == ["here: zh"]
    assert language.current_language() == SOURCE_LANGUAGE


def test_the_language_closest_to_a_browsers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "COMPLETE_LANGUAGES", tuple(LANGUAGES))
    browsers = {"de-AT": "de", "zh-Hans-CN": "zh", "zh_TW": "zh", "en-GB": "en", "fr": "en", "": "en"}
    assert {name: find_closest_language(name) for name in browsers} == browsers


def test_the_pseudo_language_is_longer_and_leaves_what_is_no_word() -> None:
    with use_language(PSEUDO_LANGUAGE):
        said = say("Train **it** with `python -m model`, {name}.", name="Anna")
        longer = say("What the reader must know of the axes")
    assert said == "Ťŕááííññ **ííť** ŵííťĥ `python -m model`, Anna."
    assert len(longer) > 1.3 * len("What the reader must know of the axes")


def test_messages_are_found_wherever_python_says_them() -> None:
    code = """
name = f"<b>{say('In an {f}-string', f=1)}</b>"
TABLE = {to_say("a constant " "of two parts"): 1}
speech.say_many("{count} head", "{count} heads", 3)
say(TABLE["read"])
"""
    found = ["In an {f}-string", "a constant of two parts", ("{count} head", "{count} heads")]
    assert [message for _, message in sorted(messages.in_python(code))] == found


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_the_catalogues_are_of_the_sources_as_they_are() -> None:
    """`python -m tests.messages` brings them up to date; a language that is offered has every message."""
    said = {one.id for one in messages.messages()}
    for code in messages.TRANSLATED:
        catalog = messages.read(code)
        assert {one.id for one in catalog} == said, code
        translated = [one for one in catalog if one.id and messages.is_translated(one)]
        for one in translated:
            assert not one.fuzzy, one.id
            assert all(fields(form) == wanted(one) for form in forms(one)), one.id
        assert len(translated) == len(catalog) or code not in COMPLETE_LANGUAGES
        assert messages.path(code).with_suffix(".mo").read_bytes() == messages.compiled(catalog)


def forms(message: Message) -> list[str]:
    return [str(one) for one in (message.string if isinstance(message.string, list | tuple) else [message.string])]


def wanted(message: Message) -> set[str]:
    """The fields that a translation has: those of the English plural, where there is one."""
    return fields(message.id[1] if isinstance(message.id, tuple) else str(message.id))


def test_english_is_always_offered() -> None:
    assert COMPLETE_LANGUAGES[0] == SOURCE_LANGUAGE
    assert set(COMPLETE_LANGUAGES) <= set(LANGUAGES)
