"""DecoderLens: its last layer is the ordinary translation, an earlier one a shorter encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attenscope.decoding.greedy_and_sampling import decode_batch_greedily
from attenscope.experiments.lens import run_decoder_lens, run_logit_lens
from attenscope.translate import Translator
from tests import toy


@pytest.mark.parametrize("preset", [{}, {"norm_order": "post", "final_norm": False}, {"norm_order": "post"}])
def test_the_last_layer_is_the_model(preset: dict[str, Any]) -> None:
    translator = Translator(toy.checkpoint(toy.random_model(**preset)))
    translation = translator.translate("a cat finds the tree.", capture=False)
    lens = run_decoder_lens(translator, translation)
    assert lens.places == ("embedding", "layer 1", "layer 2")
    assert lens.texts[-1] == translation.text
    assert (lens.ranks[-1] == 1).all()
    np.testing.assert_allclose(lens.log_probs[-1], [step.log_prob for step in translation.steps], atol=1e-4)


def test_an_earlier_layer_is_an_encoder_that_ends_there(toy_checkpoint: Any) -> None:
    translator = Translator.load(toy_checkpoint, "cpu")  # of its own, since a layer is taken out
    translation = translator.translate("the old dog sees a cat.", capture=False)
    lens = run_decoder_lens(translator, translation)
    del translator.model.encoder.layers[1]
    written = decode_batch_greedily(translator.model, torch.tensor([translation.source_ids]))[0]
    assert translator.tokenizer.decode(written) == lens.texts[1]
    assert lens.texts[2] == translation.text


def test_the_rank_of_a_chosen_word(toy_translator: Translator) -> None:
    translation = toy_translator.translate("a cat finds the tree.", capture=False)
    chosen = translation.target_ids[1]
    for lens in (run_logit_lens, run_decoder_lens):
        ranks = lens(toy_translator, translation, token_id=chosen).ranks
        assert ranks.shape == (3, len(translation.steps))
        assert ranks[-1, 1] == 1
        assert (np.delete(ranks[-1], 1) > 1).any()
        np.testing.assert_array_equal(ranks[:, 1], lens(toy_translator, translation).ranks[:, 1])
