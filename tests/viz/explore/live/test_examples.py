"""Every example shows in the released model what it says, and says nothing of anything else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attenscope.analysis.heads import compute_mean_alignment
from attenscope.language import LANGUAGES, use_language
from attenscope.runnable_model import Translation
from attenscope.translate import Translator
from attenscope.viz.explore.examples import (
    MIN_LINK_WEIGHT,
    Example,
    example_hint_text,
    find_example_head,
    load_examples,
)

MODEL = "everyday-en-de"
FURTHER = {
    "One word, two rows": ("habe", "saw"),
    "Number": ("zwei", "two"),
    "Compound": ("Bus", "bus"),
    "Negation": ("kein", "any"),
    "Name in pieces": ("Lind", "Lind"),
}
"""Further links that an example's sentence speaks of."""


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(MODEL)


def test_there_are_many_phenomena() -> None:
    assert len({example.phenomenon for example in load_examples()}) == len(load_examples()) >= 16
    assert len({example.sentence for example in load_examples()}) == len(load_examples())


@pytest.mark.parametrize(
    ("at", "example"), list(enumerate(load_examples())), ids=[one.phenomenon for one in load_examples()]
)
def test_an_example_is_seen_in_the_released_model(translator: Translator, at: int, example: Example) -> None:
    result = translator.translate(example.sentence)
    assert example.written in result.text
    cross = result.trace.cross
    assert cross is not None
    place = find_example_head(example, cross)
    assert place is not None
    weights = cross.weights[place.layer, place.head, place.row]
    assert weights.argmax() == place.column
    assert weights[place.column] > MIN_LINK_WEIGHT
    assert cross.weights[:, :, place.row, place.column].max() == weights[place.column]
    assert cross.rows("predicted")[place.row].strip() == example.query
    assert cross.key_tokens[place.column].strip() == example.key
    if example.jumps:
        assert compute_mean_alignment(cross)[place.row - 1].argmax() > place.column
    if example.phenomenon in FURTHER:  # A translation quotes the same: tests/model/language/test_texts.py
        query, key = FURTHER[example.phenomenon]
        assert f"“{query}”" in example.see
        assert find_example_head(replace(example, query=query, key=key), cross) is not None
    for language in LANGUAGES:
        with use_language(language):
            shown = example_hint_text(example.sentence, result.text, cross, place.layer, place.head, place.row)
            assert shown == load_examples()[at].see


def test_nothing_is_said_of_another_head_row_translation_or_link(translator: Translator) -> None:
    example = load_examples()[0]
    result: Translation = translator.translate(example.sentence)
    cross = result.trace.cross
    assert cross is not None
    place = find_example_head(example, cross)
    assert place is not None
    here = place.layer, place.head, place.row
    assert example_hint_text(example.sentence, "Etwas anderes.", cross, *here) == ""
    assert example_hint_text("Another one.", result.text, cross, *here) == ""
    assert example_hint_text(example.sentence, result.text, cross, place.layer, place.head, place.row - 1) == ""
    assert example_hint_text(example.sentence, result.text, cross, place.layer, place.head, None) == ""
    even = replace(cross, weights=cross.weights * 0 + 1 / len(cross.key_tokens))
    assert find_example_head(example, even) is None
    assert example_hint_text(example.sentence, result.text, even, *here) == ""
