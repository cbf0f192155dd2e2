"""Masked words of an encoder: the probabilities of transformers itself, words masked too, and heads switched off."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attenscope.hugging_face.masked_words import MaskedWordModel
from attenscope.interventions.changes import parse_changes
from attenscope.runnable_model import LocalError, LocalModel
from attenscope.user_model import load_user_model
from tests import folders

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers
DOG = 3
"""Where "dog" stands behind [CLS] the old."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.bert(tmp_path_factory.mktemp("bert") / "bert")


@pytest.fixture(scope="module")
def model(folder: Path) -> MaskedWordModel:
    found = load_user_model(f"hf:{folder}")
    assert isinstance(found, MaskedWordModel)
    return found


def compute_probabilities(folder: Path, text: str, position: int, change: Any = None) -> np.ndarray:
    """The probabilities at a position by transformers alone, `change` done to the model before: (V,)."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForMaskedLM.from_pretrained(folder).eval()
    if change:
        change(network)
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    ids[0, position] = tokenizer.mask_token_id
    with torch.no_grad():
        return network(ids).logits[0, position].double().softmax(-1).numpy()


def test_candidates_have_the_probabilities_of_fill_mask(model: MaskedWordModel, folder: Path) -> None:
    from transformers import pipeline

    expected = pipeline("fill-mask", model=str(folder), top_k=8)("the old [MASK] sees a tree .")
    found = model.predict_masked_word("the old [MASK] sees a tree .", DOG)
    assert [one.token for one in found.candidates] == [one["token_str"] for one in expected]
    shares = [math.exp(one.log_prob) for one in found.candidates]
    np.testing.assert_allclose(shares, [one["score"] for one in expected], atol=1e-5)
    assert not found.is_given
    assert (found.token, found.rank) == (found.candidates[0].token, 1)
    assert model.find_mask_positions("the old [MASK] sees a [MASK] .") == (3, 6)


def test_a_word_of_the_text_is_masked_and_read_from_the_others(model: MaskedWordModel, folder: Path) -> None:
    found = model.predict_masked_word(folders.SENTENCE, DOG)
    shares = compute_probabilities(folder, folders.SENTENCE, DOG)
    own = shares[model.encode("dog")[1]]
    assert (found.token, found.is_given) == ("dog", True)
    assert math.exp(found.log_prob) == pytest.approx(own, abs=1e-5)
    assert found.rank == 1 + (shares > own).sum()


def test_it_rests_on_words_whose_mask_lowers_it(model: MaskedWordModel, folder: Path) -> None:
    found = model.predict_masked_word(folders.SENTENCE, DOG)
    assert found.words == ("the", "old", "sees", "a", "tree", ".")
    for word, without in zip(found.words, found.without, strict=True):
        text = folders.SENTENCE.replace(word, "[MASK]", 1) if word != "a" else "the old dog sees [MASK] tree ."
        expected = compute_probabilities(folder, text, DOG)[model.encode("dog")[1]]
        assert math.exp(without) == pytest.approx(expected, abs=1e-5)
    falls = [abs(fall) for _, fall in found.by_fall]
    assert falls == sorted(falls, reverse=True)


def test_a_head_that_is_off_is_one_whose_values_are_not_passed_on(model: MaskedWordModel, folder: Path) -> None:
    def switch_off(network: Any) -> None:
        width = network.config.hidden_size // network.config.num_attention_heads
        network.bert.encoder.layer[1].attention.output.dense.weight.data[:, 2 * width : 3 * width] = 0

    changes = parse_changes("encoder.2.3:off")
    found = model.predict_masked_word(folders.SENTENCE, DOG, changes)
    shares = compute_probabilities(folder, folders.SENTENCE, DOG, switch_off)
    np.testing.assert_allclose(
        [math.exp(one.log_prob) for one in found.candidates], np.sort(shares)[::-1][:8], atol=1e-5
    )
    unchanged = model.predict_masked_word(folders.SENTENCE, DOG)
    effects = dict(model.measure_head_effects(folders.SENTENCE, DOG))
    assert len(effects) == 8
    assert effects["encoder", 1, 2] == pytest.approx(found.log_prob - unchanged.log_prob, abs=1e-5)
    assert abs(effects["encoder", 1, 2]) > 1e-4
    rest = dict(model.measure_head_effects(folders.SENTENCE, DOG, changes))
    assert ("encoder", 1, 2) not in rest
    assert len(rest) == 7


def test_its_maps_are_those_of_the_changed_model(model: MaskedWordModel) -> None:
    own = model.trace_with_changes(folders.SENTENCE, ()).encoder
    changed = model.trace_with_changes(folders.SENTENCE, parse_changes("encoder.1.1:off")).encoder
    assert own is not None
    assert changed is not None
    assert changed.key_tokens == own.key_tokens
    np.testing.assert_allclose(changed.weights[0], own.weights[0], atol=1e-6)  # It is off, but computes its weights.
    assert abs(changed.weights[1] - own.weights[1]).max() > 1e-4


def test_a_head_that_is_off_behind_another_has_the_weights_that_it_computes_there(model: MaskedWordModel) -> None:
    before = model.trace_with_changes(folders.SENTENCE, parse_changes("encoder.1.1:off")).encoder
    both = model.trace_with_changes(folders.SENTENCE, parse_changes("encoder.1.1:off,encoder.2.2:off")).encoder
    assert before is not None
    assert both is not None
    np.testing.assert_allclose(both.weights, before.weights, atol=1e-6)


@pytest.mark.parametrize("position", [-1, 0, 8, 99])
def test_what_is_no_word_is_not_masked(model: MaskedWordModel, position: int) -> None:
    with pytest.raises(LocalError, match="no word at this place"):
        model.predict_masked_word(folders.SENTENCE, position)


def test_an_encoder_without_the_head_only_reads(folder: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, BertModel

    BertModel.from_pretrained(folder).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    found = load_user_model(f"hf:{tmp_path}")
    assert isinstance(found, LocalModel)
    assert not isinstance(found, MaskedWordModel)
