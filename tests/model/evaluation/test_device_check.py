"""A model that is the same on both devices has no fault; one that is not is told by how it differs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from attenscope.__main__ import main
from attenscope.evaluation.device_check import LOG_PROB_TOLERANCE, compare_device_with_cpu
from attenscope.network.config import BOS_ID
from attenscope.network.transformer import Transformer
from attenscope.translate import Translator
from tests import toy
from tests.elsewhere import elsewhere

TEXTS = ["the small dog sees a cat today.", "a tree.", "the old house and the child find a red cat."]


def other(translator: Translator, change: Callable[[Transformer], object]) -> Translator:
    model = copy.deepcopy(translator.model)
    with torch.no_grad():
        change(model)
    return Translator(toy.checkpoint(model, translator.name))


def scale_queries(model: Transformer) -> None:
    model.get_parameter("decoder.layers.0.cross_attention.q_proj.weight").mul_(1.01)


def favour_one_token(model: Transformer) -> None:
    model.generator.bias = torch.nn.Parameter(torch.zeros(model.config.target_vocab_size))
    model.generator.bias.data[toy.tokenizer().encode("Hund").ids[0]] = 50.0


def lose_the_last_cross_attention(model: Transformer) -> None:
    model.get_parameter("decoder.layers.1.cross_attention.q_proj.weight").fill_(torch.nan)


def test_the_same_model_has_no_fault(toy_translator: Translator) -> None:
    found = compare_device_with_cpu(toy_translator, toy_translator, TEXTS)
    assert (found.sentences, found.same, found.lead, found.log_probs) == (3, 3, 0.0, 0.0)
    assert found.weights < 1e-5
    assert found.faults == ()
    assert found.memory == sum(one.numel() * one.element_size() for one in toy_translator.model.parameters())


def test_a_model_elsewhere_has_none_either(toy_translator: Translator) -> None:
    model = copy.deepcopy(toy_translator.model)
    with elsewhere(model) as device:
        found = compare_device_with_cpu(
            toy_translator, Translator(toy.checkpoint(model, toy_translator.name)), TEXTS[:1]
        )
    assert found.device == str(device)
    assert (found.same, found.faults) == (1, ())
    assert found.observer.path == "fused"  # as on a GPU


def test_other_weights_are_found(toy_translator: Translator) -> None:
    found = compare_device_with_cpu(toy_translator, other(toy_translator, scale_queries), TEXTS)
    assert found.log_probs > LOG_PROB_TOLERANCE
    assert "attention differs" in found.faults
    assert "log-probabilities differ" in found.faults


def test_nan_is_found(toy_translator: Translator) -> None:
    found = compare_device_with_cpu(toy_translator, other(toy_translator, lose_the_last_cross_attention), TEXTS[:1])
    assert {"attention differs", "log-probabilities differ"} <= set(found.faults)


def test_other_texts_are_found_and_by_how_much(toy_translator: Translator) -> None:
    wrong = other(toy_translator, favour_one_token)
    found = compare_device_with_cpu(toy_translator, wrong, TEXTS)
    leads = []
    for text in TEXTS:
        expected, written = toy_translator.translate(text), wrong.translate(text)
        pairs = zip(expected.steps, written.steps, strict=False)
        at, one = next((at, one.token_id) for at, (step, one) in enumerate(pairs) if step.token_id != one.token_id)
        scores = _log_probs(toy_translator, text, expected.target_ids)[at]
        leads.append(scores[expected.target_ids[at]] - scores[one])
    assert found.same == 0
    assert found.lead == pytest.approx(max(leads), abs=1e-4)
    assert "another token was clearly more probable" in found.faults


def _log_probs(translator: Translator, text: str, ids: tuple[int, ...]) -> list[list[float]]:
    inputs = torch.tensor([[BOS_ID, *ids[:-1]]])
    with torch.no_grad():
        logits = translator.model(torch.tensor([translator.encode(text).ids]), inputs)[0]
    return logits.log_softmax(-1).tolist()


def test_the_command_says_so_and_ends_with_1(
    toy_checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["check", "--device", "cpu", "--checkpoint", str(toy_checkpoint)]) == 0
    assert "1 of 1 models are on cpu what they are on the CPU." in capsys.readouterr().out
    load, loaded = Translator.load, []

    def second_is_another(name: str, device: object) -> Translator:
        loaded.append(load(name, "cpu"))
        return loaded[-1] if len(loaded) == 1 else other(loaded[-1], scale_queries)

    monkeypatch.setattr(Translator, "load", second_is_another)
    assert main(["check", "--device", "cpu", "--checkpoint", str(toy_checkpoint)]) == 1
    out = capsys.readouterr().out
    assert "attention differs" in out
    assert "0 of 1 models" in out


def test_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--device", "tpu"]) == 2
    assert "There is no device 'tpu' here" in capsys.readouterr().err
