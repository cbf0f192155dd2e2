"""Which sentence comes with which model: the rule of viz/ui/current_sentence.py, gone through without a page."""

from __future__ import annotations

from typing import Any

import pytest

from attenscope.viz.tour import load_tour_steps
from attenscope.viz.ui import current_sentence
from attenscope.viz.ui.addresses.shared import SENTENCE

ENGLISH, CHINESE = {"source_language": "en"}, {"source_language": "zh"}
CAPTIONS = ENGLISH | {"examples": "A woman walks. | A dog runs."}
BICYCLE, LIBRARY = (current_sentence.EXAMPLE_SENTENCES[language][0] for language in ("en", "zh"))
OWN, OWN_CHINESE = "My neighbour has a small blue car.", "我喜欢猫。"


class Visitor:
    """A session with a sentence box, which an address may fill."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, named: str | None = None) -> None:
        self.state: dict[str, Any] = {} if named is None else {SENTENCE.key: named}
        monkeypatch.setattr(current_sentence.st, "session_state", self.state)
        monkeypatch.setattr(current_sentence, "is_in_address", lambda _: False)
        put = lambda _, value: self.state.__setitem__(SENTENCE.key, value)  # noqa: E731
        monkeypatch.setattr(type(SENTENCE), "put", put)
        monkeypatch.setattr(type(SENTENCE), "get", lambda _: self.state.get(SENTENCE.key, ""))

    def reads(self, model: str, card: dict[str, Any]) -> str:
        current_sentence.put_model_sentence(model, card)
        return self.state[SENTENCE.key]

    def types(self, text: str) -> None:
        self.state[SENTENCE.key] = text


@pytest.fixture
def visitor(monkeypatch: pytest.MonkeyPatch) -> Visitor:
    return Visitor(monkeypatch)


def test_a_model_begins_with_its_welcome(visitor: Visitor) -> None:
    assert visitor.reads("en-de", ENGLISH) == BICYCLE


def test_a_sentence_of_the_address_stays_whatever_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Visitor(monkeypatch, OWN).reads("zh-en", CHINESE) == OWN


def test_a_welcome_belongs_to_its_model(visitor: Visitor) -> None:
    for model, card, welcome in (
        ("en-de", ENGLISH, BICYCLE),
        ("captions", CAPTIONS, "A woman walks."),
        ("zh-en", CHINESE, LIBRARY),
        ("en-de", ENGLISH, BICYCLE),
    ):
        assert visitor.reads(model, card) == welcome


def test_a_sentence_of_the_visitor_stays_with_its_language_and_comes_back(visitor: Visitor) -> None:
    visitor.reads("en-de", ENGLISH)
    visitor.types(OWN)
    assert visitor.reads("en-de", ENGLISH) == OWN
    assert visitor.reads("captions", CAPTIONS) == OWN
    assert visitor.reads("zh-en", CHINESE) == LIBRARY
    visitor.types(OWN_CHINESE)
    assert visitor.reads("zh-en", CHINESE) == OWN_CHINESE
    assert visitor.reads("en-de", ENGLISH) == OWN
    assert visitor.reads("zh-en", CHINESE) == OWN_CHINESE


def test_a_sentence_already_in_the_language_of_the_other_model_stays(visitor: Visitor) -> None:
    visitor.reads("zh-en", CHINESE)
    visitor.types("The cat is on the table.")
    visitor.reads("zh-en", CHINESE)
    assert visitor.reads("en-de", ENGLISH) == "The cat is on the table."


def test_a_sentence_that_comes_with_the_model_stays(visitor: Visitor) -> None:
    visitor.reads("en-de", ENGLISH)
    visitor.types(OWN)  # At once with the model, as by a link.
    assert visitor.reads("zh-en", CHINESE) == OWN


def test_an_emptied_box_stays_empty_until_another_model_comes(visitor: Visitor) -> None:
    visitor.reads("en-de", ENGLISH)
    visitor.types("")
    assert visitor.reads("en-de", ENGLISH) == ""
    assert visitor.reads("captions", CAPTIONS) == "A woman walks."


def test_the_tour_begins_with_the_welcome() -> None:
    assert load_tour_steps()[0].address["sentence"] == BICYCLE
