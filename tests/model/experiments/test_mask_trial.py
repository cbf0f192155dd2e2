"""Masks tried on a model that translates: what changes, what does not, and for whom."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from attenscope.experiments.mask_trial import (
    MASKS_BY_KIND,
    MaskTrial,
    perturb_each_input_token,
    run_mask_trial,
    run_trial_tests,
)
from attenscope.mask_tests.checks import run_mask_tests
from attenscope.mask_tests.outcomes import CHECKS
from attenscope.mask_tests.subjects import PaddedIds, make_attention_kind_subject
from attenscope.masks.rule import RuleError
from attenscope.network.config import PAD_ID, PRESETS, make_preset_config
from attenscope.network.transformer import Transformer
from attenscope.trace import Kind
from attenscope.translate import Translator

SENTENCE = "the old dog sees a red house today."
EVERY = [(kind, name) for kind, names in MASKS_BY_KIND.items() for name in names]


def test_the_models_own_mask_is_no_change(toy_translator: Translator) -> None:
    found = run_mask_trial(toy_translator, SENTENCE, None, pads=3)
    assert found.trial is found.own
    plain = toy_translator.translate(SENTENCE)
    assert found.own.ids == plain.target_ids
    assert found.own.log_prob == pytest.approx(plain.log_prob, abs=1e-4)
    assert found.own.maps["cross"].mask[:, -3:].any() == np.False_


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_mask_changes_the_attention_it_is_of(toy_translator: Translator, kind: Kind, name: str) -> None:
    trial = MaskTrial(kind, name, width=2, key=1, rule="window 2 and padding")  # type: ignore[arg-type]
    found = run_mask_trial(toy_translator, SENTENCE, trial, pads=2)
    before, after = found.own.maps[kind], found.trial.maps[kind]
    assert np.abs(before.weights - after.weights).max() > 1e-3
    assert np.isfinite(after.weights).all()
    sums = after.weights.sum(-1)
    assert np.logical_or(np.abs(sums - 1) < 1e-4, sums == 0).all()


def test_a_hidden_word_gets_no_weight_and_no_output_depends_on_it_through_cross(toy_translator: Translator) -> None:
    found = run_mask_trial(toy_translator, SENTENCE, MaskTrial("cross", "one word hidden", key=2))
    assert (found.trial.maps["cross"].weights[..., 2] == 0).all()


def test_a_rule_that_cannot_be_read_is_said(toy_translator: Translator) -> None:
    with pytest.raises(RuleError):
        run_mask_trial(toy_translator, SENTENCE, MaskTrial("cross", "rule", rule="sideways"))


def test_nothing_moves_that_may_not_and_all_moves_that_may(toy_translator: Translator) -> None:
    found = run_mask_trial(toy_translator, SENTENCE, None, pads=2)
    own = perturb_each_input_token(toy_translator, found, None)
    assert ((own.change > 0) == own.allowed).all()
    leaky = perturb_each_input_token(toy_translator, found, MaskTrial("decoder", "no causal mask"))
    sources = len(found.source_tokens)
    assert (leaky.change[0, sources + 1 :] > 0).all()
    assert (leaky.change[:, sources - 2 : sources] == 0).all()
    pads = perturb_each_input_token(toy_translator, found, MaskTrial("cross", "no padding mask"))
    assert (pads.change[:, sources - 2 : sources] > 0).any()


def test_the_checks_name_the_mask_tried(toy_translator: Translator) -> None:
    found = run_mask_trial(toy_translator, SENTENCE, None)
    for kind in MASKS_BY_KIND:
        assert all(one.status != "fault" for one in run_trial_tests(toy_translator, found, kind, None))
    future = run_trial_tests(toy_translator, found, "decoder", MaskTrial("decoder", "no causal mask"))
    assert {one.code for one in future if one.status == "fault"} >= {"future-token", "gradient-reach", "cache"}
    padding = run_trial_tests(toy_translator, found, "encoder", MaskTrial("encoder", "no padding mask"))
    assert {one.code for one in padding if one.status == "fault"} >= {
        "padding-content",
        "padding-amount",
        "gradient-reach",
    }


def test_others_are_not_disturbed(toy_translator: Translator) -> None:
    """One visitor breaks the masks while another translates with the same model."""
    expected = toy_translator.translate(SENTENCE)
    trial = MaskTrial("cross", "inverted")
    broken = run_mask_trial(toy_translator, SENTENCE, trial, pads=1).trial.ids
    wrong: list[str] = []
    stop = threading.Event()

    def breaking() -> None:
        while not stop.is_set():
            if run_mask_trial(toy_translator, SENTENCE, trial, pads=1).trial.ids != broken:
                wrong.append("broken")

    other = threading.Thread(target=breaking)
    other.start()
    for _ in range(8):
        again = toy_translator.translate(SENTENCE)
        if again.text != expected.text or not np.array_equal(again.trace.cross.weights, expected.trace.cross.weights):  # type: ignore[union-attr]
            wrong.append("right")
    stop.set()
    other.join()
    assert wrong == []
    assert not any(module._forward_hooks for module in toy_translator.model.modules())


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_passes_all_that_applies(name: str) -> None:
    torch.manual_seed(0)
    sizes = {"d_model": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 64, "max_length": 64}
    model = Transformer(make_preset_config(name, vocab_size=60, target_vocab_size=60, **sizes)).eval()
    source, target = torch.randint(5, 50, (2, 7)), torch.randint(5, 50, (2, 6))
    source[1, 5:], target[1, 4:] = PAD_ID, PAD_ID
    applies = {"encoder": "B2 B3 B4 B5 B6 B8", "decoder": "B1 B2 B3 B4 B5 B6 B7", "cross": "B2 B4 B6"}
    padded = PaddedIds(source, source != PAD_ID), PaddedIds(target, target != PAD_ID)
    for kind in MASKS_BY_KIND:
        one = make_attention_kind_subject(model, kind, *padded)
        found = {outcome.check.number: outcome.status for outcome in run_mask_tests(one)}
        numbers = applies[kind].split()
        expected = {check.number: "pass" if check.number in numbers else "not applicable" for check in CHECKS}
        assert found == expected, kind
