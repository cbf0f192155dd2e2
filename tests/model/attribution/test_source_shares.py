"""Source against prefix: shares of the whole translation, and an effect that an intervention measures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attenscope.attribution.alti_and_leave_one_out import compute_source_effect, compute_source_shares
from attenscope.network.abstract_model import shift_right
from attenscope.network.attention import make_causal_mask, make_padding_mask
from attenscope.network.config import PAD_ID
from attenscope.runnable_model import Translation
from attenscope.translate import Translator
from tests.model.attribution.conftest import read


def test_shares_of_each_piece(any_translator: Translator) -> None:
    translation = read(any_translator)
    found = compute_source_shares(any_translator, translation)
    assert found.tokens == translation.target_tokens
    np.testing.assert_allclose(found.by_piece.sum(1), found.source)
    np.testing.assert_allclose(found.source + found.by_input.sum(1), 1)
    np.testing.assert_allclose(found.prefix, found.by_input.sum(1))


def test_attention_to_the_end(toy_translator: Translator) -> None:
    translation = toy_translator.translate("a cat finds the tree.")
    found = compute_source_shares(toy_translator, translation)
    np.testing.assert_allclose(
        found.end_attention, translation.trace.maps["cross"].weights[..., -1].mean((0, 1)), atol=1e-5
    )


def test_the_effect_is_that_of_an_empty_memory(toy_translator: Translator, toy_translation: Translation) -> None:
    """All keys blocked by masks of our own make the same difference."""
    model, ids = toy_translator.model, torch.tensor([toy_translation.target_ids])
    source, inputs = torch.tensor([toy_translation.source_ids]), shift_right(ids)
    nothing = torch.zeros(1, 1, 1, source.shape[1], dtype=torch.bool)
    with torch.no_grad():
        mask = make_causal_mask(inputs.shape[1]) & make_padding_mask(inputs, PAD_ID)
        rows = [model(source, inputs), model(source, inputs, nothing, mask, nothing)]
    with_source, without = (one[0].log_softmax(-1).gather(1, ids.T)[:, 0] for one in rows)
    np.testing.assert_allclose(
        compute_source_effect(toy_translator, toy_translation), (with_source - without).numpy(), atol=1e-4
    )


def test_a_translation_of_another_sentence_is_loose(toy_translator: Translator) -> None:
    true = toy_translator.force("a cat finds the tree.", "ein Katze findet der Baum.", capture=False)
    loose = toy_translator.force("the old dog sees a house.", "ein Katze findet der Baum.", capture=False)
    assert compute_source_shares(toy_translator, true).mean_effect > 1
    assert compute_source_shares(toy_translator, loose).mean_effect < 0
    assert compute_source_shares(toy_translator, true).effect == pytest.approx(
        compute_source_effect(toy_translator, true)
    )
