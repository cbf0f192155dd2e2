"""The badge's claim: a captured run is compared with one without capture, and a capture that changes it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attenscope.checkpoint.load import list_checkpoints
from attenscope.decoding.greedy_and_sampling import (
    GREEDY_STRATEGY,
    Sampling,
    Strategy,
    compute_cached_forced_log_probs,
    teacher_forced_log_probs,
)
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.language import format_number
from attenscope.network import attention
from attenscope.runnable_model import Translation
from attenscope.translate import Translator

SENTENCE = "the old dog sees a tree today."


def scaling(calls: list[Tensor]) -> Callable[[Tensor], Tensor]:
    """A faulty capture: it keeps the weights and hands the model others."""

    def keep(output: Tensor) -> Tensor:
        calls.append(output.detach())
        return 1.5 * output

    return keep


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attenscope.capture.attention._make_output_recording_hook", scaling)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: the fused kernel where nobody looks."""
    chosen, gpu = attention.choose_attention_path, torch.device("cuda")
    for module in ("attenscope.network.attention", "attenscope.decoding.greedy_and_sampling"):
        monkeypatch.setattr(f"{module}.choose_attention_path", lambda _: chosen(gpu))


def read(translator: Translator) -> Translation:
    return translator.force(SENTENCE, "der alte Baum sieht.")


MADE: list[Callable[[Translator], Translation]] = [
    lambda translator: translator.translate(SENTENCE),
    lambda translator: translator.translate(SENTENCE, Strategy(Sampling(1.5), seed=3)),
    lambda translator: translator.translate(SENTENCE, max_tokens=3),
    read,
]


@pytest.mark.parametrize("made", MADE)
def test_a_capture_that_only_looks_leaves_every_bit(
    made: Callable[[Translator], Translation], toy_translator: Translator
) -> None:
    translation = made(toy_translator)
    check = toy_translator.check_observer(translation)
    assert (check.path, check.difference, check.by_capture) == ("explicit", 0.0, 0.0)
    assert 10 * len(translation.steps) <= check.compared <= 11 * len(translation.steps)
    assert check.sentence == "outputs unchanged by looking"
    assert check.explanation.endswith("with no hook and the explicit attention: bitwise equal.")


@pytest.mark.parametrize("made", MADE)
def test_a_capture_that_changes_the_weights_is_found(
    made: Callable[[Translator], Translation], toy_translator: Translator, scaled: None
) -> None:
    check = toy_translator.check_observer(made(toy_translator))
    assert check.difference == check.by_capture > 1e-3
    difference = format_number(check.difference, ".1e")
    assert check.sentence == f"looking changed the outputs: log-probabilities moved by {difference}"
    assert check.explanation.endswith(f"largest difference {difference}.")


def test_the_fused_kernel_is_named_where_it_is_what_differs(toy_translator: Translator, fused: None) -> None:
    check = toy_translator.check_observer(toy_translator.translate(SENTENCE))
    assert check.path == "fused"
    assert 0 < check.difference < 1e-3
    assert check.by_capture == 0
    assert check.sentence.startswith("looking replaced the fused kernel: log-probabilities moved by ")
    assert check.explanation.endswith("This is expected: the two kernels add in another order, and round otherwise.")
    assert "more than the rounding" in replace(check, difference=2e-3).explanation


def test_the_fused_kernel_does_not_hide_a_capture_that_changes_the_weights(
    toy_translator: Translator, fused: None, scaled: None
) -> None:
    check = toy_translator.check_observer(toy_translator.translate(SENTENCE))
    assert check.by_capture > 1e-3
    assert check.sentence.startswith("looking changed the outputs")
    assert "expected" not in check.explanation


@pytest.mark.parametrize("changes", ["cross.1.1:off", "encoder.2.1:uniform", "mask.cross.*.*.1:block"])
def test_interventions_take_part_and_capture_alone_is_judged(toy_translator: Translator, changes: str) -> None:
    with apply_changes(toy_translator.model, parse_changes(changes)):
        translation = toy_translator.translate(SENTENCE)
        inside = toy_translator.check_observer(translation)
    assert inside.difference == 0
    assert toy_translator.check_observer(translation).difference > 0


def test_a_translation_without_a_trace_cannot_be_checked(toy_translator: Translator) -> None:
    with pytest.raises(ValueError, match="has no trace"):
        toy_translator.check_observer(toy_translator.translate(SENTENCE, capture=False))


def test_replayed_and_forced_are_one_but_for_rounding(toy_translator: Translator) -> None:
    translation = toy_translator.translate(SENTENCE)
    given = toy_translator.model, torch.tensor([translation.source_ids]), translation.target_ids
    torch.testing.assert_close(
        compute_cached_forced_log_probs(*given), teacher_forced_log_probs(*given), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("name", list_checkpoints())
def test_looking_leaves_the_released_models_unchanged(name: str) -> None:
    translator = Translator.load(name, "cpu")
    sentence = "他会说三种语言。" if "zh" in name else "The bank by the river was closed."
    assert translator.check_observer(translator.translate(sentence, GREEDY_STRATEGY)).difference == 0
