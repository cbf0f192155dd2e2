"""Every head switched off as a row of a batch, against one head at a time through the interventions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attenscope.attribution.methods import compute_target_value
from attenscope.attribution.target import make_piece_target
from attenscope.decoding.greedy_and_sampling import teacher_forced_log_probs
from attenscope.experiments import ablation
from attenscope.experiments.ablation import (
    HeadEffects,
    ablate_heads_for_word,
    head_effects,
    measure_head_effects_in_batch,
    measure_head_effects_on_word,
    plan_ablation_batches,
)
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import HeadChange, ModelChange, parse_changes
from attenscope.network.config import PRESETS, make_preset_config
from attenscope.network.transformer import Transformer
from attenscope.trace import KINDS, Head
from attenscope.translate import Translator

SENTENCE = "the old dog sees a red cat here."


def change(
    model: Transformer, source: Tensor, target: Sequence[int], head: Head, changes: Sequence[ModelChange] = ()
) -> np.ndarray:
    """(T,) by switching off one head in a run of its own."""

    def log_probs(*more: ModelChange) -> Tensor:
        with apply_changes(model, (*changes, *more)):
            return teacher_forced_log_probs(model, source, target)[range(len(target)), list(target)].double()

    return (log_probs(HeadChange(*head)) - log_probs()).numpy()


def one_at_a_time(model: Transformer, source: Tensor, target: Sequence[int]) -> dict[Head, np.ndarray]:
    config = model.config
    layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers, "cross": config.decoder_layers}
    heads = [(kind, layer, head) for kind in KINDS for layer in range(layers[kind]) for head in range(config.heads)]
    return {head: change(model, source, target, head) for head in heads}


def check(found: HeadEffects, expected: dict[Head, np.ndarray]) -> None:
    assert sum(one.shape[0] * one.shape[1] for one in found.changes.values()) == len(expected)
    for (kind, layer, head), row in expected.items():
        np.testing.assert_allclose(found.changes[kind][layer, head], row, atol=2e-5)


@pytest.mark.parametrize("tokens", [1, 60, 10_000])
def test_a_batch_of_heads_is_each_head_by_itself(
    toy_translator: Translator, monkeypatch: pytest.MonkeyPatch, tokens: int
) -> None:
    monkeypatch.setattr(ablation, "TOKENS_A_PASS", tokens)
    translation = toy_translator.translate(SENTENCE)
    source = torch.tensor([translation.source_ids])
    found = head_effects(toy_translator.model, translation.source_ids, translation.target_ids)
    check(found, one_at_a_time(toy_translator.model, source, translation.target_ids))
    assert min(one.min() for one in found.changes.values()) < -0.5  # the toy model does use its heads


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset(name: str) -> None:
    torch.manual_seed(3)
    sizes = {
        "d_model": 24,
        "heads": 3,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "feed_forward": 32,
    }
    model = Transformer(make_preset_config(name, vocab_size=30, target_vocab_size=30, **sizes)).eval()
    source, target = torch.randint(4, 30, (1, 7)), tuple(torch.randint(4, 30, (5,)).tolist())
    check(head_effects(model, source[0].tolist(), target), one_at_a_time(model, source, target))


def test_changes_that_are_open_take_part(toy_translator: Translator) -> None:
    model, translation = toy_translator.model, toy_translator.translate(SENTENCE)
    source, changes = torch.tensor([translation.source_ids]), parse_changes("cross.1.2:off, encoder.2.1:uniform")
    with apply_changes(model, changes):
        found = head_effects(model, translation.source_ids, translation.target_ids)
    assert not found.changes["cross"][0, 1].any()  # it is off already
    for place in (("cross", 1, 0), ("encoder", 0, 1), ("decoder", 1, 1)):
        expected = change(model, source, translation.target_ids, place, changes)
        np.testing.assert_allclose(found.changes[place[0]][place[1:]], expected, atol=2e-5)


def test_the_strongest_come_first_whatever_their_sign() -> None:
    changes = {"encoder": np.array([[[0.1, 0.0], [-3.0, 1.0]]]), "cross": np.array([[[2.5, -0.25]]])}
    found = HeadEffects(changes)  # type: ignore[arg-type]
    assert found.strongest() == [(("cross", 0, 0), 2.25), (("encoder", 0, 1), -2.0), (("encoder", 0, 0), 0.1)]
    assert [head for head, _ in found.strongest(0)] == [("encoder", 0, 1), ("cross", 0, 0), ("encoder", 0, 0)]


@given(st.integers(1, 40), st.integers(1, 40))
def test_every_head_is_in_one_pass_and_no_pass_is_mixed(source: int, target: int) -> None:
    model = toy_model()
    passes = plan_ablation_batches(model, source, target)
    heads = [head for one in passes for head in one]
    assert (
        len(heads)
        == len(set(heads))
        == model.config.heads * (model.config.encoder_layers + 2 * model.config.decoder_layers)
    )
    assert all(len({kind == "encoder" for kind, _, _ in one}) == 1 for one in passes)


def toy_model() -> Transformer:
    return Transformer(
        make_preset_config("original", vocab_size=20, d_model=8, heads=4, encoder_layers=3, decoder_layers=3)
    )


def test_a_mixed_pass_is_refused(toy_translator: Translator) -> None:
    with pytest.raises(ValueError, match="not of both"):
        measure_head_effects_in_batch(toy_translator.model, (5, 2), (5,), [("encoder", 0, 0), ("cross", 0, 0)])


@pytest.mark.parametrize("against", [None, 30])
def test_a_word_without_each_head_is_that_head_by_itself(toy_translator: Translator, against: int | None) -> None:
    """Of a word of two pieces, or of its first rather than another."""
    model, translation = toy_translator.model, toy_translator.translate(SENTENCE, capture=False)
    target = make_piece_target(toy_translator, translation, 2, 2, against)
    found = ablate_heads_for_word(model, target)
    whole = compute_target_value(model, target)
    heads = [head for head, _ in found.effects.strongest()]
    assert len(heads) == 2 * 3 * toy_translator.config.heads
    for head, expected in found.effects.strongest():
        with apply_changes(model, [HeadChange(*head)]):
            assert compute_target_value(model, target) - whole == pytest.approx(expected, abs=2e-5)
    with apply_changes(model, parse_changes("cross.1.1:off")):
        assert measure_head_effects_on_word(model, target, [("cross", 0, 0)])[0, 0] == pytest.approx(0, abs=1e-6)
    told = found.as_json()
    assert (told["word"], told["against"]) == (target.word, target.against)
    falls = [one["fall"] for one in told["heads"]]
    assert falls == [-change for _, change in found.effects.strongest()]
    assert told["heads"][0].keys() == {"kind", "layer", "head", "fall"}
