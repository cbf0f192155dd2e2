"""The parts of a logit: their sum, one of them by hand, and removal in a model that is linear."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from model.attribution.logit_parts import logit_parts
from model.attribution.methods import record_target, target_value
from model.attribution.residual_parts import Part
from model.attribution.target import Target, target_pieces
from model.interventions.apply import intervening
from model.interventions.changes import HeadChange, parse
from model.network.hooks import record
from model.translate import Translation, Translator

from ... import toy
from .conftest import read


@pytest.mark.parametrize("against", [None, 30])
def test_they_sum_to_the_logit(any_translator: Translator, against: int | None) -> None:
    translation = read(any_translator)
    for position in range(len(translation.target_ids)):
        target = target_pieces(any_translator, translation, position, against=against)
        found = logit_parts(any_translator.model, target, record_target(any_translator.model, target))
        assert found.sum == pytest.approx(found.logit, abs=1e-4)
        assert sum(one.score for one in found.parts) == pytest.approx(found.sum)
        if against is not None:
            assert found.logit == pytest.approx(target_value(any_translator.model, target), abs=1e-4)


def test_what_is_held_is_counted(any_translator: Translator) -> None:
    config = any_translator.config
    target = target_pieces(any_translator, read(any_translator), 2)
    found = logit_parts(any_translator.model, target, record_target(any_translator.model, target))
    held = {one.part: one.held_norms for one in found.parts}
    last = int(config.final_norm)
    if config.norm_order == "pre":
        assert set(held.values()) == {last}
    else:
        assert held[Part("embedding")] == 3 * config.decoder_layers + last
        assert held[Part("feed_forward", 1)] == 1 + last
    assert ("norm after every sublayer" in found.exactness) == (config.norm_order == "post")


def test_a_head_by_hand(toy_translator: Translator, toy_target: Target) -> None:
    model: Any = toy_translator.model
    place, attention = toy_target.position, model.decoder.layers[1].cross_attention
    path = "decoder.layers.1.cross_attention.context"
    with torch.no_grad(), record(model, path, "decoder.layers.1.after_feed_forward.stream") as found:
        model(torch.tensor([toy_target.source_ids]), torch.tensor([toy_target.input_ids]))
    width = toy_translator.config.d_head
    out = found[path][0, 1, place].double() @ attention.out_proj.weight[:, width:].T.double()
    stream, norm = found["decoder.layers.1.after_feed_forward.stream"][0, place].double(), model.decoder.final_norm
    through = (out - out.mean()) / (stream.var(unbiased=False) + norm.eps).sqrt() * norm.weight.double()
    parts = logit_parts(model, toy_target, record_target(model, toy_target)).parts
    score = next(one.score for one in parts if one.part == Part("cross", 1, 1))
    direction = model.generator.weight[toy_target.token_ids[0]].double()
    assert score == pytest.approx((through @ direction).item(), abs=1e-6)


def test_removal_in_a_linear_model() -> None:
    """No norm, no feed-forward network and one layer: what a head adds is what its removal takes."""
    model: Any = toy.random_model(final_norm=False, decoder_layers=1, tied_generator=False)
    layer = model.decoder.layers[0]
    with torch.no_grad():
        layer.feed_forward.outer.weight.zero_()
        layer.self_attention.out_proj.weight.mul_(0.0)  # so that the cross-attention reads the same without a head
    translator = Translator(toy.checkpoint(model))
    target = target_pieces(translator, read(translator), 2, against=25)
    found = logit_parts(model, target, record_target(model, target))
    for head in range(2):
        with intervening(model, [HeadChange("cross", 0, head)]):
            without = target_value(model, target)
        score = next(one.score for one in found.parts if one.part == Part("cross", 0, head))
        assert score == pytest.approx(found.logit - without, abs=1e-5)


def test_a_head_that_is_off_adds_nothing(toy_translator: Translator, toy_target: Target) -> None:
    with intervening(toy_translator.model, parse("decoder.1.2:off")):
        found = logit_parts(toy_translator.model, toy_target, record_target(toy_translator.model, toy_target))
    assert next(one.score for one in found.parts if one.part == Part("decoder", 0, 1)) == 0
    assert found.sum == pytest.approx(found.logit, abs=1e-4)


def test_names_and_json(toy_translator: Translator, toy_translation: Translation) -> None:
    target = target_pieces(toy_translator, toy_translation, 1)
    found = logit_parts(toy_translator.model, target, record_target(toy_translator.model, target))
    names = [one.part.name for one in found.parts]
    assert names[:4] == ["biases", "embedding", "position", "layer 1 self-attention head 1"]
    assert "layer 2 cross-attention head 2" in names
    assert names[-1] == "layer 2 feed-forward"
    told = found.as_json()
    assert set(told) >= {"parts", "sum", "logit"}
    assert told["parts"][3].items() >= {"kind": "decoder", "layer": 0, "head": 0}.items()
    sizes = [abs(one.score) for one in found.sorted]
    assert sizes == sorted(sizes, reverse=True)
