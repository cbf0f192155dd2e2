"""The parts of a logit: their sum, one of them by hand, and removal in a model that is linear."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attenscope.attribution.logit import ResidualPart, split_logit
from attenscope.attribution.methods import compute_target_value, record_target_pass
from attenscope.attribution.target import Target, make_piece_target
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import HeadChange, parse_changes
from attenscope.network.hooks import record_outputs
from attenscope.runnable_model import Translation
from attenscope.translate import Translator
from tests import toy
from tests.model.attribution.conftest import read


@pytest.mark.parametrize("against", [None, 30])
def test_they_sum_to_the_logit(any_translator: Translator, against: int | None) -> None:
    translation = read(any_translator)
    for position in range(len(translation.target_ids)):
        target = make_piece_target(any_translator, translation, position, against=against)
        found = split_logit(any_translator.model, target, record_target_pass(any_translator.model, target))
        assert found.sum == pytest.approx(found.logit, abs=1e-4)
        assert sum(one.score for one in found.parts) == pytest.approx(found.sum)
        if against is not None:
            assert found.logit == pytest.approx(compute_target_value(any_translator.model, target), abs=1e-4)


def test_what_is_held_is_counted(any_translator: Translator) -> None:
    config = any_translator.config
    target = make_piece_target(any_translator, read(any_translator), 2)
    found = split_logit(any_translator.model, target, record_target_pass(any_translator.model, target))
    held = {one.part: one.held_norms for one in found.parts}
    last = int(config.final_norm)
    if config.norm_order == "pre":
        assert set(held.values()) == {last}
    else:
        assert held[ResidualPart("embedding")] == 3 * config.decoder_layers + last
        assert held[ResidualPart("feed_forward", 1)] == 1 + last
    assert ("norm after every sublayer" in found.exactness) == (config.norm_order == "post")


def test_a_head_by_hand(toy_translator: Translator, toy_target: Target) -> None:
    model: Any = toy_translator.model
    place, attention = toy_target.position, model.decoder.layers[1].cross_attention
    path = "decoder.layers.1.cross_attention.context"
    with torch.no_grad(), record_outputs(model, path, "decoder.layers.1.after_feed_forward.stream") as found:
        model(torch.tensor([toy_target.source_ids]), torch.tensor([toy_target.input_ids]))
    width = toy_translator.config.d_head
    out = found[path][0, 1, place].double() @ attention.out_proj.weight[:, width:].T.double()
    stream, norm = found["decoder.layers.1.after_feed_forward.stream"][0, place].double(), model.decoder.final_norm
    through = (out - out.mean()) / (stream.var(unbiased=False) + norm.eps).sqrt() * norm.weight.double()
    parts = split_logit(model, toy_target, record_target_pass(model, toy_target)).parts
    score = next(one.score for one in parts if one.part == ResidualPart("cross", 1, 1))
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
    target = make_piece_target(translator, read(translator), 2, against=25)
    found = split_logit(model, target, record_target_pass(model, target))
    for head in range(2):
        with apply_changes(model, [HeadChange("cross", 0, head)]):
            without = compute_target_value(model, target)
        score = next(one.score for one in found.parts if one.part == ResidualPart("cross", 0, head))
        assert score == pytest.approx(found.logit - without, abs=1e-5)


def test_a_head_that_is_off_adds_nothing(toy_translator: Translator, toy_target: Target) -> None:
    with apply_changes(toy_translator.model, parse_changes("decoder.1.2:off")):
        found = split_logit(toy_translator.model, toy_target, record_target_pass(toy_translator.model, toy_target))
    assert next(one.score for one in found.parts if one.part == ResidualPart("decoder", 0, 1)) == 0
    assert found.sum == pytest.approx(found.logit, abs=1e-4)


def test_names_and_json(toy_translator: Translator, toy_translation: Translation) -> None:
    target = make_piece_target(toy_translator, toy_translation, 1)
    found = split_logit(toy_translator.model, target, record_target_pass(toy_translator.model, target))
    names = [one.part.name for one in found.parts]
    assert names[:4] == ["biases", "embedding", "position", "layer 1 self-attention head 1"]
    assert "layer 2 cross-attention head 2" in names
    assert names[-1] == "layer 2 feed-forward"
    told = found.as_json()
    assert set(told) >= {"parts", "sum", "logit"}
    assert told["parts"][3].items() >= {"kind": "decoder", "layer": 0, "head": 0}.items()
    sizes = [abs(one.score) for one in found.parts_by_size]
    assert sizes == sorted(sizes, reverse=True)
