"""Activation patching: nothing patched is 0, all patched is 1, and one patch by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from attenscope.attribution.target import AttributionError
from attenscope.experiments.patching import (
    Contrast,
    compare_at_first_difference,
    make_same_answer_control,
    patch_heads,
    patch_stream,
    read_minimal_pairs,
)
from attenscope.network.hooks import hook_outputs, record_outputs
from attenscope.translate import Translator
from tests import toy

FIRST, SECOND, SAME = "the old dog sees a cat.", "the old tree sees a cat.", "the old dog likes a cat."


@pytest.fixture(scope="module")
def pair(toy_translator: Translator) -> Contrast:
    return compare_at_first_difference(
        toy_translator, *(toy_translator.translate(one, capture=False) for one in (FIRST, SECOND))
    )


def test_the_word_is_that_at_which_the_translations_part(pair: Contrast) -> None:
    assert pair.target.tokens[0].strip()[0] == "H"  # Hund
    assert (pair.target.against or "")[0] == "B"  # Baum
    assert pair.first_value > 0 > pair.second_value


def test_all_is_everything_and_none_is_nothing(toy_translator: Translator, pair: Contrast) -> None:
    encoder, decoder = (patch_stream(toy_translator, pair, stack) for stack in ("encoder", "decoder"))
    np.testing.assert_allclose(encoder.whole_row_recovered_fraction, 1, atol=1e-3)
    assert decoder.whole_row_recovered_fraction[-1] == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(decoder.fraction[0], 0, atol=1e-3)  # the same prefix
    same = [at for at, (x, y) in enumerate(zip(pair.target.source_ids, pair.second_ids, strict=True)) if x == y]
    np.testing.assert_allclose(encoder.fraction[0][same], 0, atol=1e-3)
    assert encoder.rows == decoder.rows == ("embedding", "layer 1", "layer 2")
    assert encoder.columns == pair.second_tokens
    assert decoder.columns == pair.target.prefix_tokens


def test_a_patch_by_hand(toy_translator: Translator, pair: Contrast) -> None:
    model, path = toy_translator.model, "encoder.layers.0.after_feed_forward.stream"
    first, second, inputs = (
        torch.tensor([ids]) for ids in (pair.target.source_ids, pair.second_ids, pair.target.input_ids)
    )
    with torch.no_grad(), record_outputs(model, path) as streams:
        model(first, inputs)

    def put(stream: torch.Tensor) -> torch.Tensor:
        patched = stream.clone()
        patched[:, 2] = streams[path][:, 2]
        return patched

    with torch.no_grad(), hook_outputs({model.get_submodule(path): put}):
        logits = model(second, inputs)[0, -1].double()
    value = float(logits[pair.target.token_ids[0]] - logits[pair.target.against_id])
    found = patch_stream(toy_translator, pair, "encoder")
    assert found.change[1, 2] == pytest.approx(value - pair.second_value, abs=1e-4)
    assert found.fraction[1, 2] == pytest.approx((value - pair.second_value) / pair.difference, abs=1e-4)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_heads(toy_translator: Translator, pair: Contrast, kind: str) -> None:
    found = patch_heads(toy_translator, pair, kind)  # type: ignore[arg-type]
    assert found.fraction.shape == (2, 2)
    assert np.isfinite(found.fraction).all()
    assert found.columns == ("head 1", "head 2")


def test_a_control_brings_nothing(toy_translator: Translator, pair: Contrast) -> None:
    same = toy_translator.translate(SAME, capture=False)
    found = make_same_answer_control(toy_translator, pair, same)
    changes = patch_stream(toy_translator, found, "encoder", pair.difference)
    real = patch_stream(toy_translator, pair, "encoder")
    assert abs(changes.fraction).max() < 0.3 < abs(real.fraction).max()
    with pytest.raises(AttributionError, match="A control needs the same word X"):
        make_same_answer_control(toy_translator, pair, toy_translator.translate(SECOND, capture=False))


def test_pairs_that_cannot_be_patched(toy_translator: Translator) -> None:
    one, same, longer = (
        toy_translator.translate(text, capture=False) for text in (FIRST, FIRST, "the old red tree sees a cat.")
    )
    with pytest.raises(AttributionError, match="have the same translation"):
        compare_at_first_difference(toy_translator, one, same)
    with pytest.raises(AttributionError, match="both need as many"):
        compare_at_first_difference(toy_translator, one, longer)


def test_the_shipped_pairs() -> None:
    pairs = read_minimal_pairs()
    assert len(pairs) == 12
    assert set(Counter(one.phenomenon for one in pairs).values()) == {2}
    assert all(len({one.first, one.second, one.control}) == 3 for one in pairs)


@pytest.mark.sweep
def test_the_default_model_knows_the_shipped_pairs() -> None:
    translator = Translator.load("everyday-en-de", "cpu")
    for one in read_minimal_pairs():
        first, second, same = (
            translator.translate(text, capture=False) for text in (one.first, one.second, one.control)
        )
        found = compare_at_first_difference(translator, first, second)
        assert found.difference > 1, one
        assert (
            np.abs(
                patch_stream(
                    translator, make_same_answer_control(translator, found, same), "encoder", found.difference
                ).fraction
            ).max()
            < 0.5
        )


def test_every_norm_order() -> None:
    translator = Translator(toy.checkpoint(toy.random_model(norm_order="post", final_norm=False)))
    first, second = (
        translator.force(text, german, capture=False) for text, german in ((FIRST, "der Hund."), (SECOND, "der Baum."))
    )
    found = compare_at_first_difference(translator, first, second)
    np.testing.assert_allclose(patch_stream(translator, found, "encoder").whole_row_recovered_fraction, 1, atol=1e-3)
