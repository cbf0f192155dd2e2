"""Translating again with the model changed: the words' difference and the old translation's log-probability."""

from __future__ import annotations

import copy

import pytest
import torch

from attenscope.checkpoint.load import Checkpoint
from attenscope.experiments.ablation import (
    compare_with_changes,
    is_teacher_forced,
    teacher_force_with_changes,
    translate_with_changes,
)
from attenscope.interventions.changes import HeadChange, MaskChange, ModelChange, parse_changes
from attenscope.text.words import WordChange
from attenscope.trace import KINDS
from attenscope.translate import Translator

SENTENCE = "the old dog sees a red cat here."
NO_CROSS: tuple[ModelChange, ...] = tuple(HeadChange("cross", layer, head) for layer in (0, 1) for head in (0, 1))


def test_no_change_is_no_difference_at_all(toy_translator: Translator) -> None:
    found = compare_with_changes(toy_translator, toy_translator.translate(SENTENCE), ())
    assert found.after.target_ids == found.before.target_ids
    assert found.log_prob_change == 0
    assert found.words == (WordChange("same", found.before.text),)
    assert found.sentence.startswith("The translation stays the same. Its log-probability is −")
    assert found.sentence.endswith("(+0.00).")


def test_without_cross_attention_the_translation_knows_nothing_of_the_source(toy_translator: Translator) -> None:
    before = toy_translator.translate(SENTENCE)
    found = compare_with_changes(toy_translator, before, NO_CROSS)
    other = translate_with_changes(toy_translator, "a cat finds the tree.", NO_CROSS)
    assert found.after.text == other.text != before.text
    assert found.log_prob_change < -5
    before_, after = sum(found.log_probs_before), sum(found.log_probs_after)
    assert f"is {before_:.2f} without the changes and {after:.2f} with them".replace("-", "−") in found.sentence
    assert "The translation changes." in found.sentence
    assert "-" not in found.sentence.replace("log-probability", "")
    assert any(run.change == "removed" for run in found.words)


def test_the_log_probability_is_that_of_a_model_with_its_projection_zeroed(toy_translator: Translator) -> None:
    twin = copy.deepcopy(toy_translator.model)
    with torch.no_grad():
        twin.decoder.layers[0].get_parameter("cross_attention.out_proj.weight")[:, 32:] = 0
    checkpoint = Checkpoint("twin", twin, toy_translator.tokenizer, toy_translator.card)
    before = toy_translator.translate(SENTENCE)
    found = compare_with_changes(toy_translator, before, parse_changes("cross.1.2:off"))
    expected = Translator(checkpoint).force(SENTENCE, before.target_ids)
    assert found.log_probs_after == tuple(step.log_prob for step in expected.steps)
    assert found.after.target_ids == Translator(checkpoint).translate(SENTENCE).target_ids
    assert sum(found.log_probs_before) == pytest.approx(before.log_prob, abs=1e-4)


def test_the_trace_shows_the_changed_attention_and_says_so(toy_translator: Translator) -> None:
    changes = (HeadChange("encoder", 0, 1, "uniform"), MaskChange("cross", key=1))
    found = translate_with_changes(toy_translator, SENTENCE, changes)
    trace = found.trace
    assert trace.settings["changes"] == "encoder.1.2:uniform,mask.cross.*.*.2:block"
    assert trace.encoder is not None
    assert trace.cross is not None
    size = len(found.source_tokens)
    assert trace.encoder.weights[0, 1] == pytest.approx(1 / size)
    assert not trace.cross.weights[..., 1].any()
    assert not trace.cross.mask[:, 1].any()
    assert "changes" not in toy_translator.translate(SENTENCE).trace.settings


def test_a_given_translation_through_the_changed_model(toy_translator: Translator) -> None:
    plain = toy_translator.force(SENTENCE, "der Hund.")
    changed = teacher_force_with_changes(toy_translator, SENTENCE, "der Hund.", NO_CROSS)
    assert changed.target_ids == plain.target_ids
    assert changed.log_prob != plain.log_prob
    assert "cross.2.2:off" in changed.trace.settings["changes"]


def test_a_given_translation_is_read_again_not_made_again(toy_translator: Translator) -> None:
    given = toy_translator.force(SENTENCE, "der Hund.")
    assert is_teacher_forced(given)
    assert not is_teacher_forced(toy_translator.translate(SENTENCE))
    found = compare_with_changes(toy_translator, given, NO_CROSS)
    assert found.after.target_ids == given.target_ids
    assert found.log_probs_before == tuple(step.log_prob for step in given.steps)
    assert found.sentence.startswith("The log-probability of the given translation is −")
    assert "changes" in found.after.trace.settings


def test_afterwards_the_model_is_as_it_was(toy_translator: Translator) -> None:
    before = toy_translator.translate(SENTENCE)
    every = tuple(HeadChange(kind, layer, head) for kind in KINDS for layer in (0, 1) for head in (0, 1))
    compare_with_changes(toy_translator, before, every)
    again = toy_translator.translate(SENTENCE)
    assert [step.log_prob for step in again.steps] == [step.log_prob for step in before.steps]
