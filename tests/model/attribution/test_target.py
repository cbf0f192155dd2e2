"""The word that is explained: its value, and a clear sentence for each word that cannot be."""

from __future__ import annotations

import pytest
import torch

from attenscope.attribution.methods import attribute_target, compute_target_value
from attenscope.attribution.target import AttributionError, Target, make_piece_target, make_word_target
from attenscope.decoding.greedy_and_sampling import teacher_forced_log_probs
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import HeadChange
from attenscope.runnable_model import Translation
from attenscope.text.words import group_tokens_into_words
from attenscope.translate import Translator


def test_the_value_is_the_log_probability_of_the_word(toy_translator: Translator, toy_translation: Translation) -> None:
    for number, group in enumerate(group_tokens_into_words(toy_translation.target_tokens), start=1):
        target = make_word_target(toy_translator, toy_translation, number)
        expected = sum(toy_translation.steps[at].log_prob for at in group)
        assert compute_target_value(toy_translator.model, target) == pytest.approx(expected, abs=1e-4)


def test_against_another_piece_it_is_a_difference_of_logits(
    toy_translator: Translator, toy_translation: Translation
) -> None:
    other = toy_translation.steps[4].candidates[1].token_id
    target = make_piece_target(toy_translator, toy_translation, 4, against=other)
    with torch.inference_mode():
        row = teacher_forced_log_probs(
            toy_translator.model, torch.tensor([toy_translation.source_ids]), toy_translation.target_ids
        )[4]
    assert compute_target_value(toy_translator.model, target) == pytest.approx(
        float(row[target.token_ids[0]] - row[other]), abs=1e-4
    )
    assert target.against == toy_translator.tokenizer.token(other).strip()


def test_what_is_not_there_is_named(toy_translator: Translator, toy_translation: Translation) -> None:
    count = len(group_tokens_into_words(toy_translation.target_tokens))
    with pytest.raises(AttributionError, match=f"There is no word 99: this translation has {count} words"):
        make_word_target(toy_translator, toy_translation, 99)
    with pytest.raises(AttributionError, match="There is no word 0"):
        make_word_target(toy_translator, toy_translation, 0)
    with pytest.raises(AttributionError, match="There is no piece"):
        make_piece_target(toy_translator, toy_translation, 4, count=50)


def test_a_rival_is_one_piece_of_the_vocabulary_and_another_one(
    toy_translator: Translator, toy_translation: Translation
) -> None:
    with pytest.raises(AttributionError, match="has several pieces"):
        make_piece_target(toy_translator, toy_translation, 4, against="Hund Katze")
    with pytest.raises(AttributionError, match="does not hold 'Ж'"):
        make_piece_target(toy_translator, toy_translation, 4, against="Ж")
    with pytest.raises(AttributionError, match="are the same piece"):
        make_piece_target(toy_translator, toy_translation, 4, against=toy_translation.target_ids[4])
    with pytest.raises(AttributionError, match="no piece with the id 100000"):
        make_piece_target(toy_translator, toy_translation, 4, against=100_000)


def test_a_rival_inside_a_word_has_no_space_before_it(toy_translator: Translator) -> None:
    given = toy_translator.force("a cat.", "Hundxyz.", capture=False)
    inside = next(at for at, token in enumerate(given.target_tokens) if not token.startswith(" "))
    target = make_piece_target(toy_translator, given, inside, against="e")
    assert toy_translator.tokenizer.token(target.against_id or 0) == "e"


def test_short_sentences_say_what_they_lack(toy_translator: Translator, toy_translation: Translation) -> None:
    first = make_word_target(toy_translator, toy_translation, 1)
    assert any("Nothing was written before this word" in note for note in first.notes)
    single = make_word_target(toy_translator, toy_translator.translate("dog", capture=False, max_tokens=3), 1)
    assert any("has one word" in note for note in single.notes)
    assert attribute_target(toy_translator, single).notes == single.notes


def test_a_probability_of_zero_is_said(toy_translator: Translator, toy_target: Target) -> None:
    model = toy_translator.model

    class Certain(Target):
        def value(self, logits: torch.Tensor) -> torch.Tensor:
            return torch.full((len(logits),), -1e4, dtype=torch.float64)

    impossible = Certain(**{name: getattr(toy_target, name) for name in Target.__dataclass_fields__})
    with (
        pytest.raises(AttributionError, match="is zero in this model"),
        apply_changes(model, [HeadChange("cross", 1, 0)]),
    ):
        attribute_target(toy_translator, impossible)
