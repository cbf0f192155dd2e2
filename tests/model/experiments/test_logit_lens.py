"""The logit lens: its last layer is the model, its earlier ones are the streams read by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attenscope.experiments.lens import run_logit_lens
from attenscope.network.config import BOS_ID
from attenscope.network.hooks import record_outputs
from attenscope.translate import Translator
from tests import toy

SENTENCE = "the old dog sees a red cat here."


def real_log_probs(translator: Translator, source_ids: tuple[int, ...], target_ids: tuple[int, ...]) -> torch.Tensor:
    with torch.inference_mode():
        logits = translator.model(torch.tensor([source_ids]), torch.tensor([[BOS_ID, *target_ids[:-1]]]))
    return logits[0].log_softmax(-1)


def test_the_last_layer_is_the_models_own_prediction(toy_translator: Translator) -> None:
    translation = toy_translator.translate(SENTENCE)
    lens = run_logit_lens(toy_translator, translation)
    real = real_log_probs(toy_translator, translation.source_ids, translation.target_ids)
    values, ids = real.topk(5)
    assert np.array_equal(lens.token_ids[-1], ids.numpy())
    assert np.array_equal(lens.log_probs[-1], values.numpy())
    assert (lens.ranks[-1] == 1).all()
    assert [row[0] for row in lens.tokens[-1]] == list(translation.target_tokens) == list(lens.target_tokens)
    np.testing.assert_allclose(lens.target_log_probs[-1], [step.log_prob for step in translation.steps], atol=1e-4)


def test_earlier_layers_are_their_streams_through_norm_and_generator(toy_translator: Translator) -> None:
    model, translation = toy_translator.model, toy_translator.translate(SENTENCE)
    lens = run_logit_lens(toy_translator, translation, count=3)
    assert lens.places == ("embedding", "layer 1", "layer 2")
    path = "decoder.layers.0.after_feed_forward.stream"
    with torch.inference_mode(), record_outputs(model, path) as streams:
        real_log_probs(toy_translator, translation.source_ids, translation.target_ids)
    with torch.inference_mode():
        by_hand = model.generator(model.decoder.final_norm(streams[path]))[0].log_softmax(-1)
    for position, token in enumerate(translation.target_ids):
        order = by_hand[position].argsort(descending=True).tolist()
        assert lens.ranks[1, position] == order.index(token) + 1
        assert lens.token_ids[1, position].tolist() == order[:3]
        assert lens.target_log_probs[1, position] == pytest.approx(by_hand[position, token].item())


def test_after_every_sublayer(toy_translator: Translator) -> None:
    translation = toy_translator.translate("a cat finds the tree.")
    fine = run_logit_lens(toy_translator, translation, sublayers=True)
    coarse = run_logit_lens(toy_translator, translation)
    parts = ("self-attention", "cross-attention", "feed-forward")
    assert fine.places == ("embedding", *(f"layer {layer} {part}" for layer in (1, 2) for part in parts))
    assert np.array_equal(fine.ranks[[0, 3, 6]], coarse.ranks)
    assert fine.token_ids.shape == (7, len(translation.steps), 5)


def test_of_a_given_translation_the_written_token_need_not_be_the_best(toy_translator: Translator) -> None:
    given = toy_translator.force("a cat finds the tree.", "der Hund.")
    lens = run_logit_lens(toy_translator, given)
    assert [step.rank for step in given.steps] == lens.ranks[-1].tolist()
    assert (lens.ranks[-1] > 1).any()


@pytest.mark.parametrize("preset", [{"norm_order": "post", "final_norm": False}, {"norm_order": "post"}, {}])
def test_every_norm_order(preset: dict[str, Any]) -> None:
    translator = Translator(toy.checkpoint(toy.random_model(**preset)))
    translation = translator.translate("a cat.", max_tokens=4)
    real = real_log_probs(translator, translation.source_ids, translation.target_ids)
    assert np.array_equal(run_logit_lens(translator, translation).log_probs[-1], real.topk(5).values.numpy())


def test_nothing_is_left_on_the_model(toy_translator: Translator) -> None:
    run_logit_lens(toy_translator, toy_translator.translate("a cat finds the tree."))
    assert not any(module._forward_hooks for module in toy_translator.model.modules())
